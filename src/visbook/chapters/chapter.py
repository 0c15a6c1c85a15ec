"""The runs of a page that shows studies, and what every such page does with them: tables, figures,
claims."""

import html
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import pandas as pd
from IPython.display import HTML, display

from visprompt import papers, records
from visprompt.data.tasks import embedded_tasks, group_of
from visprompt.errors import choose
from visprompt.models.embedded import networks
from visprompt.progress import progress
from visprompt.words import NOT_RUN

from ..pages import plots
from ..pages.friendly import ends
from ..pages.judging import badge
from ..pages.page import Page
from ..pages.parameters import read_parameters
from ..studies import comparable, effects, evidence, grids, plan, statistics
from ..studies.artifact_runs import at_rate_of
from ..studies.case import Run
from ..studies.lab import Lab, LabSettings
from ..studies.roles import recipe_scope
from . import photographs_first, real, recipe_table
from .parameters import ChapterParameters

FULL = "Full fine-tuning"  # as studies.yaml names it
QUICK_TASK = "position"  # where the methods differ most
# of runs, at the least
COLUMNS = ["variant", "task", "seed", "group", "backbone", "test", "record", "train_size"]
# part of studies.yaml -> as printed
PARTS = {"supervised": "supervised", "mae": "MAE", "mocov3": "MoCo-v3"}


class Chapter:
    """The runs of a page.

    Args:
        page: the notebook's page.
        p: its parameters.
        own: the studies it shows.
        quick_methods: slugs that the quick profile runs on QUICK_TASK with seed 0; pages of one
            chapter are run side by side, so one of them alone has any.
        quick_studies: whose runs those are, on the supervised ViT alone.
        paper: whose recipe the runs follow, where the page is on several.
    """

    takes = ChapterParameters  # the parameters of the page

    def __init__(
        self,
        page: Page,
        p: ChapterParameters,
        own: Sequence[str],
        quick_methods: Sequence[str],
        quick_studies: Sequence[str] = ("benchmark",),
        paper: str = "",
    ):
        for name in p.studies or []:
            choose("study of this page", name, own)
        self.page, self.p, self.own, self.quick_methods = page, p, list(own), list(quick_methods)
        self.quick_studies = list(quick_studies)
        page.studies = self.own
        self.paper = paper or page.paper
        recipe = plan.recipes().get(self.paper, p.plan) if p.plan == "paper" else p.plan
        self.lab = Lab(LabSettings(recipe, p.weights, p.data_dir, p.device, p.changes, p.profile))
        self.scope = recipe_scope(
            recipe, p.profile, backbone=p.backbone, tasks=p.tasks or (), methods=p.methods or ()
        )
        self.lenient = p.profile == "paper"  # shows what there is the data for
        self.guessed: dict[str, list[str]] = {}  # claim -> the cells near chance that left its mean
        self.left_out: dict[
            str, list[str]
        ] = {}  # why a run is not possible on the data at hand -> what looked it up
        grids.check_foreign(self.scope, p.data_dir)

    @classmethod
    def opened(
        cls,
        name: str,
        namespace: dict,
        own: Sequence[str],
        quick_methods: Sequence[str] = (),
        quick_studies: Sequence[str] = ("benchmark",),
        *,
        no_paper: bool = False,
    ) -> "Chapter":
        """The chapter of a notebook, from the parameters among its variables (`globals()`). Runs
        nothing yet.

        Args:
            no_paper: it stands for no paper, so outside of the quick profile it runs what is asked
                for alone.
        """
        plots.style()
        p = read_parameters(cls.takes, namespace)
        if no_paper and p.profile != "quick" and not namespace.get("studies"):
            p = replace(p, studies=[], kept_seeds=[])
        return cls(Page(name, p), p, own, quick_methods, quick_studies)

    @cached_property
    def frames(self) -> dict[str, pd.DataFrame]:
        """The runs of each study; what is asked for and has no record is run now."""
        p = self.p
        if (
            self.quick_methods
            and p.profile == "quick"
            and p.backbone is None
            and p.tasks is None
            and p.methods is None
        ):
            narrow = replace(
                self.scope,
                only_tasks=(QUICK_TASK,),
                only_methods=tuple(self.quick_methods),
                backbones={part: self.scope.backbones[part] for part in ("supervised", "ap-vit")},
            )
            for name in self.quick_studies:
                grids.study(name, narrow, self.lab, seeds=p.seeds)
        return {name: self.frame(name) for name in progress(self.own, self.page.name)}

    def frame(self, name: str) -> pd.DataFrame:
        """One study's runs, each once, or an empty frame with the columns variant, task, seed and
        group."""
        run = self.p.studies is None or name in self.p.studies
        kept = [seed for seed in self.p.kept_seeds if not run or seed not in self.p.seeds]
        seeds, nothing = self.p.seeds if run else (), pd.DataFrame(columns=COLUMNS)
        if not (kept or seeds):
            return nothing
        found = grids.study(
            *(name, self.scope, self.lab),
            seeds=seeds,
            kept_seeds=kept,
            search=bool(run and self.p.search),
            lenient=self.lenient,
        )
        for why, variants in found.attrs["left_out"].items():
            self.left_out.setdefault(why, []).extend(variants)
        if not len(found):
            return nothing
        return found.loc[~(found.variant + found.run.map(repr)).duplicated()]

    def look(self, measurement: Callable, run: Run, compute: bool) -> records.Record | None:
        """The record of a measurement of `insights` on a run, None too where the data at hand
        cannot carry the run.

        Raises:
            BadInput: with `compute`, whatever keeps it from being run.
        """
        if compute:
            why = self.lab.resolve(run).lacking if self.lenient else ""
            if not why:
                return measurement(run, self.lab)
            self.left_out.setdefault(why, []).append(measurement.__name__.replace("_", " "))
            return None
        record, why = grids.looked_up(
            lambda: measurement(run, self.lab, compute=False), run, self.lab
        )
        if why:
            self.left_out.setdefault(why, []).append(measurement.__name__.replace("_", " "))
        return record

    def show_left_out(self) -> None:
        """Say what was looked up in vain because the data at hand cannot carry it, and why."""
        told = [
            f"{comparable.listed(dict.fromkeys(what))}: {why}"
            for why, what in self.left_out.items()
        ]
        if told:
            rows = "".join(f"<li>{html.escape(line)}</li>" for line in told)
            display(
                HTML(
                    f'<div class="vp-notrun">Left out, because it is not possible '
                    f"here:<ul>{rows}</ul></div>"
                )
            )

    def rows(
        self,
        *names: str,
        variants: Sequence[str] = (),
        tasks: str | None = None,
        part: str | None = None,
    ):
        """Rows of several studies together.

        Args:
            variants: these alone, in this order.
            tasks: a list of tasks of studies.yaml, such as "vtab", and with it the foreign tasks
                that are run for it.
            part: the backbone's part, such as "mae".
        """
        found = [self.frames[choose("study of this page", name, self.frames)] for name in names]
        frame = pd.concat([frame for frame in found if len(frame)] or found[:1])
        if tasks is not None:
            frame = frame[frame.task.isin(self.scope.tasks_for(tasks))]
        if part is not None:
            frame = frame[frame.backbone == self.scope.backbones.get(part)]
        if variants:
            frame = pd.concat([frame[frame.variant == variant] for variant in variants])
        return frame

    def cells(self, artifact: str) -> list[plan.Cell]:
        """The cells that plan.yaml lists for an artifact."""
        return plan.cells_of(artifact, self.p.profile, scope=self.scope)

    def measured(
        self, artifact: str, measurement: Callable, variants: Sequence[str] = ()
    ) -> pd.DataFrame:
        """Records of a measurement of `insights` on the runs that plan.yaml lists for an artifact.

        Args:
            variants: on these alone; none: on all.

        Returns:
            The columns variant, task, seed, backbone and record.
        """
        p, found = self.p, []
        for cell in self.cells(artifact):
            if variants and cell.variant not in variants:
                continue
            here = p.studies is None or cell.study in p.studies
            run = at_rate_of(cell.run, (cell.like or cell.run) if cell.grid else None, self.lab)
            for seed in sorted({*p.kept_seeds, *(p.seeds if here else [])}):
                record = self.look(measurement, replace(run, seed=seed), here and seed in p.seeds)
                if record is not None:
                    found.append((cell.variant, run.task, seed, run.backbone, record))
        return pd.DataFrame(found, columns=["variant", "task", "seed", "backbone", "record"])

    def planned(self, artifact: str) -> pd.DataFrame:
        """The rows that plan.yaml lists for an artifact."""
        frame = self.rows(*plan.artifact(artifact).studies)
        wanted = {repr(cell.run) for cell in self.cells(artifact)}
        cell = lambda run: repr(replace(run, seed=0, rate=None, changes={}))
        return frame.loc[[cell(run) in wanted for run in frame.get("run", ())]]

    def how(self, frame: pd.DataFrame) -> str:
        """How the numbers of some rows came about, in a sentence."""
        if not len(frame):
            return "Not run."
        seeds = frame.groupby(["variant", "task"]).seed.nunique()
        counted = (
            f"{seeds.min()}" if seeds.min() == seeds.max() else f"{seeds.min()} to {seeds.max()}"
        )
        own = set(frame.task) <= set(embedded_tasks()) and set(frame.backbone) <= set(networks())
        data = "" if own or "record" not in frame else f" on {self.data([*frame.record])}"
        told = (
            f"{', '.join(dict.fromkeys(frame.backbone))}{data}; {counted} "
            f"seed{'s' * (counted != '1')} per cell."
        )
        if "test" not in frame:  # records of what prompts look like carry no accuracy
            return told
        told = f"{told} {statistics.told_of_fallen(frame)}".strip()
        guessed = [f"{task} on {backbone}" for task, backbone in comparable.near_chance(frame)]
        return (
            f"{told} Near chance, so left out of what is judged: {', '.join(guessed)}."
            if guessed
            else told
        )

    def evidence(self, records: Sequence[records.Record]) -> tuple[str, str]:
        """What some runs are evidence of, and in the paper profile a sentence that says why it is
        only a trend."""
        paper, p = self.paper, self.p
        if p.profile != "paper" or paper not in plan.recipes():
            return "trend", ""
        given = {
            name
            for name in ("backbone", "tasks", "methods", "studies", "epochs")
            if getattr(p, name) is not None
        }
        narrowed = f"its list of runs was narrowed ({', '.join(sorted(given))})" if given else ""
        narrowed = narrowed or ("a part of its runs is not possible here" if self.left_out else "")
        word, why = evidence.of_records(records, paper, narrowed)
        return word, f"Not the paper's own setting: {why}." if why else ""

    def end(self, artifact: str, why: str) -> None:
        """Say what of the paper's own scale was not run: in the quick profile, and wherever nothing
        was shown."""
        entry = self.page.artifacts[artifact]
        if self.p.profile == "quick" or not (entry["shows"] or entry["not_run"]):
            self.page.not_run(artifact, why=why)

    def show_recipe(self, frame: pd.DataFrame, more: Sequence[tuple] = ()) -> None:
        """What the runs of some rows used, by their records, beside the recipe of the page's paper
        and its sources.

        Args:
            more: rows (name, here, paper) of what is no field of a recipe.
        """
        used = list({record.id: record for record in frame.record}.values())
        if not used:
            return
        paper = self.paper
        rows = recipe_table.rows(used, paper)
        rows.append(
            ("how the learning rates were chosen", self.searched(frame), "on validation images")
        )
        table = pd.DataFrame([*rows, *more], columns=["", "here", "in the paper, or its code"])
        how = (
            "Left: read from the records of these runs. Right: the paper, its code, or our choice."
        )
        caption = "How the runs are made, here and in the paper."
        self.page.present(
            table, evidence="trend", how=how, records=used, caption=caption, cell="recipe"
        )

    def searched(self, frame: pd.DataFrame) -> str:
        """What chose the rates of some rows, and for how many of their cells all of it was run."""
        cells = {
            repr(cell): cell
            for run in frame.run
            for cell in [replace(run, seed=0, rate=None, changes={})]
        }
        stated = [name for name, cell in cells.items() if self.lab.resolve(cell).stated]
        for name in stated:
            del cells[name]
        told, whole = f"; stated by the recipe for {len(stated)}" * bool(stated), 0
        for cell in cells.values():
            look = lambda run: grids.looked_up(
                lambda: self.lab.do(run, compute=False), run, self.lab
            )[0]
            whole += all(look(run) is not None for run in self.lab.trials(cell))
        if not whole:
            return f"none: the recipe's own learning rate{told}"
        tries = self.lab.protocol.budget[self.lab.bench.search]
        rest = "; elsewhere that of another cell, or the recipe's" * (whole < len(cells))
        grid = self.lab.protocol.search(self.lab.bench.search)
        tries = "our search" if "outward" in grid else f"best of {tries}"
        of = f"{tries} on validation images, seed 0, for {whole} of {len(cells)} cells"
        return f"{of}{rest}{told}"

    def show_rates(self, frame: pd.DataFrame) -> None:
        """The learning rates of some runs, by backbone, variant and task."""
        if len(frame):
            rates = frame.groupby(["backbone", "variant", "task"]).rate.first().unstack()
            rates = (
                rates.map(lambda rate: "–" if rate != rate else f"{rate:g}")
                .rename_axis(None, axis=1)
                .reset_index()
            )
            self.page.present(
                rates,
                evidence=self.evidence([*frame.record])[0],
                how="From the records; the recipe's own where not all of the search was run.",
                records=[*frame.record],
                caption="Learning rates of the prompts, by task.",
                cell="rates",
            )

    def show(
        self,
        artifact: str,
        thing,
        frame: pd.DataFrame,
        caption: str,
        alt: str | Callable[[pd.DataFrame], str] | None = None,
        note: str = "",
    ) -> None:
        """Show a figure or a table that is made of the rows of `frame`; of no row, that it was not
        run.

        Args:
            thing: or the function of `frame` that makes it, as with `alt`.
        """
        if not len(frame):
            if not self.page.artifacts[artifact]["not_run"]:
                self.page.not_run(
                    artifact,
                    why="No run of it is here.",
                    command=plan.command(artifact, self.p.profile),
                )
            return
        thing = thing(frame) if callable(thing) else thing
        how = f"{self.how(frame)} {note}".strip()
        used = list({record.id: record for record in frame.record}.values())
        word, why = self.evidence(used)
        self.page.show(
            artifact,
            thing,
            evidence=word,
            how=f"{how} {why}".strip(),
            records=used,
            caption=caption,
            alt=alt(frame) if callable(alt) else alt,
        )

    def present(
        self,
        thing,
        frame: pd.DataFrame,
        caption: str,
        alt: str | None = None,
        *,
        cell: str = "",
    ) -> None:
        """Present what belongs to no artifact and is made of the rows of `frame`, as `show`."""
        if not len(frame):
            told = html.escape(f"{caption} This would run it: visprompt study {' '.join(self.own)}")
            display(HTML(f'<div class="vp-notrun">{badge(NOT_RUN)} {told}</div>'))
            return
        self.page.present(
            thing(frame) if callable(thing) else thing,
            evidence="trend",
            how=self.how(frame),
            records=[*frame.record],
            caption=caption,
            alt=alt,
            cell=cell,
        )

    def answers(
        self,
        claim: str,
        frame: pd.DataFrame,
        variants: Sequence[str],
        on: str | Sequence[str],
        parts: Sequence[str] = (),
    ) -> pd.DataFrame:
        """The rows by which a claim may be judged; where there are none though all variants ran,
        the page says why.

        Args:
            variants: what the claim compares.
            on: the data sets it speaks of, a list of studies.yaml such as "vtab" or names. Foreign
                tasks are none.
            parts: the pre-trainings it is a mean over, such as "mae"; none: any.
        """
        tasks = self.scope.tasks[on] if isinstance(on, str) else list(on)
        if not set(variants) <= set(frame.variant):
            return frame.iloc[:0]  # not run here; the artifact says so
        missing = [part for part in parts if part not in self.scope.backbones]
        if missing:
            named = [comparable.listed(names) for names in (parts, missing)]
            self.page.not_judged(
                claim, f"it is about {named[0]}, and no backbone is {named[1]} here"
            )
            return frame.iloc[:0]
        rows, why = comparable.whole(
            frame, variants, tasks, [self.scope.backbones[part] for part in parts]
        )
        if not why and variants[-1] == FULL and self.full_wins(rows):
            backbones = comparable.listed(dict.fromkeys(rows.backbone))
            why = (
                f"on {backbones} full fine-tuning is above every method on every task of "
                f"this claim, so nothing can be above it"
            )
        if why:
            self.page.not_judged(claim, why)
            return frame.iloc[:0]
        self.guessed[claim] = rows.attrs.get("near_chance", [])
        return rows

    def full_wins(self, rows: pd.DataFrame) -> bool:
        """Whether full fine-tuning is above all that the page has on the backbones, tasks and sizes
        of some rows."""
        cells, keys = (
            {*zip(rows.backbone, rows.task, rows.train_size)},
            ["backbone", "task", "train_size"],
        )
        every = pd.concat(
            [frame[[*keys, "variant", "test"]] for frame in self.frames.values() if len(frame)]
        )
        return comparable.wins_everywhere(
            every[[cell in cells for cell in zip(*(every[key] for key in keys))]], FULL
        )

    def of_study(self, name: str) -> list[str]:
        """The tasks of a study in this profile, which are what a claim that it tests speaks of."""
        return grids.tasks_of(name, replace(self.scope, foreign=()))

    def of_group(self, group: str, part: str = "vtab") -> list[str]:
        """The tasks of a part that are in one of VTAB's groups."""
        return [task for task in self.scope.tasks[part] if group_of(task) == group]

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
        drawn: bool = False,
    ) -> None:
        """Hold the difference of two variants, in points, against a claim: on photographs where
        both ran, else on the rows that `answers` lets it be judged by.

        Args:
            drawn: by these rows alone, since photographs are another setting.
        """
        asked = (frame, (better, worse), on, parts)
        if not drawn and (seen := photographs_first.answer(self, *asked)):
            photographs_first.judge(self, claim, seen, *asked)
            return
        rows = self.answers(claim, frame, [better, worse], on, parts)
        if not (found := self.gain(claim, rows, better, worse)):
            return
        fell = statistics.told_of_fallen(rows[rows.variant.isin([better, worse])])
        told = f"{better} − {worse}: {found.counted}. {self.reach(claim, found)} {fell} {note}"
        self.page.judge(
            *(claim, *found.here),
            evidence=self.evidence(found.records)[0],
            records=found.records,
            note=" ".join(told.split()),
            alike=1.0,
        )

    @cached_property
    def photographs(self) -> pd.DataFrame:
        """The kept runs on photographs, which stand before embedded tasks; none where the page was
        narrowed."""
        p = self.p
        narrowed = (p.backbone, p.tasks, p.methods) != (None,) * 3
        return real.photographs().iloc[: 0 if narrowed or p.profile != "quick" else None]

    def gain(
        self, claim: str, rows: pd.DataFrame, better: str, worse: str
    ) -> statistics.Gain | None:
        """The gain among the rows that answer a claim; where no seed has both, the claim is not
        judged."""
        found = statistics.gain(rows, better, worse)
        if len(rows) and found is None:
            self.page.not_judged(claim, f"no seed has both {better} and {worse}")
        return found

    def reach(self, claim: str, found: statistics.Gain) -> str:
        """What else is known of a gain: on other tasks, by more seeds; and which cells left its
        mean."""
        told, (low, high) = "", found.beyond
        if found.tasks >= statistics.MANY:
            wider = (low, high) != found.here[1:]
            told = f"Over tasks as well: {ends(low, high) if wider else 'no wider'}. "
        margin = papers.claim(claim).margin or 0
        if found.here[1] <= margin <= found.here[2]:
            told += enough(found.effect, margin)
        return f"{told}{self.without(claim)}"

    def without(self, claim: str) -> str:
        """Which cells left the mean that a claim is judged by."""
        return (
            f"Near chance, so left out: {', '.join(self.guessed[claim])}."
            if self.guessed.get(claim)
            else ""
        )

    def judge_values(
        self,
        claim: str,
        values: Sequence[float] | pd.DataFrame,
        used: Sequence[records.Record],
        note: str = "",
    ) -> None:
        """Hold values, one a seed or a table (seeds, tasks), against a claim; nothing where there
        are none.

        The tasks stay in both: the interval of a table is that of `effects.of_table`, that of a
        list is over seeds alone.
        """
        if len(values):
            told = "one seed" if len(values) == 1 else f"{len(values)} seeds"
            tasks = len({record.settings.get("task") for record in used})
            if isinstance(values, pd.DataFrame):
                found = effects.of_table(values).interval
            else:
                found = statistics.interval(values)
            told += f", {tasks} tasks" if tasks > 1 else ""
            told = f"{note} {told}; the interval is over seeds alone. {self.without(claim)}".strip()
            self.page.judge(claim, *found, evidence=self.evidence(used)[0], records=used, note=told)

    def judge_least(
        self,
        claim: str,
        leads: dict[str, tuple],
        on: str | Sequence[str],
        parts: Sequence[str] = (),
        note: str = "",
    ) -> None:
        """Hold the least certain of several leads against a claim; nothing where one has no answer.

        Args:
            leads: name of a lead -> (rows, better, worse).
            on, parts: the data sets and pre-trainings that the claim speaks of, as for `answers`.
        """
        gains = {}
        for name, (frame, *pair) in leads.items():
            rows = self.answers(claim, frame, pair, on, parts)
            if not (found := self.gain(claim, rows, *pair)):
                return
            gains[name] = found
        if gains:
            name, least = min(gains.items(), key=lambda item: (item[1].here[1], item[1].mean))
            told = f"Least certain of {len(gains)} leads: {name}" if len(gains) > 1 else name
            used = [record for one in gains.values() for record in one.records]
            self.page.judge(
                claim,
                *least.here,
                evidence=self.evidence(used)[0],
                records=used,
                note=" ".join(
                    f"{told}; {least.seeds} seeds. {self.reach(claim, least)} {note}".split()
                ),
                alike=1.0,
            )

    def pooled(self, record: records.Record) -> int:
        """Over how many test images a measurement is a mean: its pool, or all where the task has
        fewer."""
        size = self.lab.backbone(record.settings["backbone"]).image_size
        return min(
            record.settings["pool"], len(self.lab.task(record.settings["task"], size).test[1])
        )

    def data(self, used: Sequence[records.Record]) -> str:
        """The data of some records, as far as these know them."""
        known = [record.settings for record in used]
        told = [
            f"{s['task']} ({s['train_size']} training images, resizing: {s['resize']})"
            for s in known
        ]
        return ", ".join(dict.fromkeys(told))


def enough(effect: effects.Effect, margin: float) -> str:
    """How many seeds would decide on which side of a margin an open difference lies."""
    if effect.seeds < 2:
        return "One seed has no spread. "
    seeds = effect.seeds_to_tell(margin)
    if seeds is None:
        return f"{effects.MOST_SEEDS} seeds would not decide. "
    return f"If mean and spread stay as they are, {seeds} seeds would decide. "
