"""AP on other networks and data: its gain over VP, and where every single block would have it."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from visprompt.models.backbones import load_backbone
from visprompt.models.embedded import networks

from ..pages import plots
from ..studies.grids import depth_of
from .ap_layers import block_costs
from .chapter import Chapter

COLOURS = {
    "ap": plots.PALETTE["ap"],
    "vpt-deep": "#0173b2",
}  # VPT-Deep's on the other chapters' pages
# of Table 5
LARGE = {
    "CLIP's ViT-B/32": "vit_base_patch32_clip_quickgelu_224",
    "Swin-B": "swin_base_patch4_window7_224",
}
LINES = {
    "Linear probe": "linear-probe",
    "NORM-TUNE": "norm-tune",
    "VP": "vp",
    "Full fine-tuning": "full-finetune",
}


def by_block(rows: pd.DataFrame, method: str) -> pd.DataFrame:
    """Of runs at every block those of a method at single blocks."""
    return rows[rows.variant.str.startswith(f"{method}, block ")]


def block_plot(ax: Axes, rows: pd.DataFrame, methods: Sequence[str]) -> None:
    """Accuracy by block with the spread over seeds, a star on the block best on validation; of one
    method the others as lines."""
    for method in methods:
        mine = by_block(rows, method).groupby("block")
        mean, colour = mine.test.agg(["mean", "min", "max"]), COLOURS[method]
        ax.fill_between(
            mean.index.astype(float), mean["min"], mean["max"], color=colour, alpha=0.2, lw=0
        )
        ax.plot(mean.index, mean["mean"], "o-", color=colour, label=plots.NAMES[method], ms=4)
        val = mine.val.mean().dropna()  # none where it was trained on
        if len(val):
            ax.plot(
                val.idxmax(),
                mean["mean"][val.idxmax()],
                "*",
                ms=14,
                color=colour,
                mec="black",
                mew=0.6,
            )
    for variant, method in LINES.items() if len(methods) == 1 else ():  # NORM-TUNE has VPT's blue
        other = rows[rows.variant == variant]
        if len(other):
            ax.axhline(
                other.test.mean(),
                ls="--",
                lw=1.4,
                color=plots.PALETTE[method],
                label=plots.NAMES[method],
            )
    ax.autoscale(axis="y")  # a line near the edge does not ask for it
    ax.set(xlabel="block with the prompt", ylabel="test accuracy, %")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def block_grid(rows: pd.DataFrame, methods: Sequence[str] = ("ap",)) -> Figure:
    """Accuracy by block: a row for every backbone, a column for every task."""
    backbones, tasks = (list(dict.fromkeys(rows[name])) for name in ("backbone", "task"))
    shape = len(backbones), len(tasks)
    fig, axes = plt.subplots(
        *shape, figsize=(max(4.5, 3.5 * shape[1]), 2.8 * shape[0]), squeeze=False
    )
    for line, backbone in zip(axes, backbones, strict=True):
        for ax, task in zip(line, tasks, strict=True):
            block_plot(ax, rows[(rows.backbone == backbone) & (rows.task == task)], methods)
            name = backbone if backbone in networks() else backbone.partition(".")[0]
            ax.set_title(f"{name}: {task}", fontsize=9)
    fig.legend(
        *axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8
    )
    return fig


def show_costs(chapter: Chapter, artifact: str) -> None:
    """Prompt entries and training operations of AP at every block of the paper's two networks, on
    shapes alone."""
    lines, used = [], []
    for printed, name in LARGE.items():
        shapes = load_backbone(name, device="meta").shapes()
        ends = [
            (shapes.index(shape), len(shapes) - 1 - shapes[::-1].index(shape))
            for shape in dict.fromkeys(shapes)
        ]
        record, rows = block_costs(name, [block for pair in ends for block in pair])
        used.append(record)
        entries, share = rows.parameters.iloc[::2], 100 * rows.share
        for number, (first, last) in enumerate(ends):
            lines.append(
                {
                    "network": printed,
                    "blocks": f"{first} to {last}",
                    "what enters them": " × ".join(map(str, shapes[first])),
                    "prompt entries": f"{entries.iloc[number]:,.0f}",
                    "training FLOPs, % of VP's": f"{share[2 * number]:.0f} to "
                    f"{share[2 * number + 1]:.0f}",
                }
            )
    chapter.page.show(
        artifact,
        pd.DataFrame(lines),
        evidence="derived",
        records=used,
        how="Counted on shapes at 224 pixels, with the last block's class token alone "
        "where that is pooled; blocks from 0.",
        caption="AP by block at the paper's architectures: entries of the prompt, and "
        "operations of a training step beside VP's.",
    )


def show_blocks(
    chapter: Chapter,
    artifact: str,
    rows: pd.DataFrame,
    caption: str,
    methods: Sequence[str] = ("ap",),
) -> None:
    """Show accuracy by block; nothing where some method was not run at a single one."""
    if all(len(by_block(rows, method)) for method in methods):
        alt = "Test accuracy over the block with the prompt, a panel for every backbone and task."
        chapter.show(artifact, block_grid(rows, methods), rows, caption, alt)


def means_of(
    chapter: Chapter, claim: str, part: str, on, methods: Sequence[str], study: str = "ap-layers"
) -> tuple[list[pd.DataFrame], list]:
    """Where a claim can be judged, the accuracy of each method: seed and task as rows, blocks as
    columns; and the records.

    Args:
        part: the backbone's, as in studies.yaml.
        on: the tasks that the claim is about.
        study: whose runs are looked at.
    """
    rows = chapter.rows(study, part=part)
    if not len(rows):
        return [], []
    every = [
        f"{method}, block {block}"
        for method in methods
        for block in range(depth_of(part, chapter.cast))
    ]
    found = chapter.answers(claim, rows[rows.variant.isin(every)], every, on, [part])
    tables = [
        by_block(found, method).groupby(["seed", "task", "block"]).test.mean().unstack()
        for method in methods
    ]
    return (tables, [*found.record]) if len(found) else ([], [])


def judge_preference(chapter: Chapter, claim: str, part: str, on, study: str = "ap-layers") -> None:
    """Hold AP in the deepest third of a backbone's blocks, minus the shallowest third, against a
    claim."""
    found, used = means_of(chapter, claim, part, on, ["ap"], study)
    for table in found:
        third = max(1, table.shape[1] // 3)
        lead = table.iloc[:, -third:].mean(axis=1) - table.iloc[:, :third].mean(axis=1)
        chapter.judge_values(claim, lead.unstack(), used)


def judge_beside_vpt(chapter: Chapter, part: str, on) -> None:
    """Judge what Figure A2 says of AP and of VPT at single blocks: the same places, and AP
    above."""
    found, used = means_of(chapter, "ap.figure-a2.ap-over-vpt", part, on, ["ap", "vpt-deep"])
    if found:
        ap, vpt = found
        chapter.judge_values("ap.figure-a2.ap-over-vpt", (ap - vpt).mean(axis=1).unstack(), used)
        claim, alike = (
            "ap.figure-a2.same-layer-preference",
            ap.corrwith(vpt, axis=1, method="spearman"),
        )
        if alike.isna().any():  # no ranks to compare
            chapter.page.not_judged(
                claim, "one of the two is equally accurate at every block in some run"
            )
        else:
            chapter.judge_values(claim, alike.unstack(), used)
