"""What AP is and how well it does: its drawing, the tables of accuracies, how the learning rates
were chosen."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from visprompt import papers
from visprompt.data.tasks import load_task
from visprompt.methods import build_method
from visprompt.models.backbones import Backbone
from visprompt.models.embedded import networks
from visprompt.records import Record
from visprompt.training.loop import tune
from visprompt.training.recipe import load_recipe

from .. import auditing
from ..pages import plots
from ..pages.page import Page
from ..studies.ap_rates import ap_rates, block_rates
from ..studies.comparable import comparable
from ..studies.grids import cast
from ..studies.lab import Run, rate_name
from ..studies.rates import below
from ..studies.statistics import Cell, difference, over_tasks, spread
from .ap_runs import COMPACT, EVIDENCE, NINETEEN, ApParameters, ApRuns, records_of

TASKS = {
    "quick": ["position", "count", "texture"],
    "paper": NINETEEN,
}
RATES = {  # tried for each method, in the quick profile
    "linear-probe": [0.002, 0.006, 0.02, 0.06, 0.2],
    "full-finetune": [0.0001, 0.0003, 0.001, 0.003, 0.01],
    "norm-tune": [0.003, 0.01, 0.03, 0.1, 0.3],
    "vp": [0.01, 0.03, 0.1, 0.3, 1.0],
    "ap": [0.01, 0.03, 0.1, 0.3, 1.0],
}
VARIANTS = {
    "product": {"block": 2, "kind": "product"},
    "concatenate": {"block": 2, "kind": "concatenate"},
    "3 blocks": {"block": [0, 1, 2]},
    "5 blocks": {"block": [0, 1, 2, 3, 4]},
}


@dataclass(frozen=True)
class TableParameters(ApParameters):
    """What the page on AP's accuracy takes."""

    # of the tasks, those that are shown where a record has them, and not run otherwise
    looked_up: list[str] | None = None
    # do the search for learning rates too, where it has no records (about an hour)
    search: bool = False

    def of_profile(self) -> dict:
        """Tasks that are asked for are run; else only the first, which is what fits into ten
        minutes."""
        looked_up = TASKS["quick"][1:] if self.profile == "quick" and self.tasks is None else []
        return super().of_profile() | {"tasks": TASKS[self.plan], "looked_up": looked_up}


class TableRuns(ApRuns):
    """Every method on every task, AP at the paper's block, on the whole training split and on few
    images."""

    takes = TableParameters

    def runs_of(self, backbone: str, seed: int) -> list[Run]:
        found = []
        for task in self.tasks:
            for size in self.amounts(backbone, task, [None, self.p.few_shot]):
                found += [
                    Run(backbone, task, method, seed, size) for method in self.others(backbone)
                ]
                found += [self.ap(backbone, seed, task, size, block=self.place(backbone))]
        return found

    def is_run_here(self, run: Run) -> bool:
        return run.task not in self.p.looked_up

    def table(self, size: int | None = None) -> tuple[pd.DataFrame, list[Record]]:
        """Mean ± standard deviation over seeds by backbone, method and task, and the mean over
        tasks; and the records."""
        rows, used = [], []
        for name in self.backbones:
            for method in self.p.methods:
                runs = self.part(name, method, size=size, task=self.tasks)
                if not len(runs):
                    continue
                used += [*runs.record]
                by_task = dict([*runs.groupby("task")])
                row = {"backbone": name, "method": plots.NAMES[method]}
                row |= {
                    task: spread(by_task[task].test, by_task[task].record)
                    for task in self.tasks
                    if task in by_task
                }
                if len(by_task) == len(self.tasks):  # fewer tasks are another mean
                    mean = np.mean([part.test.mean() for part in by_task.values()])
                    row["mean"] = Cell(f"{mean:.1f}", runs.record)
                rows.append(row)
        return pd.DataFrame(rows, dtype=object).fillna("–"), used

    def judge_gains(self, artifact: str, size: int | None = None) -> None:
        """Judge the four orders that the paper's accuracy tables assert, on every backbone at
        hand."""
        on = about(self.p.plan, artifact)
        for word, names in (("resnet", self.resnets), ("vit", self.vits)):
            for name in names[:1]:
                ap, vp, linear, norm, full = (
                    self.part(name, method, size=size, task=self.tasks)
                    for method in ("ap", "vp", "linear-probe", "norm-tune", "full-finetune")
                )
                self.judge_lead(f"{artifact}.{word}-ap-over-vp", ap, vp, on)
                self.judge_lead(f"{artifact}.{word}-ap-over-linear", ap, linear, on)
                if name in networks():
                    self.page.not_judged(
                        f"{artifact}.{word}-ap-over-norm", f"{COMPACT} {name} is smaller still"
                    )
                else:
                    self.judge_lead(f"{artifact}.{word}-ap-over-norm", ap, norm, on)
                self.judge_lead(f"{artifact}.{word}-full-over-ap", full, ap, on)

    def judge_compact(self) -> None:
        """Judge what the paper's limitations say of compact models, by the network where each is
        least certain."""
        on, found = about(self.p.profile, "ap.table-1"), {"over-vp": [], "not-over-norm": []}
        for name in (name for name in self.p.backbones if name in networks()):
            ap = self.part(name, "ap", task=self.p.tasks)
            for claim, other in (("over-vp", "vp"), ("not-over-norm", "norm-tune")):
                parts = self.answers(
                    f"ap.table-1.compact-{claim}",
                    ap,
                    self.part(name, other, task=self.p.tasks),
                    on=on,
                )
                found[claim] += [(difference(*parts), name, records_of(*parts))] if parts else []
        for claim, leads in found.items():
            if leads:
                least = (min if claim == "over-vp" else max)(
                    leads, key=lambda lead: lead[0][1 if claim == "over-vp" else 2]
                )
                used = [record for _, _, records in leads for record in records]
                told = ", ".join(f"{name} {gain[0]:.1f}" for gain, name, _ in leads)
                self.page.judge(
                    f"ap.table-1.compact-{claim}",
                    *least[0],
                    evidence=EVIDENCE,
                    records=used,
                    note=f"{told}.",
                )

    def shares(self) -> list[dict[str, pd.DataFrame]]:
        """On the first backbone, for few images and for all: method -> its rows, for the methods of
        Figure A3."""
        shown = [method for method in ("full-finetune", "vp", "ap") if method in self.p.methods]
        name, tasks = self.backbones[0], self.tasks
        return [
            {m: self.part(name, m, size=size, task=tasks) for m in shown}
            for size in (self.p.few_shot, None)
        ]

    def judge_shares(
        self, shares: Sequence[dict[str, pd.DataFrame]], used: Sequence[Record]
    ) -> None:
        """Judge AP's lead over VP at the number of images where it is least certain, and what more
        images give to whom."""
        claim, on = "ap.figure-a3.ap-over-vp", about(self.p.plan, "ap.figure-a3")
        found = [self.answers(claim, parts["ap"], parts["vp"], on=on) for parts in shares]
        if all(found):
            least = min((difference(*pair) for pair in found), key=lambda gain: gain[1])
            note = "The size at which AP's lead is least certain."
            self.page.judge(claim, *least, evidence=self.evidence(used)[0], records=used, note=note)
        claim = "ap.figure-a3.full-gains-most"
        if found := self.answers(
            claim, *(rows for parts in shares for rows in parts.values()), on=on
        ):
            means = [rows.groupby(["seed", "task"]).test.mean().unstack() for rows in found]
            full, vp, ap = (every - few for few, every in zip(means[:3], means[3:], strict=True))
            lead = full - max(vp, ap, key=lambda gains: gains.mean().mean())
            note = (
                f"From few images to all: full fine-tuning {full.mean().mean():.1f}, VP "
                f"{vp.mean().mean():.1f}, AP {ap.mean().mean():.1f}."
            )
            self.page.judge(
                claim, *over_tasks(lead), evidence=self.evidence(used)[0], records=used, note=note
            )

    def search_rows(self, name: str) -> tuple[list[dict], list[Record]]:
        """Validation accuracy of the rates tried on one backbone, the rate taken in brackets; and
        the kept records."""
        task, is_vit, backbone = load_task("position"), self.is_vit(name), self.lab.backbone(name)
        found, used = [], []
        trials = [(method, plots.NAMES[method], {}, None) for method in RATES if method != "ap"]
        by_block = block_rates(self.p.plan, is_vit, backbone.depth)
        trials += [
            ("ap", f"AP, block {block}", {"block": block}, rate)
            for block, rate in enumerate(by_block)
        ]
        if is_vit:
            trials += [
                ("ap", f"AP, {key}", VARIANTS[key], rate)
                for key, rate in ap_rates(self.p.plan, "by_variant").items()
            ]
        for method, label, choice, taken in trials:
            model = build_method(method, backbone, task.classes, **choice)
            field = rate_name(method)
            taken = taken or getattr(load_recipe("quick", method, is_vit), field)
            tried, values = {}, {}
            for rate in RATES[method]:
                recipe = load_recipe("quick", method, is_vit, **{field: rate})
                record = tune(model, task, recipe, 0, run=self.p.search)
                if record is not None:
                    used.append(record)
                    values[rate] = record.values["val"]
                    value = f"{rate:g}: {values[rate]:.1f}"
                    tried[f"rate {len(tried) + 1}"] = f"[{value}]" if rate == taken else value
            found += (
                [
                    {
                        "backbone": name,
                        "method": label,
                        **tried,
                        "below the best": below(values, taken),
                    }
                ]
                if tried
                else []
            )
        return found, used

    def show_rates(self) -> None:
        """Show the rates that were tried in the quick profile, where there are records of them."""
        found = (
            [self.search_rows(name) for name in self.backbones] if self.p.profile == "quick" else []
        )
        used = [record for _, records in found for record in records]
        if used:
            table = pd.DataFrame([row for rows, _ in found for row in rows]).fillna("–")
            # last, whatever row has the most rates
            table["below the best"] = table.pop("below the best")
            self.page.present(
                table,
                evidence="trend",
                how="On position, seed 0, 200 validation images.",
                records=used,
                caption="Rate: validation accuracy in %, the rate taken in brackets.",
                cell="rates",
            )


def about(profile: str, artifact: str) -> list[str]:
    """The data sets that an artifact's claims speak of; in the quick profile the drawn tasks that
    play their parts."""
    if profile == "quick":
        return TASKS["quick"]
    return {
        "ap.table-1": NINETEEN,
        "ap.table-3": cast("paper").tasks["vtab"],
        "ap.figure-a3": cast("paper").tasks["large"],
    }[artifact]


def draw_network(ax: Axes, at: float, y: float, color: str, text: str) -> None:
    """A network as a row of boxes at height y, with an arrow that brings something in at one of
    them."""
    for x, name in enumerate(["image", "stem", "block 0", "block 1", "block 2", "…", "head"]):
        ax.add_patch(
            FancyBboxPatch(
                (x - 0.36, y - 0.2),
                0.72,
                0.4,
                boxstyle="round,pad=0.03",
                fc="#eef2f6",
                ec="#5b6770",
            )
        )
        ax.text(x, y, name, ha="center", va="center", fontsize=9)
        if x:
            ax.add_patch(
                FancyArrowPatch(
                    (x - 0.62, y),
                    (x - 0.39, y),
                    arrowstyle="-|>",
                    mutation_scale=9,
                    color="#5b6770",
                )
            )
    end = y + 0.04 if at % 1 else y + 0.25
    ax.add_patch(
        FancyArrowPatch(
            (at, y + 0.66), (at, end), arrowstyle="-|>", mutation_scale=13, color=color, lw=2
        )
    )
    ax.text(at, y + 0.72, text, ha="center", va="bottom", color=color, fontsize=10)


def prompt_figure(large: Backbone) -> Figure:
    """Figure 1: where VP and AP come into a network, with the shapes of a ViT."""
    fig, ax = plt.subplots(figsize=(7, 3.3))
    tokens, width = large.shapes()[2]
    draw_network(ax, 0, 1.6, plots.PALETTE["vp"], "VP: δ has the image's shape, 3 × 224 × 224")
    told = f"AP: δ has the activations' shape, {tokens} × {width} (ViT-Large/16)"
    draw_network(ax, 3.5, 0, plots.PALETTE["ap"], told)
    ax.set(xlim=(-1.6, 6.6), ylim=(-0.4, 2.7))
    ax.axis("off")
    return fig


def vp_from_layer_0(backbone: Backbone) -> float:
    """Largest difference between the logits with VP and those of the image with the same
    perturbation added to it."""
    prompted = build_method("vp", backbone, 10)
    size = backbone.image_size
    images = torch.rand(4, 3, size, size, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        prompted.method.delta.uniform_(-1, 1, generator=torch.Generator().manual_seed(1))
        delta = prompted.method.delta.view(images.shape[1:])
        plain = prompted.head(backbone(images + delta))
        return (prompted(images) - plain).abs().max().item()


def share_figure(used: pd.DataFrame) -> Figure:
    """Figure A3: mean accuracy over the number of training images, a line a method."""
    fig, ax = plt.subplots(figsize=(7, 3))
    used = comparable(used, ["method", "train_size"])
    for method in dict.fromkeys(used.method):
        line = used[used.method == method].groupby("train_size").test.mean()
        ax.plot(line.index, line, "o-", color=plots.PALETTE[method], label=plots.NAMES[method])
    ax.set(xlabel="training images a task", ylabel="mean test accuracy, %")
    ax.set_xticks(sorted(used.train_size.unique()))
    ax.legend()
    return fig


def printed_cells(artifact: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A table as printed, and its accuracies as numbers."""
    table = papers.published(artifact)
    return table, table.drop(columns=["architecture", "method", "Average", "bold", "doubt"]).astype(
        float
    )


def judge_averages(page: Page, artifact: str) -> None:
    """Judge how many printed averages are off, by the audit's own rule."""
    wrong = auditing.wrong_means(artifact)
    note = "; ".join(
        f"{found.where}: {found.printed}, its row gives {found.computed}" for found in wrong
    )
    page.judge(
        f"{artifact}.printed-averages",
        len(wrong),
        evidence="derived",
        note=f"{note or 'All follow from their rows'}.",
    )


def best_counts(printed: pd.DataFrame, cells: pd.DataFrame) -> dict[str, int]:
    """Architecture -> number of data sets on which AP is the best of the cheap methods, by the
    printed cells."""
    best = {}
    for arch, rows in printed[printed.method != "FULL-FINETUNE"].groupby("architecture"):
        best[arch] = int(
            (
                cells.loc[rows.index].idxmax() == rows.index[rows.method.str.startswith("AP")][0]
            ).sum()
        )
    return best


def printed_gains(printed: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Table 1's AP minus VP, in points: architectures as rows, data sets as columns."""
    named = [
        cells[rows].set_axis(printed.architecture[rows])
        for rows in (printed.method.str.startswith("AP"), printed.method == "VP")
    ]
    return named[0] - named[1]


def shared_data_sets(printed: pd.DataFrame) -> pd.DataFrame:
    """Of Table A1's cells: class numbers and test sizes of the data sets that stand in both of its
    halves."""
    alike = lambda name: (
        name.lower()
        .replace("-", "")
        .replace(" ", "")
        .replace("patch", "")
        .replace("oxfordflowers", "flowers102")
    )
    wide = (
        printed.assign(key=printed.dataset.map(alike))
        .pivot_table(
            index="key", columns="setting", values=["class_number", "test_size"], aggfunc="first"
        )
        .dropna()
    )
    wide.columns = [f"{what.replace('_', ' ')}, {setting}" for what, setting in wide.columns]
    classes = [name for name in wide.columns if name.startswith("class")]
    wide["same classes"] = np.where(wide[classes[0]] == wide[classes[1]], "yes", "no")
    return wide.rename_axis("data set").reset_index()
