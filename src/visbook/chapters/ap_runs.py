"""What the pages on AP's accuracy share: their parameters, the runs they show, and what may be said
of them."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd
from IPython.display import HTML, display

from visprompt.data.tasks import embedded_tasks
from visprompt.errors import BadInput, choose
from visprompt.methods import METHODS, method_class
from visprompt.models.embedded import networks
from visprompt.records import Record

from ..pages import plots
from ..pages.page import Page
from ..pages.parameters import FitParameters, read_parameters
from ..studies import evidence
from ..studies.comparable import whole
from ..studies.grids import cast
from ..studies.lab import Lab, LabSettings, Run
from ..studies.statistics import difference
from ..studies.sweeps import sweep

BACKBONES = {
    "quick": ["vit_micro_patch4_24", "resnet_micro_24"],
    "paper": ["vit_large_patch16_224.augreg_in21k_ft_in1k", "resnet101.tv_in1k"],
}
COMPACT = (
    "the paper itself excepts compact models such as ResNet-18 and ViT-Tiny "
    "(ap.table-1.compact-not-over-norm), and"
)
# on which the paper tries every block
LAYER_TASKS = {"quick": ["position"], "paper": cast("paper").tasks["layers"]}
NINETEEN = cast("paper").tasks["full"]  # the data sets of Table 1
REHEARSED_SHOTS = 4  # few of the few images of a rehearsal, which has twice as many of every task
EVIDENCE = "trend"  # other data or other weights than the paper's


@dataclass(frozen=True)
class ApParameters(FitParameters):
    """What a page on AP's accuracy takes; what is left out is the profile's."""

    backbone: str | None = None  # None: a ViT and a ResNet
    # or a file, or [NAME=FILE, ...] for both backbones
    weights: str | list[str] | None = "pretrained"
    tasks: list[str] | None = None
    methods: list[str] | None = None
    seeds: list[int] | None = None
    # seeds shown where a kept record has them, and not run otherwise
    kept_seeds: list[int] | None = None
    data_dir: str | None = None  # folder of the tasks that are not embedded
    few_shot: int | None = None  # training images of the few-shot runs

    def of_profile(self) -> dict:
        """The profile's values of the parameters; a page adds its tasks. Seed 0 is what fits into
        ten minutes."""
        methods = ["linear-probe", "full-finetune", "norm-tune", "vp", "ap"]
        if self.profile == "quick":
            return dict(methods=methods, seeds=[0], kept_seeds=[1, 2, 3], few_shot=160)
        if self.profile == "rehearsal":
            return dict(
                methods=methods, seeds=[0], kept_seeds=[], few_shot=REHEARSED_SHOTS, epochs=1
            )
        return dict(methods=methods, seeds=[0, 1, 2, 3, 4], kept_seeds=[], few_shot=1000)

    def __post_init__(self):
        super().__post_init__()
        for name, value in self.of_profile().items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
            if getattr(self, name) == [] and name not in ("kept_seeds", "looked_up"):
                raise BadInput(
                    f"parameter {name} is an empty list; leave it out to take the profile's."
                )
        for method in self.methods:
            choose("method", method, METHODS)

    @property
    def backbones(self) -> list[str]:
        """The backbones of the page, the ViT first."""
        return BACKBONES[self.plan] if self.backbone is None else [self.backbone]


class ApRuns:
    """The runs of a page; nothing is loaded or run before it is asked for.

    Args:
        page: the notebook's page.
        p: its parameters.
    """

    takes = ApParameters  # the parameters of the page

    def __init__(self, page: Page, p: ApParameters):
        self.page, self.p = page, p
        self.lab = Lab(LabSettings(p.plan, p.weights, p.data_dir, p.device, p.changes, p.profile))

    @classmethod
    def opened(cls, name: str, namespace: dict) -> "ApRuns":
        """The runs of a notebook, from the parameters among its variables (`globals()`). Nothing is
        run yet."""
        plots.style()
        p = read_parameters(cls.takes, namespace)
        return cls(Page(name, p), p)

    @property
    def is_short(self) -> bool:
        """Whether a page from nothing recorded must be short: the quick profile's own backbones."""
        return self.p.profile == "quick" and self.p.backbone is None

    @cached_property
    def left_out(self) -> dict[tuple[str, str], str]:
        """(backbone, task) -> why it is not on the page, or nothing."""
        return {
            (name, task): self.why_left_out(name, task)
            for task in self.p.tasks
            for name in self.p.backbones
        }

    @property
    def at_hand(self) -> list[tuple[str, str]]:
        """(backbone, task) of the page: whose weights and data are at hand; of a short page the
        ResNet if it has records."""
        return [pair for pair, why in self.left_out.items() if not why]

    def show_left_out(self, lines: Sequence[str] | None = None) -> None:
        """Say what is not on the page, and why; the backbones and tasks unless told."""
        if why := dict.fromkeys(filter(None, self.left_out.values() if lines is None else lines)):
            rows = "".join(f"<li>{html.escape(line)}</li>" for line in why)
            display(HTML(f'<div class="vp-notrun">Left out:<ul>{rows}</ul></div>'))

    def why_left_out(self, backbone: str, task: str) -> str:
        """Why a backbone and task are not on the page, or nothing."""
        if self.p.profile == "paper":
            return self.lab.lacking(Run(backbone, task, "ap"))
        if not self.is_short or self.is_vit(backbone):
            return ""
        known = self.lab.do(self.ap(backbone, 0, task, block=self.place(backbone)), compute=False)
        return "" if known else self.without_records(backbone, backbone)

    def without_records(self, what: str, backbone: str) -> str:
        """Why something of a short page is not there, and the command that runs it."""
        return (
            f"no records here: {what}. This would run it: make notebook "
            f'NAME={self.page.name} ARGS="-p backbone {backbone}"'
        )

    @property
    def backbones(self) -> list[str]:
        """The backbones of the page that can be run here, the ViT first."""
        return [name for name in self.p.backbones if name in {name for name, _ in self.at_hand}]

    @property
    def tasks(self) -> list[str]:
        """The tasks of the page that can be run here."""
        return [task for task in self.p.tasks if task in {task for _, task in self.at_hand}]

    def is_vit(self, name: str) -> bool:
        """Whether a backbone is a ViT; a Swin is one here."""
        return self.lab.backbone(name).family != "resnet"

    @property
    def vits(self) -> list[str]:
        return [name for name in self.backbones if self.is_vit(name)]

    @property
    def resnets(self) -> list[str]:
        return [name for name in self.backbones if not self.is_vit(name)]

    def place(self, name: str) -> int:
        """The paper's block, counted from 0: a ViT's third, a ResNet's third-to-last (Section
        6.1)."""
        return 2 if self.is_vit(name) else self.lab.backbone(name).depth - 3

    def others(self, name: str) -> list[str]:
        """The methods beside AP that a backbone can carry."""
        family = self.lab.backbone(name).family
        return [
            method
            for method in self.p.methods
            if method != "ap" and family in method_class(method).families
        ]

    def ap(self, name: str, seed: int, task: str, train_size: int | None = None, **settings) -> Run:
        """A run of AP."""
        return Run(name, task, "ap", seed, train_size, settings)

    def amounts(self, backbone: str, task: str, wanted: Sequence[int | None]) -> list[int | None]:
        """Numbers of training images, each once, without multiples of few_shot that the task lacks;
        None: the whole split."""
        try:
            split = len(self.lab.task(task, self.lab.backbone(backbone).image_size).train[1])
        except BadInput:
            return list(wanted)  # the runs will fail and say why
        most = split + embedded_tasks().get(task, {}).get("pool", 0)
        possible = [size for size in wanted if size in (None, self.p.few_shot) or size <= most]
        return list(dict.fromkeys(None if size == split else size for size in possible))

    def runs_of(self, backbone: str, seed: int) -> list[Run]:
        """Every run of the page on one backbone with one seed."""
        raise NotImplementedError

    def is_run_here(self, run: Run) -> bool:
        """Whether a run is done where it has no record; else it is only looked up."""
        return True

    def asked(self, seeds: Sequence[int]) -> list[Run]:
        """The runs of the page with these seeds, each once."""
        found = [
            run
            for name in self.backbones
            for seed in dict.fromkeys(seeds)
            for run in self.runs_of(name, seed)
        ]
        return list({str(run): run for run in found if run.method in self.p.methods}.values())

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The runs as `sweep` gives them, with "kind", "block", "single" (one block) and "full"
        (the whole split)."""
        every = self.asked([*self.p.seeds, *self.p.kept_seeds])
        here = [run.seed in self.p.seeds and self.is_run_here(run) for run in every]
        if every:
            runs, kept = (
                [run for run, mine in zip(every, here, strict=True) if mine is wanted]
                for wanted in (True, False)
            )
            frame = sweep(runs, self.lab, self.page.name, kept=kept)
        else:  # nothing of it is possible here
            frame = pd.DataFrame(
                columns=[
                    "backbone",
                    "task",
                    "method",
                    "seed",
                    "train_size",
                    "test",
                    "val",
                    "record",
                    "run",
                ]
            )
        # not every slice has AP
        frame = frame.reindex(columns=list(dict.fromkeys([*frame.columns, "block", "kind"])))
        frame["kind"] = frame["kind"].where(frame["kind"].notna(), "add")
        frame["single"] = frame["block"].map(
            lambda block: isinstance(block, (int, float)) and not pd.isna(block)
        )
        frame["full"] = [run.train_size is None for run in frame.run]
        return frame

    def part(
        self, backbone, method, *, size=None, block=None, kind="add", task=None
    ) -> pd.DataFrame:
        """The rows of one method on one backbone: whole training split, AP at the paper's place
        unless told."""
        rows = self.frame[(self.frame.backbone == backbone) & (self.frame.method == method)]
        rows = rows[rows.full] if size is None else rows[rows.train_size == size]
        if method == "ap":
            block = self.place(backbone) if block is None else block
            rows = rows[(rows.kind == kind) & (rows.block.map(lambda b: b == block))]
        return (
            rows
            if task is None
            else rows[rows.task.isin([task] if isinstance(task, str) else task)]
        )

    def answers(
        self, claim: str, *parts: pd.DataFrame, on: Sequence[str] | None = None
    ) -> list[pd.DataFrame] | None:
        """Parts of the runs, each cut to the data sets that a claim speaks of; None, with the
        reason, where some lack.

        Args:
            on: those data sets; None: those on which the paper tries every block.
        """
        names = [str(number) for number in range(len(parts))]
        together = pd.concat([rows.assign(variant=name) for name, rows in zip(names, parts)])
        rows, why = whole(together, names, LAYER_TASKS[self.p.plan] if on is None else on)
        if why and all(len(part) for part in parts):
            self.page.not_judged(claim, why)
        return None if why else [rows[rows.variant == name] for name in names]

    def judge_lead(
        self, claim: str, better: pd.DataFrame, worse: pd.DataFrame, on=None, note: str = ""
    ) -> None:
        """Hold how far a part of the runs is above another, in points and paired by seed, against a
        claim."""
        if found := self.answers(claim, better, worse, on=on):
            used = records_of(*found)
            self.page.judge(
                claim, *difference(*found), evidence=self.evidence(used)[0], records=used, note=note
            )

    def evidence(self, used: Sequence[Record]) -> tuple[str, str]:
        """What some runs are evidence of, and in the paper profile a sentence that says why it is
        only a trend."""
        p = self.p
        if p.profile != "paper":
            return EVIDENCE, ""
        given = [name for name in ("backbone", "epochs") if getattr(p, name) is not None]
        whole = set(self.takes(profile="paper").tasks) <= set(self.tasks) and not given
        word, why = evidence.of_records(
            used, "ap", "" if whole else "its list of runs was narrowed"
        )
        return word, f"Not the paper's own setting: {why}." if why else ""

    def show(
        self, artifact: str, thing, used: Sequence[Record], caption: str, alt: str | None = None
    ) -> None:
        """Show a figure or a table that is made of these records; nothing where there is none."""
        if not len(used):
            return
        word, why = self.evidence(used)
        self.page.show(
            artifact,
            thing,
            evidence=word,
            how=f"{self.how} {why}".strip(),
            records=used,
            caption=caption,
            alt=alt,
        )

    @property
    def how(self) -> str:
        """How the numbers came about, in a sentence."""
        told = f"{', '.join(self.backbones)} on {', '.join(self.tasks)}; mean over seeds."
        own = {*self.backbones} <= {*networks()} and {*self.tasks} <= {*embedded_tasks()}
        return (
            f"Small backbones and tasks of this project, a direction only: {told}" if own else told
        )


def records_of(*parts: pd.DataFrame) -> list[Record]:
    """The records of parts of the runs."""
    return [record for rows in parts for record in rows.record]


def seeds_of(rows: pd.DataFrame) -> str:
    """How many seeds some runs have, in words."""
    return f"{rows.seed.nunique()} seeds" if rows.seed.nunique() != 1 else "one seed"


def shown_of(rows: pd.DataFrame) -> str:
    """What a cell of a table of accuracies shows."""
    return (
        f"mean ± standard deviation over {seeds_of(rows)}"
        if rows.seed.nunique() > 1
        else seeds_of(rows)
    )
