"""What the chapters on DA-VPT, iVPT and SPT share: their parameters, and the runs they show."""

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd
from IPython.display import HTML, display

from . import records, studies
from .errors import BadInput, choose
from .figures import NAMES
from .methods import METHODS
from .notebook import Page, Parameters
from .progress import progress
from .sweeps import Bench, Lab
from .tasks import embedded_tasks

QUICK_TASK = "position"  # where the methods differ most
REAL = "vit_tiny_patch16_224.augreg_in21k_ft_in1k"  # a published ViT small enough for a processor


@dataclass(frozen=True)
class ChapterParameters(Parameters):
    """What such a chapter takes. In the quick profile it runs its own methods on one task, and shows kept records."""

    backbone: str | None = None  # plays "supervised" in place of the profile's, and no other backbone is used
    weights: str | None = "pretrained"  # or a weights file, for all backbones
    tasks: list[str] | None = None  # none but these
    methods: list[str] | None = None  # slugs; no variants but theirs
    # Those that are run here. None: all of the chapter, but in the quick profile only where backbone, tasks, methods or
    # search is given; else its own small part alone.
    studies: list[str] | None = None
    seeds: list[int] | None = None  # those that are run here
    kept_seeds: list[int] | None = None  # those that are shown where a record has them
    search: bool | None = None  # search learning rates here; None: only in the paper profile
    data_dir: str | None = None  # folder of the tasks that are not embedded
    epochs: int | None = None

    def __post_init__(self):
        super().__post_init__()
        quick = self.profile == "quick"
        narrowed = self.search or any(given is not None for given in (self.backbone, self.tasks, self.methods))
        defaults = {
            "seeds": [0] if quick else [0, 1, 2, 3, 4],
            "kept_seeds": sorted({0, 1, 2, 3, 4, *(self.seeds or [])}),  # what is run is shown
            "search": not quick, "studies": [] if quick and not narrowed else None,
        }  # fmt: skip
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        for name in ("tasks", "methods", "seeds"):
            if getattr(self, name) == []:
                raise BadInput(f"parameter {name} is an empty list; leave it out to take the profile's.")
        for method in self.methods or []:
            choose("method", method, METHODS)
        for name in self.studies or []:
            choose("study", name, studies.studies())
        if not quick and self.data_dir is None:
            raise BadInput(
                "the paper profile reads its data sets from folders: give -p data_dir FOLDER, with a folder per task "
                "that holds images/, train800.txt, val200.txt and test.txt (see the page on data sets)."
            )


class Chapter:
    """The runs of a chapter.

    Args:
        page: the notebook's page.
        p: its parameters.
        own: the studies it shows.
        quick_methods: slugs that the quick profile runs on QUICK_TASK with seed 0.
    """

    def __init__(self, page: Page, p: ChapterParameters, own: Sequence[str], quick_methods: Sequence[str]):
        self.page, self.p, self.own, self.quick_methods = page, p, list(own), list(quick_methods)
        changes = {} if p.epochs is None else {"epochs": p.epochs}
        recipe = page.name if p.profile == "paper" and page.name in ("davpt", "ivpt", "spt") else p.profile
        self.lab = Lab(Bench(recipe, p.weights, p.data_dir, p.device, changes))
        self.cast = studies.cast(p.profile, backbone=p.backbone, tasks=p.tasks or (), methods=p.methods or ())
        if p.profile == "quick" and p.backbone is None and p.tasks is None and p.methods is None:
            narrow = replace(self.cast, only_tasks=(QUICK_TASK,), only_methods=tuple(quick_methods))
            studies.study("benchmark", narrow, self.lab, seeds=p.seeds)

    @cached_property
    def frames(self) -> dict[str, pd.DataFrame]:
        """The runs of each study; what is asked for and has no record is run now."""
        return {name: self.frame(name) for name in progress(self.own, self.page.name)}

    def frame(self, name: str) -> pd.DataFrame:
        """One study's runs, each once, or an empty frame with the columns variant, task, seed and group."""
        run = self.p.studies is None or name in self.p.studies
        kept = [seed for seed in self.p.kept_seeds if not run or seed not in self.p.seeds]
        found = studies.study(name, self.cast, self.lab, seeds=self.p.seeds if run else (), kept_seeds=kept,
                              search=bool(run and self.p.search))  # fmt: skip
        if not len(found):
            return pd.DataFrame(columns=["variant", "task", "seed", "group", "backbone", "test", "record", "train_size"])
        return found.loc[~(found.variant + found.run.map(repr)).duplicated()]

    def rows(self, *names: str, variants: Sequence[str] = (), tasks: str | None = None, part: str | None = None):
        """Rows of several studies together.

        Args:
            variants: these alone, in this order.
            tasks: a list of tasks of studies.yaml, such as "vtab".
            part: the backbone's part, such as "mae".
        """
        frame = pd.concat([self.frames[name] for name in names if len(self.frames[name])] or [self.frames[names[0]]])
        if tasks is not None:
            frame = frame[frame.task.isin(self.cast.tasks[tasks])]
        if part is not None:
            frame = frame[frame.backbone == self.cast.backbones.get(part)]
        if variants:
            frame = pd.concat([frame[frame.variant == variant] for variant in variants])
        return frame

    def how(self, frame: pd.DataFrame) -> str:
        """How the numbers of some rows came about, in a sentence."""
        seeds = frame.groupby(["variant", "task"]).seed.nunique()
        counted = f"{seeds.min()}" if seeds.min() == seeds.max() else f"{seeds.min()} to {seeds.max()}"
        real = not set(frame.task) <= set(embedded_tasks())
        kind = "" if real else "Small backbones and tasks of this project, a direction only. "
        told = f"{kind}{', '.join(dict.fromkeys(frame.backbone))}; {counted} seed{'s' * (counted != '1')} a cell."
        guessed = near_chance(frame) if "test" in frame else []  # records of what prompts look like carry no accuracy
        return f"{told} Near chance, so without a say: {', '.join(guessed)}." if guessed else told

    def command(self, **parameters) -> str:
        """The command that runs this chapter on the papers' backbones and data."""
        shown = {name: f"[{', '.join(value)}]" if isinstance(value, list) else value for name, value in parameters.items()}
        words = "".join(f" -p {name} '{value}'" for name, value in shown.items())
        return f'make notebook NAME={self.page.name} PROFILE=paper ARGS="-p data_dir FOLDER{words}"'

    def paper_scale(self, artifact: str, why: str, *names: str) -> None:
        """Say that the papers' own scale was not run, and which studies would have to be."""
        if self.p.profile == "quick":
            self.page.not_run(artifact, why=why, command=self.command(**({"studies": list(names)} if names else {})))

    def judge(self, claim: str, frame: pd.DataFrame, better: str, worse: str, note: str = "", scale: float = 1.0) -> None:
        """Hold the paired difference of two variants, in points, against a claim; nothing where one was not run."""
        try:
            found = studies.gain(frame, better, worse)
        except BadInput:
            return  # one of them was not run here
        tasks, seeds = (f"{n} {word}{'s' * (n != 1)}" for n, word in ((found.tasks, "task"), (found.seeds, "seed")))
        told = f"{better} − {worse}, paired by seed: {tasks}, {seeds}, better on {found.better_tasks} of {tasks}"
        told += f", signed ranks over tasks p = {found.p_tasks:.2g}" if found.p_tasks == found.p_tasks else ""
        self.page.judge(claim, found.mean, found.low, found.high, evidence="trend", records=found.records,
                        note=f"{told}. {note}".strip())  # fmt: skip


    def real_images(self) -> None:
        """Show the kept runs of REAL on real images, each method at its best rate on validation, and how to make more."""
        found = pd.DataFrame([
            {"task": s["task"], "method": NAMES[s["method"]], "epochs": s["recipe"]["epochs"],
             "training images": s["train_size"], "rate": s["recipe"]["learning_rate"], "seed": s["seed"],
             "settings": json.dumps(s["method_settings"]), "test": r.values["test"], "val": r.values["val"], "record": r}
            for r in kept_rows("tune", backbone=REAL) for s in [r.settings]
        ])  # fmt: skip
        rows, used = [], []
        for _, part in found.groupby(["task", "method", "epochs", "settings"], sort=False) if len(found) else ():
            tried = part[part.seed == part.seed.min()]
            best = part[part.rate == tried.rate[tried.val.idxmax()]]
            used += [*best.record]
            deviation = f" ± {best.test.std(ddof=1):.1f}" if len(best) > 1 else ""
            row = best.iloc[0][["task", "method", "epochs", "training images", "rate"]].to_dict()
            rows.append({**row, "test accuracy, %": f"{best.test.mean():.1f}{deviation}", "seeds": len(best)})
        if rows:
            self.page.present(
                pd.DataFrame(rows), evidence="trend", records=used, cell="real",
                how=f"{REAL}, normalised with 0.5; splits in the style of VTAB-1k, not VTAB-1k's own.",
                caption="Kept runs on real images: mean and standard deviation over seeds.",
            )  # fmt: skip
        command = (
            f'make notebook NAME={self.page.name} PROFILE=paper ARGS="-p data_dir FOLDER -p weights FILE\n'
            f"  -p backbone {REAL} -p tasks '[dtd10]' -p studies '[benchmark]'\""
        )
        told = "More of this" if rows else "No such run is kept yet. This"
        display(HTML(f'<div class="vp-notrun">{told} is run with<pre>{html.escape(command)}</pre></div>'))


def near_chance(frame: pd.DataFrame) -> list[str]:
    """"task on backbone" wherever even the best variant's mean is below twice that of guessing; embedded tasks only."""
    known, found = embedded_tasks(), frame[frame.task.isin(embedded_tasks())]
    best = found.groupby(["task", "backbone", "variant"]).test.mean().groupby(["task", "backbone"]).max()
    return [f"{task} on {backbone}" for (task, backbone), test in best.items() if test < 200 / len(known[task]["classes"])]


def kept_rows(kind: str, **settings) -> list[records.Record]:
    """The records of a kind with these settings, the newest of each; they may be of data that is not on this machine."""
    found = {}
    for store in reversed(records.stores()):
        for path in sorted(store.glob(f"{kind}/*.json"), key=lambda path: path.stat().st_mtime):
            if ".failed" not in path.name:
                record = records.read_record(path)
                if all(record.settings.get(key) == value for key, value in settings.items()):
                    found[json.dumps(record.settings, sort_keys=True)] = record
    return list(found.values())
