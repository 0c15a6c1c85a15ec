"""Records on the command line: kept, merged, renewed, listed, verified."""

import argparse
import math
import sys

from visprompt.errors import BadInput

TOLERANCE = 1.0  # points of test accuracy: ten of 1,000 test images


def keep(args) -> None:
    """Copy this machine's records of the project's own tasks to book/records, so that they can be
    committed."""
    from .keepable import keep

    asked = {
        name: getattr(args, name) for name in ("method", "task", "study", "any_data", "dry_run")
    }
    places, refused = keep(args.kind, **asked)
    for place in places if args.dry_run else ():
        print(place)
    would = "would be" if args.dry_run else "are"
    print(f"{len(places)} records {would} kept", file=sys.stderr if args.dry_run else sys.stdout)
    for why, number in refused.items():
        print(f"{number} {would} not: {why}", file=sys.stderr)
    if refused and not places:
        raise BadInput(f"no record {'would be' if args.dry_run else 'was'} kept.")
    if not places and (args.kind or args.method or args.task or args.study):
        raise BadInput(
            "no record of this machine fits; leave out a filter, or see: visprompt runs "
            "--store here."
        )


def merge(args) -> None:
    """Add the records of another machine's build/records to this one's; a run that both have must
    agree."""
    from pathlib import Path

    from visprompt.records.merging import merge

    found = merge(Path(args.folder))
    print(f"{found.added} records are added, {found.there} were here already")
    for line in found.refused:
        print(line, file=sys.stderr)
    if found.refused:
        raise BadInput(f"{len(found.refused)} records are refused; see above.")


def renew(args) -> None:
    """Run kept records of a kind again that older code made; --part 1/2 and 2/2 side by side."""
    from .renewing import renew
    from .weights import files_of

    only = {"method": args.method, "task": args.task, "lacking_images": args.lacking_images}
    done = renew(args.kind, args.part, files_of(args.weights), args.data_dir, **only)
    print(f"{done} records of kind {args.kind} renewed")


def carry(args) -> None:
    """Run a sample of the outdated kept records again and, if all is equal, carry the others of
    their kinds to today's code."""
    from visprompt.records import carrying

    from .reference import run_reference
    from .renewing import run_sample, without_equal
    from .weights import files_of

    weights, reference = files_of(args.weights), None
    count, failed = run_sample(args.count, args.seed, args.part, weights, args.data_dir)
    if failed:
        why = f"{len(failed)} of the sample's runs could not be done, so nothing is carried: "
        raise BadInput(why + " | ".join(failed[:5]))
    if args.reference:
        reference = run_reference(args.reference, without_equal(args.part), weights, args.data_dir)
    if args.part != "1/1" or args.dry_run:
        print(
            f"part {args.part} of a sample of {count} is run, seed {args.seed}; nothing is "
            f"carried yet"
        )
        return
    found = carrying.carry(carrying.again(), args.seed, reference)
    for kind in sorted(found.sample):
        equal = (
            "not equal, nothing carried"
            if kind in found.differ
            else f"equal, {found.carried[kind]} carried"
        )
        referred = (
            f", {found.referred[kind]} of them held against the older code"
            if found.referred[kind]
            else ""
        )
        print(f"{kind}: {found.sample[kind]} run again{referred} (seed {args.seed}), {equal}")
    for kind, number in found.without.items():
        print(f"{kind}: {number} outdated, none was run again", file=sys.stderr)
    if found.differ:
        lines = [line for kind in found.differ.values() for line in kind]
        raise BadInput(
            f"{len(lines)} came out otherwise; renew their kinds. " + " | ".join(lines[:5])
        )


def runs(args) -> None:
    """The records that there are, as a table; --format csv or json for programs, with every
    setting."""
    from visprompt.records.listing import COLUMNS, counts

    from .runs import runs

    frame = runs(
        args.kind, outdated=args.outdated, **{name: getattr(args, name) for name in FILTERS}
    )
    if args.format == "csv":
        frame.to_csv(sys.stdout, index=False)
    elif args.format == "json":
        print(frame.to_json(orient="records", indent=1))
    elif len(frame):
        print(frame[[*COLUMNS]].astype(object).fillna("").to_string(index=False))
    for kind, n in counts(frame).items():
        told = (
            f"{n['current']} of {n['every']} current, {n['carried']} carried, "
            f"{n['other']} of other versions"
        )
        print(f"{kind}: {told}", file=sys.stderr)
    if not len(frame):
        raise BadInput("no record fits; leave out a filter, or see: visprompt runs.")


def verify(args) -> int:
    """Run a random few of the kept records of training again and say how far they are off; status 1
    above --tolerance."""
    from tqdm import tqdm

    from .renewing import verify
    from .weights import files_of

    worst, count = None, 0
    print("record\tkept\tnow\tdifference\twhat\tdiffers between the machines")
    for row in verify(args.count, args.seed, files_of(args.weights), args.data_dir):
        numbers = f"{row['kept']:.2f}\t{row['now']:.2f}\t{row['difference']:+.2f}"
        # above the bar
        tqdm.write(
            f"{row['record']}\t{numbers}\t{row['what']}\t{row['note'] or 'nothing'}", sys.stdout
        )
        sys.stdout.flush()
        worst, count = max(worst or row, row, key=lambda one: abs(one["difference"])), count + 1
    largest = abs(worst["difference"])
    print(f"largest difference of {count}: {largest:g} points", file=sys.stderr)
    if largest <= args.tolerance:
        return 0
    said = (
        f"record {worst['record']} is off by {largest:g} points, more than --tolerance "
        f"{args.tolerance:g}"
    )
    print(
        f"visprompt: {said}; what differs: {worst['note'] or 'nothing that is recorded'}.",
        file=sys.stderr,
    )
    return 1


def tolerance(word: str) -> float:
    """A number of points, 0 or more."""
    try:
        points = float(word)
    except ValueError:
        points = -1.0
    if not 0 <= points < math.inf:
        raise argparse.ArgumentTypeError(
            f"a number of points such as {TOLERANCE:g} is needed, not {word!r}"
        )
    return points


FILES = (
    "--weights",
    {"nargs": "+", "default": [], "metavar": "NAME=FILE", "help": "weights that have no address"},
)
FOLDER = ("--data-dir", {"help": "folder of the tasks that are not embedded"})
FORMAT = ("--format", {"choices": ["table", "csv", "json"], "default": "table"})
FILTERS = {  # of `runs`
    "method": {},
    "task": {},
    "backbone": {},
    "seed": {"type": int},
    "paper": {"help": "slug: the runs that its tables and figures show"},
    "study": {"help": "of data_manifests/studies.yaml"},
    "profile": {"help": "such as quick or real"},
    "recipe": {"help": "of data_manifests/recipes.yaml"},
    "version": {"help": "other than those installed: other; or such as torch=2.15"},
    "store": {"help": "here or kept"},
}
COMMANDS = {  # function -> its options
    keep: [
        (
            "--kind",
            {
                "help": "only records of this kind, such as tune or cost, also one that "
                "the book does not ask for"
            },
        ),
        ("--method", {"help": "only runs of this method"}),
        ("--task", {"help": "only runs on this task"}),
        ("--study", {"help": "only runs of this study of data_manifests/studies.yaml"}),
        (
            "--any-data",
            {
                "action": "store_true",
                "help": "also tasks that no manifest has, and sets of other numbers of images",
            },
        ),
        ("--dry-run", {"action": "store_true", "help": "write nothing; list what would be kept"}),
    ],
    merge: [("folder", {"help": "the other machine's build/records"})],
    renew: [
        ("kind", {"help": "such as tune, cost or segment"}),
        ("--part", {"default": "1/1"}),
        ("--method", {"help": "only runs of this method"}),
        ("--task", {"help": "only runs on this task"}),
        (
            "--lacking-images",
            {
                "action": "store_true",
                "help": "those that do not say which test images were named right",
            },
        ),
        FILES,
        FOLDER,
    ],
    carry: [
        (
            "count",
            {"type": int, "nargs": "?", "default": 100, "help": "how many to run again (100)"},
        ),
        ("--seed", {"type": int, "default": 0, "help": "which ones"}),
        (
            "--part",
            {
                "default": "1/1",
                "help": "1/2 and 2/2 run the sample side by side; then call it without",
            },
        ),
        (
            "--reference",
            {
                "metavar": "COMMIT",
                "help": "also run by its code what is not equal here, as by another processor",
            },
        ),
        ("--dry-run", {"action": "store_true", "help": "run the sample and carry nothing"}),
        FILES,
        FOLDER,
    ],
    runs: [
        ("--kind", {"help": "such as tune or cost"}),
        *((f"--{name}", settings) for name, settings in FILTERS.items()),
        ("--outdated", {"action": "store_true", "help": "only those that other code made"}),
        FORMAT,
    ],
    verify: [
        ("count", {"type": int, "nargs": "?", "default": 3, "help": "how many (3)"}),
        ("--seed", {"type": int, "default": 0, "help": "which few"}),
        (
            "--tolerance",
            {
                "type": tolerance,
                "default": TOLERANCE,
                "help": f"points that a run may be off ({TOLERANCE:g})",
            },
        ),
        FILES,
        FOLDER,
    ],
}
