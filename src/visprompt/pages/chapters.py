"""What the chapters on DA-VPT, iVPT and SPT share: their parameters, and the runs they show."""

import html
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd
from IPython.display import HTML, display

from .. import papers, records
from ..data.tasks import embedded_tasks, group_of
from ..errors import BadInput, choose
from ..methods import METHODS
from ..models.embedded import networks
from ..progress import progress
from ..studies import grids, statistics
from ..studies.sweeps import Bench, Lab, Run, rate_name
from .page import Page
from .parameters import Parameters
from .plots import NAMES

QUICK_TASK = "position"  # where the methods differ most
REAL = "vit_tiny_patch16_224.augreg_in21k_ft_in1k"  # a published ViT small enough for a processor


@dataclass(frozen=True)
class ChapterParameters(Parameters):
    """What such a chapter takes. In the quick profile it runs its own methods on one task, and shows kept records."""

    backbone: str | None = None  # plays "supervised" in place of the profile's, and no other backbone is used
    weights: str | list[str] | None = "pretrained"  # or a file for the one backbone, or [NAME=FILE, ...]
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
            "search": not quick,
            "studies": [] if quick and not narrowed else None,
        }
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        for name in ("tasks", "methods", "seeds"):
            if getattr(self, name) == []:
                raise BadInput(f"parameter {name} is an empty list; leave it out to take the profile's.")
        for method in self.methods or []:
            choose("method", method, METHODS)
        for name in self.studies or []:
            choose("study", name, grids.studies())
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
        self.lab = Lab(Bench(recipe, p.weights, p.data_dir, p.device, changes, p.profile))
        self.cast = grids.cast(p.profile, backbone=p.backbone, tasks=p.tasks or (), methods=p.methods or ())
        self.left_out: dict[str, list[str]] = {}  # why a run is not possible on the data at hand -> what looked it up
        grids.check_foreign(self.cast, p.data_dir)
        if p.profile == "quick" and p.backbone is None and p.tasks is None and p.methods is None:
            narrow = replace(self.cast, only_tasks=(QUICK_TASK,), only_methods=tuple(quick_methods))
            grids.study("benchmark", narrow, self.lab, seeds=p.seeds)

    @cached_property
    def frames(self) -> dict[str, pd.DataFrame]:
        """The runs of each study; what is asked for and has no record is run now."""
        return {name: self.frame(name) for name in progress(self.own, self.page.name)}

    def frame(self, name: str) -> pd.DataFrame:
        """One study's runs, each once, or an empty frame with the columns variant, task, seed and group."""
        run = self.p.studies is None or name in self.p.studies
        kept = [seed for seed in self.p.kept_seeds if not run or seed not in self.p.seeds]
        found = grids.study(
            name, self.cast, self.lab, seeds=self.p.seeds if run else (), kept_seeds=kept, search=bool(run and self.p.search)
        )
        for why, variants in found.attrs["left_out"].items():
            self.left_out.setdefault(why, []).extend(variants)
        if not len(found):
            return pd.DataFrame(columns=["variant", "task", "seed", "group", "backbone", "test", "record", "train_size"])
        return found.loc[~(found.variant + found.run.map(repr)).duplicated()]

    def look(self, measurement: Callable, run: Run, compute: bool) -> records.Record | None:
        """The record of a measurement of `insights` on a run, None too where the data at hand cannot carry the run.

        Raises:
            BadInput: with `compute`, whatever keeps it from being run.
        """
        if compute:
            return measurement(run, self.lab)
        record, why = grids.looked_up(lambda: measurement(run, self.lab, compute=False), run, self.lab)
        if why:
            self.left_out.setdefault(why, []).append(measurement.__name__.replace("_", " "))
        return record

    def show_left_out(self) -> None:
        """Say what was looked up in vain because the data at hand cannot carry it, and why."""
        told = [f"{grids.listed(dict.fromkeys(what))}: {why}" for why, what in self.left_out.items()]
        if told:
            rows = "".join(f"<li>{html.escape(line)}</li>" for line in told)
            display(HTML(f'<div class="vp-notrun">Left out, because it is not possible here:<ul>{rows}</ul></div>'))

    def rows(self, *names: str, variants: Sequence[str] = (), tasks: str | None = None, part: str | None = None):
        """Rows of several studies together.

        Args:
            variants: these alone, in this order.
            tasks: a list of tasks of studies.yaml, such as "vtab", and with it the foreign tasks that are run for it.
            part: the backbone's part, such as "mae".
        """
        frame = pd.concat([self.frames[name] for name in names if len(self.frames[name])] or [self.frames[names[0]]])
        if tasks is not None:
            frame = frame[frame.task.isin(self.cast.playing(tasks))]
        if part is not None:
            frame = frame[frame.backbone == self.cast.backbones.get(part)]
        if variants:
            frame = pd.concat([frame[frame.variant == variant] for variant in variants])
        return frame

    def how(self, frame: pd.DataFrame) -> str:
        """How the numbers of some rows came about, in a sentence."""
        seeds = frame.groupby(["variant", "task"]).seed.nunique()
        counted = f"{seeds.min()}" if seeds.min() == seeds.max() else f"{seeds.min()} to {seeds.max()}"
        own = set(frame.task) <= set(embedded_tasks()) and set(frame.backbone) <= set(networks())
        kind = "Small backbones and tasks of this project, a direction only. " if own else ""
        data = "" if own or "record" not in frame else f" on {self.data([*frame.record])}"
        told = f"{kind}{', '.join(dict.fromkeys(frame.backbone))}{data}; {counted} seed{'s' * (counted != '1')} a cell."
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

    def answers(
        self, claim: str, frame: pd.DataFrame, variants: Sequence[str], on: str | Sequence[str], parts: Sequence[str] = ()
    ) -> pd.DataFrame:
        """The rows by which a claim may be judged; where there are none though all variants ran, the page says why.

        Args:
            variants: what the claim compares.
            on: the data sets it speaks of, a list of studies.yaml such as "vtab" or names. Foreign tasks are none.
            parts: the pre-trainings it is a mean over, such as "mae"; none: any.
        """
        tasks = self.cast.tasks[on] if isinstance(on, str) else list(on)
        if not set(variants) <= set(frame.variant):
            return frame.iloc[:0]  # not run here; the artifact says so
        missing = [part for part in parts if part not in self.cast.backbones]
        if missing:
            named = [grids.listed(names) for names in (parts, missing)]
            not_judged(claim, f"it is about {named[0]}, and no backbone plays {named[1]} here")
            return frame.iloc[:0]
        rows, why = grids.whole(frame, variants, tasks, [self.cast.backbones[part] for part in parts])
        if why:
            not_judged(claim, why)
        return rows

    def of_group(self, group: str, part: str = "vtab") -> list[str]:
        """The tasks of a part that are in one of VTAB's groups."""
        return [task for task in self.cast.tasks[part] if group_of(task) == group]

    def judge(
        self,
        claim: str,
        frame: pd.DataFrame,
        better: str,
        worse: str,
        note: str = "",
        *,
        on: str | Sequence[str],
        parts: Sequence[str] = (),
    ) -> None:
        """Hold the paired difference of two variants, in points, against a claim that `answers` lets be judged."""
        rows = self.answers(claim, frame, [better, worse], on, parts)
        if not len(rows):
            return
        found = statistics.gain(rows, better, worse)
        tasks, seeds = (f"{n} {word}{'s' * (n != 1)}" for n, word in ((found.tasks, "task"), (found.seeds, "seed")))
        told = f"{better} − {worse}, paired by seed: {tasks}, {seeds}, better on {found.better_tasks} of {tasks}"
        told += f", signed ranks over tasks p = {found.p_tasks:.2g}" if found.p_tasks == found.p_tasks else ""
        self.page.judge(
            claim, found.mean, found.low, found.high, evidence="trend", records=found.records, note=f"{told}. {note}".strip()
        )

    def pooled(self, record: records.Record) -> int:
        """Over how many test images a measurement is a mean: its pool, or all where the task has fewer."""
        size = self.lab.backbone(record.settings["backbone"]).image_size
        return min(record.settings["pool"], len(self.lab.task(record.settings["task"], size).test[1]))

    def data(self, used: Sequence[records.Record]) -> str:
        """The data of some records, as far as these know them."""
        known = [record.settings for record in used]
        told = [f"{s['task']} ({s['train_size']} training images, resize {s['resize']})" for s in known]
        return ", ".join(dict.fromkeys(told))

    def real_images(self) -> None:
        """Show the kept runs of REAL on real images, each method at its best rate on validation, and how to make more.

        A row is a mean over seeds of runs that agree in everything else.
        """
        alike, rows, used = {}, [], []
        kept = kept_rows("tune", backbone=REAL)
        order = {slug: place for place, slug in enumerate(METHODS)}
        for record in sorted(kept, key=lambda r: (r.settings["task"], order[r.settings["method"]], r.settings["seed"])):
            searched = {rate_name(record.settings["method"]): None}
            same = {**record.settings, "recipe": {**record.settings["recipe"], **searched}, "seed": None}
            alike.setdefault(json.dumps([same, record.data, record.weights], sort_keys=True), []).append(record)
        for part in alike.values():
            field = rate_name(part[0].settings["method"])
            tried = [record for record in part if record.settings["seed"] == part[0].settings["seed"]]
            rate = max(tried, key=lambda record: record.values["val"]).settings["recipe"][field]
            best = [record for record in part if record.settings["recipe"][field] == rate]
            s, test = best[0].settings, pd.Series([record.values["test"] for record in best])
            used += best
            rows.append(
                {
                    "task": s["task"],
                    "method": NAMES[s["method"]],
                    "settings": ", ".join(f"{k} {v}" for k, v in s["method_settings"].items() if v is not None),
                    "epochs": s["recipe"]["epochs"],
                    "batch": s["recipe"]["batch_size"],
                    "training images": s["train_size"],
                    "data": best[0].data,
                    "weights": best[0].weights,
                    "rate": rate,
                    "test accuracy, %": f"{test.mean():.1f}" + (f" ± {test.std(ddof=1):.1f}" if len(best) > 1 else ""),
                    "seeds": len(best),
                }
            )
        if rows:
            table = pd.DataFrame(rows)
            cells = table.groupby(["task", "method"])
            plain = [name for name in ("settings", "batch", "data", "weights") if cells[name].nunique().max() == 1]
            norms = [record.settings["normalisation"] for record in used]
            pixels = dict.fromkeys(f"mean {norm['mean']}, deviation {norm['std']}" for norm in norms)
            known = sorted(set(table.task) & set(grids.cast("paper").tasks["vtab"]))
            whose = f"of {grids.listed(known)} they do not say whose split" if known else "not VTAB-1k's own splits"
            self.page.present(
                table.drop(columns=plain),
                evidence="trend",
                records=used,
                cell="real",
                how=f"{REAL}, pixels of {'; '.join(pixels)}. Data by the records: {self.data(used)}; {whose}.",
                caption="Kept runs on real images: mean and standard deviation over seeds.",
            )
        command = (
            f'make notebook NAME={self.page.name} PROFILE=paper ARGS="-p data_dir FOLDER -p weights FILE\n'
            f"  -p backbone {REAL} -p tasks '[dtd10]' -p studies '[benchmark]'\""
        )
        told = "More of this" if rows else "No such run is kept yet. This"
        display(HTML(f'<div class="vp-notrun">{told} is run with<pre>{html.escape(command)}</pre></div>'))


def not_judged(claim: str, why: str) -> None:
    """Say on the page why a claim is not judged there."""
    metric = papers.claim(claim).metric.strip()
    display(
        HTML(
            f'<p class="vp-claim"><span class="vp-badge vp-not-run">not judged</span> {html.escape(metric)}: '
            f"{html.escape(why)}. <code>{claim}</code></p>"
        )
    )


def near_chance(frame: pd.DataFrame) -> list[str]:
    """ "task on backbone" wherever even the best variant's mean is below twice that of guessing; embedded tasks only."""
    known, found = embedded_tasks(), frame[frame.task.isin(embedded_tasks())]
    best = found.groupby(["task", "backbone", "variant"]).test.mean().groupby(["task", "backbone"]).max()
    return [f"{task} on {backbone}" for (task, backbone), test in best.items() if test < 200 / len(known[task]["classes"])]


def kept_rows(kind: str, **settings) -> list[records.Record]:
    """The records of a kind with these settings that the project keeps, also of data that is not on this machine."""
    kept = records.all_records(kind, of=records.stores()[1:])
    return [record for record in kept if all(record.settings.get(key) == value for key, value in settings.items())]
