"""AP at every block: what it costs, how well it does, and which end of a network it prefers."""

import itertools
from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from visprompt.measure.cost import count_flops
from visprompt.methods import build_method
from visprompt.methods.parameters import count_parameters
from visprompt.models.backbones import Backbone, load_backbone
from visprompt.records import Record, recorded
from visprompt.words import REAL

from ..pages import plots
from ..pages.friendly import named, signed, spread
from ..studies import comparable, statistics
from ..studies.comparable import listed
from ..studies.grids import Scope, depth_of, scope_of, tasks_of
from . import real
from .chapter import Chapter
from .photographs_first import LABELLED

COLOURS = {"ap": plots.PALETTE["ap"], "vpt-deep": "#0173b2"}  # VPT-Deep's as on other pages
LINES = {
    "Linear probe": "linear-probe",
    "NORM-TUNE": "norm-tune",
    "VP": "vp",
    "Full fine-tuning": "full-finetune",
}
THIRDS = ("deepest third", "shallowest third")


def by_block(rows: pd.DataFrame, method: str) -> pd.DataFrame:
    """Of runs at every block those of a method at single blocks."""
    return rows[rows.variant.str.startswith(f"{method}, block ")]


def every_block(scope: Scope, part: str, method: str = "ap") -> list[str]:
    """The variants of a method at each block of the backbone in a role."""
    return [f"{method}, block {block}" for block in range(depth_of(part, scope))]


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
    ax.set(xlabel="block with the prompt (0: the first)", ylabel="test accuracy, %")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def chosen(rows: pd.DataFrame, method: str) -> float | None:
    """The block best on validation, or on test where validation was trained on; None of no runs."""
    found = by_block(rows, method).groupby("block")
    val = found.val.mean().dropna()
    mean = val if len(val) else found.test.mean()
    return mean.idxmax() if len(mean) else None


def best_block(rows: pd.DataFrame, methods: Sequence[str]) -> str:
    """What a panel shows: the best block of one method, by validation, or how often one of two
    leads."""
    if len(methods) == 1:
        block = chosen(rows, methods[0])
        return "" if block is None else f": block {block:.0f} chosen"
    one, two = (by_block(rows, method).groupby("block").test.mean() for method in methods)
    lead = (one - two).dropna()
    return f": {plots.NAMES[methods[0]]} higher at {(lead > 0).sum()} of {len(lead)} blocks"


def panels(rows: pd.DataFrame, methods: Sequence[str]) -> list[tuple[tuple[str, str], str]]:
    """(Backbone, task) of each panel, row by row, and what it shows."""
    backbones, tasks = (list(dict.fromkeys(rows[name])) for name in ("backbone", "task"))
    found = []
    for backbone, task in itertools.product(backbones, tasks):
        mine = rows[(rows.backbone == backbone) & (rows.task == task)]
        title = f"{named(backbone)}, {named(task)}{best_block(mine, methods)}"
        found.append(((backbone, task), title))
    return found


def block_grid(rows: pd.DataFrame, methods: Sequence[str] = ("ap",)) -> Figure:
    """Accuracy by block: a row for every backbone, a column for every task."""
    shape = rows.backbone.nunique(), rows.task.nunique()
    fig, axes = plt.subplots(
        *shape, figsize=(max(4.5, 3.5 * shape[1]), 2.8 * shape[0]), squeeze=False
    )
    for ax, ((backbone, task), title) in zip(axes.flat, panels(rows, methods), strict=True):
        mine = rows[(rows.backbone == backbone) & (rows.task == task)]
        block_plot(ax, mine, methods)
        ax.set_title(title, fontsize=9)
    fig.legend(
        *axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8
    )
    return fig


def show_blocks(
    chapter: Chapter,
    artifact: str,
    rows: pd.DataFrame,
    caption: str,
    methods: Sequence[str] = ("ap",),
) -> None:
    """Show accuracy by block; nothing where some method was not run at a single one."""
    if all(len(by_block(rows, method)) for method in methods):
        chapter.show(artifact, block_grid(rows, methods), rows, caption, alt(rows, methods))


def alt(rows: pd.DataFrame, methods: Sequence[str] = ("ap",)) -> str:
    """What `block_grid` shows, in words."""
    titles = "; ".join(title for _, title in panels(rows, methods))
    return f"Test accuracy over the block with the prompt. {titles}."


def at_every_block(
    chapter: Chapter, claim: str, part: str, on, methods: Sequence[str], study: str = "ap-layers"
) -> pd.DataFrame:
    """The runs of each method at every block by which a claim can be judged.

    Args:
        part: the backbone's, as in studies.yaml.
        on: the tasks that the claim is about.
        study: whose runs are looked at.
    """
    rows = chapter.rows(study, part=part)
    if not len(rows):
        return rows
    every = [name for method in methods for name in every_block(chapter.scope, part, method)]
    return chapter.answers(claim, rows[rows.variant.isin(every)], every, on, [part])


def judge_preference(
    chapter: Chapter, claim: str, part: str, on, study: str = "ap-layers", judged: str = ""
) -> None:
    """Hold AP in the deepest third of a backbone's blocks, minus the shallowest third, against a
    claim; of a ViT pre-trained on labels by photographs, where they are kept.

    Args:
        judged: the claim that photographs judge already, so that this one is left to it.
    """
    if part in LABELLED and len(chapter.photographs) and len(seen := on_photographs()):
        lead = deep_lead(seen)
        told = listed([f"{named(task)} {signed(lead[task].mean())}" for task in lead])
        every = every_block(chapter.scope, part)
        if len(drawn := comparable.whole(chapter.rows(study, part=part), every, on)[0]):
            other = statistics.gain(thirds(drawn), *THIRDS)
            told += f" (on embedded tasks {spread(*other.here)})"
        if judged:
            chapter.page.not_judged(claim, f"the same photographs judge {judged}: {told}")
        else:
            gain = statistics.gain(thirds(seen), *THIRDS)
            note = f"{' − '.join(THIRDS)}: {gain.counted}: {told}. {chapter.reach(claim, gain)}"
            about = {"evidence": "trend", "records": gain.records, "note": note.strip()}
            chapter.page.judge(claim, *gain.here, **about, alike=1.0)
        return
    rows = at_every_block(chapter, claim, part, on, ["ap"], study)
    if len(rows):
        chapter.judge(claim, thirds(rows), *THIRDS, on=on, parts=[part], drawn=True)


def on_photographs() -> pd.DataFrame:
    """Kept runs of photographs with AP at every block and the other methods, as
    `real.photographs` has them, of those tasks of the study `real-layers` that have every block."""
    frame, scope = real.photographs(every_block=True), scope_of(REAL)
    rows = frame[frame.task.isin(tasks_of("real-layers", scope))]
    return rows[rows.groupby("task").block.transform("nunique") == depth_of("real", scope)]


def thirds(rows: pd.DataFrame) -> pd.DataFrame:
    """The runs in the deepest and in the shallowest third of the blocks, as variants `THIRDS`."""
    blocks = sorted(rows.block.dropna().unique())
    third = max(1, len(blocks) // 3)
    ends = (blocks[-third:], blocks[:third])
    parts = [rows[rows.block.isin(end)].assign(variant=name) for name, end in zip(THIRDS, ends)]
    return pd.concat(parts)


def deep_lead(rows: pd.DataFrame) -> pd.DataFrame:
    """By seed and task, AP's accuracy in the deepest third of the blocks minus the shallowest's."""
    means = thirds(rows).groupby(["seed", "task", "variant"]).test.mean().unstack()
    return (means[THIRDS[0]] - means[THIRDS[1]]).unstack()


def cost_by_block(backbone: Backbone, blocks: Sequence[int]) -> pd.DataFrame:
    """Prompt entries and training FLOPs (share of VP's) of AP at each of some blocks, on shapes
    alone."""
    vp_flops = count_flops(build_method("vp", backbone, 37), training=True)["flops"]
    models = [build_method("ap", backbone, 37, block=block) for block in blocks]
    return pd.DataFrame(
        {
            "block": blocks,
            "parameters": [count_parameters(model)["method"] for model in models],
            "share": [count_flops(model, training=True)["flops"] / vp_flops for model in models],
        }
    )


def block_costs(name: str, blocks: Sequence[int] | None = None) -> tuple[Record, pd.DataFrame]:
    """What AP costs at some blocks of an architecture, all unless told: the record and its rows,
    see `cost_by_block`."""
    backbone = load_backbone(name, device="meta")
    blocks = range(backbone.depth) if blocks is None else blocks
    named = {"what": "AP by block", "backbone": name, "blocks": list(blocks)}
    exact = recorded(
        "count",
        named,
        lambda: {"rows": cost_by_block(backbone, blocks).to_dict("list")},
        made=[backbone],
    )
    return exact, pd.DataFrame(exact.values["rows"])
