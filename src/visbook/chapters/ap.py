"""What AP is and how well it does: its drawing, the tables of accuracies, how the learning rates
were chosen."""

from collections.abc import Iterable, Sequence

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
from visprompt.methods.base import device_of
from visprompt.models.backbones import Backbone
from visprompt.models.embedded import networks
from visprompt.papers.rounding import stands_for
from visprompt.records import Record
from visprompt.training.loop import tune
from visprompt.training.recipe import load_recipe

from .. import auditing
from ..pages import plots
from ..pages.friendly import signed
from ..pages.page import Page
from ..studies.ap_rates import ap_rates, block_rates
from ..studies.case import rate_name
from ..studies.comparable import comparable
from ..studies.effects import of_table
from ..studies.rates import below
from ..studies.statistics import Cell, spread
from . import photographs_first
from .chapter import FULL, Chapter

COMPACT = (
    "the paper itself makes an exception for compact models such as ResNet-18 and ViT-Tiny "
    "(ap.table-1.compact-not-over-norm), and"
)
METHODS = ["linear-probe", "full-finetune", "norm-tune", "vp", "ap"]
NETWORKS = {"resnet": "ap-resnet", "vit": "ap-vit"}  # word of a claim -> part of studies.yaml
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


def seeds_of(rows: pd.DataFrame) -> str:
    """How many seeds some runs have, in words."""
    return f"{rows.seed.nunique()} seeds" if rows.seed.nunique() != 1 else "one seed"


def shown_of(rows: pd.DataFrame) -> str:
    """What a cell of a table of accuracies shows."""
    seeds = seeds_of(rows)
    return f"mean ± standard deviation over {seeds}" if rows.seed.nunique() > 1 else seeds


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean ± standard deviation over seeds by backbone, method and task, and the mean over
    tasks."""
    lines, tasks = [], list(dict.fromkeys(rows.task))
    for (backbone, variant), runs in rows.groupby(["backbone", "variant"], sort=False):
        by_task = dict([*runs.groupby("task")])
        line = {"backbone": backbone, "method": variant}
        line |= {t: spread(by_task[t].test, by_task[t].record) for t in tasks if t in by_task}
        if len(by_task) == len(tasks):  # fewer tasks are another mean
            mean = np.mean([part.test.mean() for part in by_task.values()])
            line["mean"] = Cell(f"{mean:.1f}", runs.record)
        lines.append(line)
    return pd.DataFrame(lines, dtype=object).fillna("–")


def judge_gains(
    chapter: Chapter, artifact: str, rows: pd.DataFrame, on: Sequence[str], drawn: bool = False
) -> None:
    """Judge the four orders that the paper's accuracy tables assert, on every backbone at hand; see
    `Chapter.judge`."""
    for word, part in NETWORKS.items():
        name = chapter.scope.backbones.get(part)
        mine = rows[rows.backbone == name]
        about = {"on": on, "parts": [part], "drawn": drawn}
        chapter.judge(f"{artifact}.{word}-ap-over-vp", mine, "AP", "VP", **about)
        chapter.judge(f"{artifact}.{word}-ap-over-linear", mine, "AP", "Linear probe", **about)
        judge_over_norm(chapter, f"{artifact}.{word}-ap-over-norm", name, mine, **about)
        chapter.judge(f"{artifact}.{word}-full-over-ap", mine, FULL, "AP", **about)


def judge_over_norm(chapter: Chapter, claim: str, name: str, rows: pd.DataFrame, **about) -> None:
    """Judge AP against NORM-TUNE, unless the paper's limitations except the network."""
    if len(rows) and name in networks():
        chapter.page.not_judged(claim, f"{COMPACT} {name} is smaller still")
    else:
        chapter.judge(claim, rows, "AP", "NORM-TUNE", **about)


def judge_compact(chapter: Chapter, rows: pd.DataFrame, on: Sequence[str]) -> None:
    """Judge what the paper's limitations say of compact models, by the network where each is least
    certain."""
    for word, other in (("over-vp", "VP"), ("not-over-norm", "NORM-TUNE")):
        claim, leads = f"ap.table-1.compact-{word}", {}
        vit = rows[rows.backbone == chapter.scope.backbones.get("ap-vit")]
        if seen := photographs_first.answer(chapter, vit, ("AP", other), on):  # a ViT-Tiny
            photographs_first.judge(chapter, claim, seen, vit, ("AP", other), on, ["ap-vit"])
            continue
        for name in dict.fromkeys(name for name in rows.backbone if name in networks()):
            mine = chapter.answers(claim, rows[rows.backbone == name], ["AP", other], on)
            if found := chapter.gain(claim, mine, "AP", other):
                leads[name] = found
        if leads:
            least = (
                min(leads.values(), key=lambda lead: lead.here[1])
                if other == "VP"
                else max(leads.values(), key=lambda lead: lead.here[2])
            )
            chapter.page.judge(
                *(claim, *least.here),
                evidence="trend",
                records=[record for lead in leads.values() for record in lead.records],
                note=f"{', '.join(f'{name} {lead.mean:.1f}' for name, lead in leads.items())}.",
            )


def with_share(rows: pd.DataFrame) -> pd.DataFrame:
    """Runs on numbers of images, with these as the share of their task's largest, in %."""
    most = rows.groupby("task").train_size.transform("max")
    return rows.assign(share=(100 * rows.train_size / most).astype(float).round())


def judge_shares(chapter: Chapter, rows: pd.DataFrame) -> None:
    """Judge AP's lead over VP at the share of the images where it is least certain, and what more
    images give to whom."""
    on, shares = chapter.of_study("ap-amount"), sorted(set(rows.share))
    leads = {
        f"{share:.0f} % of the images": (rows[rows.share == share], "AP", "VP") for share in shares
    }
    chapter.judge_least("ap.figure-a3.ap-over-vp", leads, on)
    claim, names = "ap.figure-a3.full-gains-most", [FULL, "VP", "AP"]
    ends = [
        chapter.answers(claim, rows[rows.share == end], names, on)
        for end in shares[:1] + shares[-1:]
    ]
    if not ends or not all(map(len, ends)):
        return
    few, every = (part.groupby(["variant", "seed", "task"]).test.mean() for part in ends)
    full, vp, ap = ((every - few)[name].unstack() for name in names)
    lead = full - max(vp, ap, key=lambda gains: gains.mean().mean())
    means = ", ".join(
        f"{name} {gains.mean().mean():.1f}"
        for name, gains in (("full fine-tuning", full), ("VP", vp), ("AP", ap))
    )
    used = [*ends[0].record, *ends[1].record]
    chapter.page.judge(
        *(claim, *of_table(lead).interval),
        evidence=chapter.evidence(used)[0],
        records=used,
        note=f"From few images to all: {means}; the interval is over seeds alone.",
    )


def search_rows(chapter: Chapter, name: str) -> tuple[list[dict], list[Record]]:
    """Validation accuracy of the rates tried on one backbone, the rate taken in brackets; and the
    kept records."""
    task, backbone = load_task("position"), chapter.lab.backbone(name)
    is_vit, found, used = backbone.family != "resnet", [], []
    trials = [(method, plots.NAMES[method], {}, None) for method in RATES if method != "ap"]
    trials += [
        ("ap", f"AP, block {block}", {"block": block}, rate)
        for block, rate in enumerate(block_rates("quick", is_vit, backbone.depth))
    ]
    if is_vit:
        trials += [
            ("ap", f"AP, {key}", VARIANTS[key], rate)
            for key, rate in ap_rates("quick", "by_variant").items()
        ]
    for method, label, choice, taken in trials:
        model = build_method(method, backbone, task.classes, **choice)
        field = rate_name(method)
        taken = taken or getattr(load_recipe("quick", method, is_vit), field)
        tried, values = {}, {}
        for rate in RATES[method]:
            recipe = load_recipe("quick", method, is_vit, **{field: rate})
            record = tune(model, task, recipe, 0, run=chapter.p.search)
            if record is not None:
                used.append(record)
                values[rate] = record.values["val"]
                value = f"{rate:g}: {values[rate]:.1f}"
                tried[f"try {len(tried) + 1}"] = f"[{value}]" if rate == taken else value
        if tried:
            lost = {"below the best": below(values, taken)}
            found.append({"backbone": name, "method": label, **tried, **lost})
    return found, used


def show_rates(chapter: Chapter) -> None:
    """Show the rates that were tried in the quick profile, where there are records of them."""
    names = [chapter.scope.backbones.get(part) for part in ("ap-vit", "ap-resnet")]
    if chapter.p.profile != "quick":
        return
    found = [search_rows(chapter, name) for name in names if name]
    used = [record for _, records in found for record in records]
    if used:
        tried = pd.DataFrame([row for rows, _ in found for row in rows]).fillna("–")
        # last, whatever row has the most rates
        tried["below the best"] = tried.pop("below the best")
        chapter.page.present(
            tried,
            evidence="trend",
            how="Task position, seed 0, 200 validation images.",
            records=used,
            caption="Learning rates tried, each with its validation accuracy in %; brackets: the "
            "one that is used.",
            cell="rates",
        )


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
    ax.text(at, y + 0.72, text, ha="center", va="bottom", color="0.2", fontsize=10)


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
    prompted, device = build_method("vp", backbone, 10), device_of(backbone)
    size, drawn = backbone.image_size, torch.Generator()
    images = torch.rand(4, 3, size, size, generator=drawn.manual_seed(0)).to(device)
    with torch.no_grad():
        start = torch.empty(prompted.method.delta.shape)
        prompted.method.delta.copy_(start.uniform_(-1, 1, generator=drawn.manual_seed(1)))
        delta = prompted.method.delta.view(images.shape[1:])
        plain = prompted.head(backbone(images + delta))
        return (prompted(images) - plain).abs().max().item()


def share_means(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracy of each method, a column for every share of the images."""
    table = comparable(rows, ["variant", "share"]).groupby(["variant", "share"], sort=False)
    return table.test.mean().unstack().sort_index(axis=1)


def share_alt(rows: pd.DataFrame) -> str:
    """The lines of Figure A3 in words."""
    means = share_means(rows)
    lines = (
        f"{name} {line.iloc[0]:.1f} to {line.iloc[-1]:.1f} %" for name, line in means.iterrows()
    )
    few, every = means.columns[0], means.columns[-1]
    return f"Mean accuracy from {few:.0f} to {every:.0f} % of the images: {', '.join(lines)}."


def share_figure(rows: pd.DataFrame) -> Figure:
    """Figure A3: a line per method, from its mean accuracy with the fewest images (hollow) to that
    with all; the gain stands at its end."""
    fig, ax = plt.subplots(figsize=(7, 2.8))
    means = share_means(rows)
    gains = means.iloc[:, -1] - means.iloc[:, 0]
    for place, (variant, line) in enumerate(means.iloc[::-1].iterrows()):
        color = plots.PALETTE[rows[rows.variant == variant].method.iloc[0]]
        ax.plot(line, [place] * len(line), "o-", color=color, ms=8, lw=3)
        ax.plot(line.iloc[0], place, "o", color=color, mfc="white", ms=8)
        plots.at_end(ax, [line.iloc[-1]], [place], f"{signed(gains[variant])} points", "0.2")
    few, every = means.columns[0], means.columns[-1]
    ax.set(
        xlabel=f"mean test accuracy, % (hollow: {few:.0f} % of the images, filled: {every:.0f} %)"
    )
    ax.grid(axis="y", visible=False)
    ax.set_title(f"{gains.idxmax()} gains most from more images")
    ax.set_yticks(range(len(means)), means.index[::-1])
    ax.margins(x=0.12, y=0.25)
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


def outside(gains: Iterable[float], low: int, high: int) -> int:
    """How many printed gains are not what a range of whole numbers stands for: by rounding, or by
    cutting off at its upper end."""
    within = lambda gain: low - 0.5 <= gain <= high or stands_for(high, 1, gain)
    return sum(not within(gain) for gain in np.ravel(gains))


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
    wide.index = [printed.dataset[printed.dataset.map(alike) == key].iloc[0] for key in wide.index]
    return wide.rename_axis("data set").reset_index()
