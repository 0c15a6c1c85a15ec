"""What the pages on iVPT share: tables of accuracies, gains over a variant, and audits of printed
means."""

import itertools
from collections.abc import Callable, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from visprompt import papers
from visprompt.models.backbones import load_backbone

from .. import auditing
from ..auditing import counts
from ..pages import plots
from ..pages.friendly import spread
from ..studies import statistics
from ..studies.statistics import Gain
from .chapter import Chapter

VARIANTS = [
    "VPT-Deep",
    "iVPT",
    "CDC",
    "EXPRESS",
    "Vanilla CDC",
    "ProVP",
    "CDC + DA",
    "iVPT, AR on all tokens",
]
COLOURS = dict(
    zip(
        VARIANTS,
        ["#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc", "#ca9161", "#4a9fd8", "#949494"],
        strict=True,
    )
)
PAIR = ["VPT-Deep", "iVPT"]
STEPS = ["VPT-Deep", "CDC", "CDC + DA", "iVPT"]
STRUCTURES = ["VPT-Deep", "ProVP", "EXPRESS", "Vanilla CDC", "CDC"]
# variant -> where AR acts
PLACES = {"CDC + DA": "none", "iVPT, AR on all tokens": "all", "iVPT": "top-k"}
SIZES = {
    "smaller": "smaller",
    "supervised": "as elsewhere",
    "larger": "larger",
    "huge": "ViT-H/14",
    "swin": "Swin",
}
PRETRAININGS = {"supervised": "supervised", "mocov3": "MoCo-v3", "mae": "MAE"}
WITHOUT_AR = "iVPT without AR"
BY_GROUP = "Test accuracy in % by group, mean ± standard deviation over seeds."
FROM_CELLS = "From the printed cells."
SCALE = (
    "VTAB-1k's 19 data sets with a ViT-B/16 pretrained on ImageNet-21k need the "
    "published weights and the data."
)
SIZES_WHY = "ViT-L/16, ViT-H/14 and Swin-B on VTAB-1k need the published weights and the data."
PRE_WHY = (
    "VTAB-1k with MoCo-v3's and MAE's ViT-B/16 needs the published weights and the data; "
    "timm has no MoCo-v3 weights, give a file."
)
BASE = "vit_base_patch16_224"


def with_parameters(table: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """A table of methods with two columns more: trained parameters as the records count them, means
    over the tasks."""
    for name, key in (("without head, k", "method"), ("with head, k", "total")):
        found = (
            frame.record.map(lambda record: record.values["parameters"][key] / 1e3)
            .groupby(frame.variant)
            .mean()
        )
        table[name] = table.method.map(found).map("{:.1f}".format)
    return table


def places_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Accuracies by group, and where each variant adds its reinforcement."""
    table = statistics.group_table(frame)
    table.insert(0, "AR", table.method.map(PLACES))
    return table


def gains(frame: pd.DataFrame, base: str, variants: Sequence[str]) -> dict[str, Gain]:
    """The gains over a variant of those that have a task and seed in common with it."""
    found = {name: statistics.gain(frame, name, base) for name in variants}
    return {name: gain for name, gain in found.items() if gain}


def gain_figure(frame: pd.DataFrame, base: str, variants: Sequence[str]):
    """Gains over a variant: one mark a task, and the mean with its interval over seeds; None
    without any."""
    shown = gains(frame, base, variants)
    if not shown:
        return None
    cells = frame.pivot_table(index=["task", "seed"], columns="variant", values="test")
    fig, ax = plt.subplots(figsize=(7, 3.2))
    sides = {"above": [], "below": []}
    for i, (name, found) in enumerate(shown.items()):
        by_task = (cells[name] - cells[base]).dropna().groupby("task").mean()
        for k, (marker, (task, value)) in enumerate(
            zip(itertools.cycle(plots.MARKERS), by_task.items(), strict=False)
        ):  # side by side, so that equal gains do not hide each other
            ax.plot(
                i - 0.1 - 0.1 * (len(by_task) - k),
                value,
                marker,
                color="#6a6a6a",
                ms=6,
                label=None if i else task,
            )
        mean, low, high = found.here
        error = [[mean - low], [high - mean]] if np.isfinite(low) else None
        sides["above"] += [name] * (low > 0)
        sides["below"] += [name] * (high < 0)
        ax.errorbar(i + 0.1, mean, error, fmt="o", color=COLOURS[name], ms=8, capsize=4, lw=2)
    ax.axhline(0, color="#555555", lw=1)
    ax.set_xticks(range(len(shown)), shown)
    ax.grid(axis="x", visible=False)
    ax.set(xlim=(-0.6, len(shown) - 0.4), ylabel=f"points above {base}")
    told = [f"{', '.join(names)} clearly {side}" for side, names in sides.items() if names]
    ax.set_title(f"Against {base}: {'; '.join(told) or 'every interval includes 0'}")
    ax.legend(title="task", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return fig


def gains_told(frame: pd.DataFrame, base: str, variants: Sequence[str]) -> str:
    """The mean gains of `gain_figure` as text."""
    return "; ".join(
        f"{name} {spread(*found.here)}" for name, found in gains(frame, base, variants).items()
    )


def show_gains(
    chapter: Chapter, artifact: str, frame: pd.DataFrame, variants: Sequence[str], how_many: str
) -> None:
    """Gains over VPT-Deep with their caption."""
    figure = gain_figure(frame, "VPT-Deep", variants) if len(frame) else None
    if figure is not None:
        caption = (
            "Test accuracy minus that of VPT-Deep, in points. Grey: each task. Coloured: their "
            "mean with its 95 % interval over seeds and test images."
        )
        alt = (
            f"Gain of {how_many} over VPT-Deep in points, mean over tasks and interval: "
            f"{gains_told(frame, 'VPT-Deep', variants)}."
        )
        chapter.show(artifact, figure, frame, caption, alt)


def derive(chapter: Chapter, claim: str, value: float, note: str = FROM_CELLS) -> None:
    """Judge what follows from the paper or from an architecture."""
    chapter.page.judge(claim, value, evidence="derived", note=note)


def audit(chapter: Chapter, artifact: str) -> None:
    """Judge the printed means against the cells beside them, by the audit's own rule."""
    wrong = auditing.wrong_means(artifact)
    note = "; ".join(
        f"{found.where}: {found.printed} is printed, its cells give {found.computed}"
        for found in wrong
    )
    twice = [
        found.printed
        for found in auditing.printed_means(artifact)
        if found.verdict == "disagrees" and found not in wrong
    ]
    note = (
        f"{note}." if note else f"All{' others' * bool(twice)} follow from the cells of their rows."
    )
    note += "".join(
        f" {mean} follows only from Table 1's group means, which are rounded to one decimal."
        for mean in twice
    )
    most = len(wrong) + len(twice)  # as wrong ones a stricter reader would count
    chapter.page.judge(
        f"{artifact}.printed-means", len(wrong), len(wrong), most, evidence="derived", note=note
    )


def of_vtab(chapter: Chapter, *variants: str) -> pd.DataFrame:
    """The runs of some variants on the tasks of the ablations."""
    runs = chapter.rows(
        "benchmark", "ivpt-structures", "ivpt-parts", tasks="vtab", part="supervised"
    )
    return pd.concat([runs[runs.variant == name] for name in variants])


def by_part(
    chapter: Chapter, parts: dict[str, str], variants, names: Sequence[str], tasks: str
) -> dict[str, pd.DataFrame]:
    """The runs of each part on a list of tasks; {part as shown: rows}."""
    found = {
        label: chapter.rows(*names, variants=variants, tasks=tasks, part=part)
        for part, label in parts.items()
    }
    return {label: rows for label, rows in found.items() if len(rows)}


def of_sizes(chapter: Chapter) -> dict[str, pd.DataFrame]:
    """VPT-Deep and iVPT by size of the backbone; on a Swin without AR."""
    return by_part(
        chapter, SIZES, [*PAIR, WITHOUT_AR], ["benchmark", "sizes", "sizes-swin"], "sizes"
    )


def of_pretrainings(chapter: Chapter) -> dict[str, pd.DataFrame]:
    """VPT-Deep, Gate-VPT and iVPT by pre-training."""
    variants = ["VPT-Deep", "Gate-VPT", "iVPT"]
    return by_part(chapter, PRETRAININGS, variants, ["benchmark", "pretraining"], "pretraining")


def stacked(found: dict[str, pd.DataFrame], column: str, table_of: Callable) -> pd.DataFrame:
    """One table for all parts, the part named in the first column."""
    tables = []
    for label, rows in found.items():
        table = table_of(rows)
        table = table.rename_axis("method").reset_index() if "method" not in table else table
        tables.append(table.assign(**{column: label})[[column, *table.columns]])
    return pd.concat(tables, ignore_index=True).fillna("–")


def printed_gains_wrong() -> int:
    """How many of Table 3's printed gains are not the difference of the cells beside them."""
    printed = papers.published("ivpt.table-3").drop(columns=["structure", "Mean", "doubt"])
    return sum(
        abs(float(value) - float(base) - {"↑": 1, "↓": -1}[sign] * float(gained)) > 1e-6
        for _, row in printed.iloc[1:].iterrows()
        for (value, sign, gained), base in zip(
            (cell.split() for cell in row), printed.iloc[0], strict=True
        )
    )


def not_above_vpt() -> list[str]:
    """The pairs of Table 5 in which iVPT is not printed above VPT."""
    printed = (
        papers.published("ivpt.table-5")
        .drop(columns="doubt")
        .set_index(["method", "backbone"])
        .astype(float)
    )
    gains = (printed.loc["iVPT"] - printed.loc["VPT"]).stack()
    return [" ".join(pair) for pair in gains.index[gains <= 0]]


def per_task(
    chapter: Chapter, artifact: str, frame: pd.DataFrame, table: pd.DataFrame | None = None
) -> None:
    """The per-task form of a table, and the audit of the printed one."""
    if len(frame):
        table = statistics.task_table(frame) if table is None else table
        chapter.show(artifact, table, frame, "Test accuracy in % by task, mean over seeds.")
    audit(chapter, artifact)
    chapter.page.printed(artifact, f"Table {artifact.rpartition('-')[2]} as printed")


def prompt_parameters(chapter: Chapter, artifact: str, kind: str, printed_in: str) -> None:
    """N and k of each task with the parameters that follow; shows the table and judges its mean."""
    table = (
        papers.published(artifact).set_index("hyper_parameter").drop(columns="doubt").astype(int)
    )
    width, rows = counts.meta(BASE).width, []
    for task, classes in zip(table.columns, counts.class_counts(kind), strict=True):
        n, k = int(table.loc["N", task]), int(table.loc["k", task])
        tokens = ("prompt_tokens", n)
        cdc = counts.count(BASE, "cdc", (tokens,), False)
        without = counts.count(BASE, "ivpt", (tokens, ("ar", "none")), False)
        whole = counts.count(BASE, "ivpt", (tokens, ("salient_tokens", k)), False)
        rows.append([task, n, k, cdc, without - cdc, whole - without, (width + 1) * classes])
    parts = ["CDC", "DA", "AR", "head"]
    shown = pd.DataFrame(rows, columns=["task", "N", "k", *parts])
    shown["all"] = shown[parts].sum(axis=1)
    mean = shown[[*parts, "all"]].mean()
    texts = shown.assign(
        **{name: (shown[name] / 1e6).map("{:.3f}".format) for name in mean.index}
    ).astype(object)
    last = [
        f"{shown.N.mean():.1f}",
        f"{shown.k.mean():.1f}",
        *(f"{value / 1e6:.3f}" for value in mean),
    ]
    texts.loc[len(texts)] = ["mean", *last]
    how = "Counted on a ViT-B/16 with the printed N and k and the printed numbers of classes."
    caption = "N and k as printed, and the trained parameters that follow from them, millions."
    chapter.page.show(artifact, texts, evidence="derived", how=how, caption=caption)
    bare = (mean["all"] - mean["head"]) / 1e6
    note = f"Compared with {printed_in}; {bare:.3f} million without the head."
    derive(chapter, f"{artifact}.mean-parameters", mean["all"] / 1e6, note)
    chapter.page.printed(artifact, f"Table {artifact.rpartition('-')[2]} as printed")


def backbone_rows(architectures: dict[str, str]) -> pd.DataFrame:
    """Parameters and width of timm's architectures, beside those that Table 18 prints."""
    printed = (
        papers.published("ivpt.table-18").query("strategy == 'Supervised'").set_index("backbone")
    )
    rows = []
    for name, architecture in architectures.items():
        width = load_backbone(architecture, device="meta").shapes()[-1][-1]
        bare = counts.count(architecture, "full-finetune", (), False) / 1e6
        rows.append(
            (
                name,
                printed.params_m[name],
                bare,
                bare + (width + 1) * 1000 / 1e6,
                printed.token_dim[name],
                width,
            )
        )
    columns = [
        "backbone",
        "printed, M",
        "without head, M",
        "with ImageNet's head, M",
        "printed D",
        "D",
    ]
    return pd.DataFrame(rows, columns=columns)
