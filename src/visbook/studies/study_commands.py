"""Runs on the command line: planned and done."""

import sys

from visprompt.errors import BadInput, CannotWrite

from .record_commands import COMMANDS as OF_RECORDS
from .record_commands import FILES, FOLDER, FORMAT


def bench(args) -> None:
    """Ratios of fast forms to plain ones, each pair timed in turns in one process."""
    from ..timing.clock import machine
    from .bench import MODELS, bench
    from .bench_table import rows

    models = args.models or MODELS.get(args.device.split(":")[0], [])
    found, failed = bench(models, args.device, args.batch_size, args.repeats, args.again)
    print(
        f"{machine(args.device)}; a / b are the two of a pair, the ratio is a over b, "
        f"median of the rounds"
    )
    print(rows(found).to_string(index=False))
    if failed:
        every = len(found) + len(failed)
        raise BadInput(
            f"{len(failed)} of {every} failed; their records say so. " + " | ".join(failed)
        )


def study(args) -> None:
    """Do the runs of a study of data_manifests/studies.yaml, or those that an artifact shows, and
    print their means."""
    from .artifact_runs import of_artifact
    from .grids import check_cells, share, studies, study
    from .lab import Lab, LabSettings
    from .roles import recipe_scope
    from .statistics import tables

    try:
        seeds = None if args.seeds is None else [int(seed) for seed in args.seeds]
    except ValueError:
        seeds = []
    if seeds == []:
        raise BadInput(
            f"--seeds takes whole numbers, such as 0 1 2, not "
            f"{' '.join(args.seeds) or 'nothing'!r}."
        )
    names = args.names or list(studies())
    share(args.part)
    changes = {"epochs": args.epochs, "precision": args.precision, "compile": args.compile or None}
    changes = {name: value for name, value in changes.items() if value is not None}
    if args.profile == "rehearsal":  # follows the paper's recipe, for one epoch
        changes = {"epochs": 1} | changes
    profile = "paper" if args.profile == "rehearsal" else args.profile
    usual = args.recipe or profile
    scope = recipe_scope(
        usual, args.profile, backbone=args.backbone, tasks=args.tasks, methods=args.methods
    )
    failed, done = [], 0
    check_cells([name for name in args.names if "." not in name], scope, args.data_dir)
    weights = args.weights[0] if len(args.weights) == 1 else args.weights

    def lab(recipe: str) -> Lab:
        return Lab(
            LabSettings(
                args.recipe or recipe,
                weights,
                args.data_dir,
                args.device,
                changes,
                args.profile,
                args.grid,
            )
        )

    of_profile = lab(profile)
    of_profile.protocol.search(args.grid)
    for name in names:
        try:
            if "." in name:
                frame = of_artifact(name, scope, lab, seeds=seeds, part=args.part)
            else:
                frame = study(
                    name, scope, of_profile, seeds=seeds or [0], part=args.part, search=args.search
                )
        except BadInput as error:
            failed.append(f"{name}: {error}")
            if isinstance(error, CannotWrite):
                break
            continue
        done += len(frame)
        for title, table in tables(frame).items() if len(frame) else ():
            print(f"{name}, {title}: test accuracy in percent, standard deviation over seeds")
            print(table.to_string(index=False))
    if failed:
        raise BadInput(" | ".join(failed))
    if not done:
        raise BadInput(
            f"nothing to run: there are fewer cells than part {args.part} wants; give fewer parts."
        )


def factors(args) -> None:
    """Do the missing runs of data_manifests/factors.yaml, one factor changed at a time, and print
    their means."""
    from visprompt.words import REAL

    from .factors import frame
    from .lab import Lab, LabSettings

    weights = args.weights[0] if len(args.weights) == 1 else args.weights
    lab = Lab(LabSettings(REAL, weights, args.data_dir, args.device, profile=REAL))
    found = frame(lab, args.seeds, args.names)
    means = found.groupby(["variant", "method", "task"], sort=False).test.agg(["mean", "count"])
    print(means.round(2).to_string())


def plan(args) -> None:
    """What artifacts take: runs, those recorded, bytes to fetch, GPU hours, and the command for
    each."""
    from visprompt import papers

    for id in args.artifacts:
        papers.artifact(id)  # a misspelt one is named before seconds of imports
    from . import adopting, budget

    if args.hours is not None:
        print(adopting.text(adopting.fitting(args.hours, args.card), args.card))
        return
    found = budget.plan(
        *args.artifacts,
        profile=args.profile,
        data_dir=args.data,
        device=args.device,
        precision=args.precision,
    )
    if args.format == "csv":
        found.frame().to_csv(sys.stdout, index=False)
    else:
        print(found.as_json() if args.format == "json" else budget.text(found))


def batches(args) -> None:
    """Cut the runs of artifacts into jobs of a useful length, longest first, for `make sweep`."""
    from .batches import batches, check_weights, planned_runs, write_jobs
    from .forecast import speed_of, usual_precision

    narrowed = {"backbone": args.backbone, "tasks": args.tasks, "methods": args.methods}
    narrowed = {name: value for name, value in narrowed.items() if value}
    runs, speed = (
        planned_runs(args.artifacts, args.profile, args.data, args.seeds, **narrowed),
        speed_of(args.device, args.precision or usual_precision(args.profile)),
    )
    weights = args.weights[0] if len(args.weights) == 1 else args.weights
    check_weights(runs, weights or "pretrained")
    hours = {run.key: speed.hours(run, args.data) for run in runs}
    jobs = batches(
        runs,
        lambda run: args.minutes if hours[run.key] is None else 60 * hours[run.key],
        args.minutes,
    )
    given = {"data_dir": args.data, "weights": weights, "artifacts": args.artifacts, **narrowed}
    given["seeds"] = args.seeds
    if not jobs:
        raise BadInput(
            "nothing is trained for these artifacts on the data at hand; see: visprompt plan."
        )
    if args.out:
        write_jobs(jobs, args.out, **{name: value for name, value in given.items() if value})
    total = sum(job.minutes for job in jobs) / 60
    print(
        f"{len(runs)} runs in {len(jobs)} jobs, the longest {jobs[0].minutes:.0f} min, "
        f"{total:.1f} h ({speed.how})"
    )


def segment(args) -> None:
    """Do the runs of data_manifests/segmentation.yaml and print their mIoU."""
    from .mask_runs import MaskLab, mask_scope, runs

    try:
        seeds = [int(seed) for seed in args.seeds]
    except ValueError:
        raise BadInput(
            f"--seeds takes whole numbers, such as 0 1 2, not {' '.join(args.seeds)!r}."
        ) from None
    changes = {"iterations": args.iterations, "precision": args.precision}
    changes = {name: value for name, value in changes.items() if value is not None}
    where = {"data_dir": args.data_dir, "device": args.device, "weights": args.weights}
    lab = MaskLab(args.profile, changes=changes, **where)
    found = runs(lab, mask_scope(args.profile, args.tasks, args.methods), seeds)
    means = found.groupby(["task", "variant"], sort=False)[["test", "test_many"]].agg(
        ["mean", "std"]
    )
    print(means.round(2).to_string())


def rates(args) -> None:
    """Search a method's learning rate for the quick recipe; the validation split decides."""
    from .case import rate_name
    from .rates import search

    accuracies = {
        rate: record.values["val"] for rate, record in search(args.method, args.rates).items()
    }
    for rate, accuracy in accuracies.items():
        print(f"{rate:g}\t{accuracy:.1f}")
    print(
        "The best of these, for `quick` and `vit` in data_manifests/recipes.yaml:", file=sys.stderr
    )
    print(f"    {args.method}: {{{rate_name(args.method)}: {max(accuracies, key=accuracies.get)}}}")


def of_artifacts(names: list[str], fetched: bool = False) -> list[str]:
    """Names of data sets, with all that an artifact's runs need in its place; says which weights
    they need, or, with `fetched`, fetches these."""
    from visprompt.models.embedded import from_files
    from visprompt.models.loading import load_backbone
    from visprompt.papers import artifacts

    from .budget import data_sets_of

    known, found = artifacts().index, []
    for name in names:
        sets, weights = data_sets_of(name) if name in known else ([name], [])
        for weight in weights if fetched else ():
            if weight in from_files():
                print(f"{weight}\tno address; give a file: --weights {weight}=FILE")
                continue
            load_backbone(weight, "pretrained")
            print(f"{weight}\tweights are there")
        if weights and not fetched:
            print(
                f"{name} needs the weights of {', '.join(weights)}: fetched at the first "
                f"run, or given with --weights"
            )
        if not sets and not (fetched and weights):
            raise BadInput(f"{name} needs no data set; visprompt plan {name} says what makes it.")
        found += sets
    return list(dict.fromkeys(found))


PART = ("--part", {"default": "1/1", "help": "2/3 takes the second of every three cells"})
PROFILE = ("--profile", {"default": "quick"})
DEVICE = ("--device", {"default": "cpu", "help": "cpu or cuda"})
PRECISION = ("--precision", {"choices": ["float32", "bf16"], "help": "in place of the recipe's"})
COMMANDS = {  # function -> its options
    bench: [
        ("--repeats", {"type": int, "default": 5, "help": "timed rounds (5)"}),
        DEVICE,
        ("--models", {"nargs": "+", "help": "timm ViTs in place of those of the device"}),
        ("--batch-size", {"type": int, "help": "images a step (8 on a CPU, 64 on a GPU)"}),
        (
            "--again",
            {
                "action": "store_true",
                "help": "delete this machine's records of the bench and time anew",
            },
        ),
    ],
    study: [
        (
            "names",
            {
                "nargs": "*",
                "help": "studies, or artifacts such as spt.table-3; all studies unless given",
            },
        ),
        (
            "--seeds",
            {
                "nargs": "*",
                "help": "0 of a study, and those of its paper of an artifact, unless given",
            },
        ),
        ("--tasks", {"nargs": "+", "default": [], "help": "none but these"}),
        ("--methods", {"nargs": "+", "default": [], "help": "slugs; no variants but theirs"}),
        PART,
        (
            "--search",
            {
                "action": "store_true",
                "help": "search learning rates first; an artifact's runs always do",
            },
        ),
        (
            "--grid",
            {
                "default": "ours",
                "help": "which of the recipe's searches: ours or printed",
            },
        ),
        PROFILE,
        ("--recipe", {"help": "of data_manifests/recipes.yaml; the profile's unless given"}),
        ("--epochs", {"type": int, "help": "in place of the recipe's"}),
        PRECISION,
        ("--compile", {"action": "store_true", "help": "networks go through torch.compile"}),
        ("--backbone", {"help": "takes the place of the supervised one, and no other is used"}),
        (
            "--weights",
            {
                "nargs": "+",
                "default": ["pretrained"],
                "help": "a weights file for it, or NAME=FILE for several",
            },
        ),
        FOLDER,
        DEVICE,
    ],
    factors: [
        ("names", {"nargs": "*", "help": "factors, or baseline; all unless given"}),
        ("--seeds", {"nargs": "+", "type": int, "default": [0], "help": "0 unless given"}),
        (
            "--weights",
            {"nargs": "+", "default": ["pretrained"], "help": "a weights file, or NAME=FILE"},
        ),
        FOLDER,
        DEVICE,
    ],
    plan: [
        (
            "artifacts",
            {"nargs": "*", "metavar": "artifact", "help": "such as spt.table-3; all unless given"},
        ),
        ("--profile", {"default": "paper"}),
        ("--data", {"metavar": "FOLDER", "help": "a folder of data sets; plan only what is there"}),
        (
            "--device",
            {
                "help": "of data_manifests/devices.yaml, or measured: what visprompt "
                "bench timed here"
            },
        ),
        PRECISION,
        (
            "--hours",
            {"type": float, "help": "choose what fits into so many hours of --card instead"},
        ),
        ("--card", {"default": "h100", "help": "of data_manifests/devices.yaml (h100)"}),
        FORMAT,
    ],
    batches: [
        ("artifacts", {"nargs": "*", "help": "such as spt.table-3, or papers; all unless given"}),
        ("--profile", {"default": "paper"}),
        ("--tasks", {"nargs": "+", "default": [], "help": "none but these"}),
        ("--methods", {"nargs": "+", "default": [], "help": "slugs; no variants but theirs"}),
        ("--seeds", {"nargs": "+", "type": int, "help": "in place of the papers'"}),
        ("--backbone", {"help": "takes the place of the supervised one, and no other is used"}),
        ("--minutes", {"type": float, "default": 30, "help": "that a job may take (30)"}),
        (
            "--data",
            {"metavar": "FOLDER", "help": "a folder of data sets; only what is there is run"},
        ),
        ("--device", {"help": "whose hours count, as of visprompt plan"}),
        PRECISION,
        ("--out", {"help": "where to write the list; none: only say how many"}),
        FILES,
    ],
    segment: [
        ("--seeds", {"nargs": "*", "default": [], "help": "the profile's unless given"}),
        ("--tasks", {"nargs": "+", "default": [], "help": "none but these"}),
        ("--methods", {"nargs": "+", "default": [], "help": "slugs; no variants but theirs"}),
        PROFILE,
        ("--iterations", {"type": int, "help": "in place of the recipe's"}),
        PRECISION,
        ("--weights", {"default": "pretrained", "help": "a file for the backbone"}),
        FOLDER,
        DEVICE,
    ],
    rates: [
        ("method", {"help": "its slug"}),
        (
            "--rates",
            {
                "nargs": "+",
                "type": float,
                "default": [],
                "help": "those to try; five or, of a new method, seven",
            },
        ),
    ],
} | OF_RECORDS
