"""What the page on SPT draws: what prompts and patches have in common, and the printed means
again."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator

from visprompt import papers

from ..pages import plots
from ..pages.friendly import named
from ..studies import statistics
from .chapter import PARTS, Chapter

PAIR = ["VPT-Deep", "SPT-Deep"]
COLOURS = {
    "Full fine-tuning": plots.PALETTE["full-finetune"],
    "VPT-Deep": "#0173b2",
    "SPT-Deep": "#de8f05",
}
GROUPS = ["Natural", "Specialized", "Structured"]
FGVC = ["CUB-200-2011", "NABirds", "Oxford Flowers", "Stanford Dogs", "Stanford Cars"]


def watched(chapter: Chapter) -> list[str]:
    """The tasks whose prompts are compared with patches."""
    return [name for name in chapter.of_study("pretraining") if name in chapter.scope.tasks["four"]]


def nmi(frame: pd.DataFrame) -> pd.DataFrame:
    """One row an epoch of each record: variant, task, seed, epoch and the NMI, meaned over
    blocks."""
    return pd.DataFrame(
        [
            {
                "variant": row.variant,
                "task": row.task,
                "seed": row.seed,
                "epoch": epoch,
                "nmi": float(np.mean(blocks)),
            }
            for row in frame.itertuples()
            for epoch, blocks in enumerate(row.record.values["nmi"])
        ]
    )


def nmi_figure(curves: pd.DataFrame):
    """NMI over epochs, one panel a task, which says by what factor it grew."""
    tasks = list(dict.fromkeys(curves.task))
    fig, axes = plt.subplots(1, len(tasks), figsize=(7, 3.2), sharey=True, squeeze=False)
    for ax, task in zip(axes[0], tasks, strict=True):
        for variant in PAIR:
            part = curves[(curves.task == task) & (curves.variant == variant)]
            plots.seeds_band(ax, part, "epoch", "nmi", variant, color=COLOURS[variant])
        ends = curves[curves.task == task].groupby(["variant", "epoch"]).nmi.mean().unstack()
        grew = (ends.iloc[:, -1] / ends.iloc[:, 0]).items()
        told = ", ".join(f"{name.partition('-')[0]} × {by:.1f}" for name, by in sorted(grew)[::-1])
        ax.set_title(f"{named(task)}\n{told}", fontsize=9)
        ax.set(xlabel="finished epochs", xticks=range(0, curves.epoch.max() + 1, 2))
        if (curves.nmi > 0).all():
            ax.set_yscale("log", subs=[])
            ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ax.yaxis.set_major_formatter("{x:g}")
    axes[0][0].set_ylabel("NMI, mean over blocks")
    plots.legend_below(fig, axes[0][:1])
    return fig


def nmi_told(curves: pd.DataFrame) -> str:
    """The ends of the curves of `nmi_figure` as text."""
    ends = curves[curves.epoch.isin((0, curves.epoch.max()))]
    means = ends.groupby(["task", "variant", "epoch"], sort=False).nmi.mean().unstack()
    return "; ".join(
        f"{variant} on {task} {first:.3f} to {last:.3f}"
        for (task, variant), (first, last) in zip(means.index, means.to_numpy(), strict=True)
    )


def fine_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Accuracies on fine-grained tasks, and what each method trains."""
    table = statistics.group_table(frame).drop(columns="mean")
    trained = frame.groupby("variant").parameters.first()
    table.insert(1, "parameters without head", [f"{trained[name]:,}" for name in table.method])
    return table


def judge_nmi(chapter: Chapter, frame: pd.DataFrame) -> None:
    """The two claims of Figure 2, a value a seed."""
    claim = "spt.figure-2.vpt-nmi-rises"
    rows = chapter.answers(claim, frame, ["VPT-Deep"], watched(chapter), ["mae"])
    if len(rows):
        ends = nmi(rows).groupby(["seed", "task", "epoch"]).nmi.mean().unstack("epoch")
        rises = (ends.iloc[:, -1] - ends[0]).unstack("task").dropna()
        chapter.judge_values(claim, rises, [*rows.record])
    claim = "spt.figure-2.spt-starts-above-vpt"
    rows = chapter.answers(claim, frame, PAIR, watched(chapter), ["mae"])
    if len(rows):
        first = nmi(rows).query("epoch == 0").groupby(["seed", "task", "variant"])
        starts = first.nmi.mean().unstack()
        apart = (starts["SPT-Deep"] - starts["VPT-Deep"]).unstack("task").dropna()
        chapter.judge_values(claim, apart, [*rows.record])


def own_layer(frame: pd.DataFrame, *more: str) -> pd.Series:
    """Share of layers whose most similar patches are of their own layer, by variant, backbone and
    seed, and `more`."""
    found = [np.asarray(record.values["cka"]) for record in frame.record]
    shares = [(matrix.argmax(1) == np.arange(len(matrix))).mean() for matrix in found]
    return frame.assign(share=shares).groupby(["variant", "backbone", "seed", *more]).share.mean()


def own_layer_table(frame: pd.DataFrame) -> pd.DataFrame:
    """`own_layer` meaned over seeds, as text."""
    table = own_layer(frame).groupby(["variant", "backbone"]).agg(["mean", "count"]).reset_index()
    table["mean"] = (100 * table["mean"]).map("{:.0f} %".format)
    return table.set_axis(
        ["method", "backbone", "most similar to their own layer", "seeds"], axis=1
    )


def own_layer_told(frame: pd.DataFrame) -> str:
    """`own_layer_table` as a sentence."""
    told = [
        f"{share} for {method} on {backbone}"
        for method, backbone, share, _ in own_layer_table(frame).itertuples(index=False)
    ]
    return f"Share of layers most similar to their own: {', '.join(told)}."


def cka_figure(chapter: Chapter, frame: pd.DataFrame):
    """One matrix a method and pre-training; a dot is on the layer whose patches are most
    similar."""
    parts = [
        part
        for part in ("supervised", "mae")
        if chapter.scope.backbones.get(part) in set(frame.backbone)
    ]
    fig, axes = plt.subplots(len(parts), 2, figsize=(7, 3.1 * len(parts)), squeeze=False)
    cells = frame.groupby(["variant", "backbone"])
    means = {
        key: np.mean([record.values["cka"] for record in rows.record], 0) for key, rows in cells
    }
    most = max(mean.max() for mean in means.values())  # one scale, so that panels compare
    own = own_layer(frame).groupby(["variant", "backbone"]).mean()
    for row, part in zip(axes, parts, strict=True):
        for ax, variant in zip(row, PAIR, strict=True):
            mean = means.get((variant, chapter.scope.backbones[part]))
            ax.set(xlabel="patches that enter block", ylabel="prompts of block")
            ax.grid(False)
            if mean is None:
                ax.set_title(f"{variant}, {PARTS[part]}: not run", fontsize=9)
                ax.set_axis_off()  # an empty frame would look like a finding
                continue
            share = 100 * own[variant, chapter.scope.backbones[part]]
            told = f"own layer most similar in {share:.0f} % of blocks"
            ax.set_title(f"{variant}, {PARTS[part]}:\n{told}", fontsize=9)
            shown = ax.imshow(mean, cmap="viridis", vmin=0, vmax=most)
            ax.plot(mean.argmax(1), range(len(mean)), "o", color="#d55e00", mec="white", ms=5)
    fig.colorbar(shown, ax=axes, label="CKA", shrink=0.7)
    return fig


def judge_cka(chapter: Chapter, frame: pd.DataFrame) -> None:
    """The two claims of Figure S4, a value a seed."""
    claim = "spt.figure-s4.spt-own-layer"
    rows = chapter.answers(claim, frame, ["SPT-Deep"], watched(chapter), ["supervised", "mae"])
    if len(rows):
        by_task = own_layer(rows, "task").groupby(["seed", "task"]).mean().unstack()
        chapter.judge_values(claim, by_task.dropna(), [*rows.record])
    claim = "spt.figure-s4.own-layer-over-vpt"
    rows = chapter.answers(claim, frame, PAIR, watched(chapter), ["mae"])
    if len(rows):
        share = (
            own_layer(rows, "task").groupby(["seed", "task", "variant"]).mean().unstack("variant")
        )
        chapter.judge_values(
            claim, (share["SPT-Deep"] - share["VPT-Deep"]).unstack("task").dropna(), [*rows.record]
        )


def vtab_names() -> list[str]:
    """VTAB-1k's tasks as Table S3 prints them, Natural first, then Specialized and Structured."""
    return [
        name
        for name in papers.published("spt.table-s3")
        if name not in ("pretraining", "method", "bold", "doubt")
    ]


def judge_convergence(chapter: Chapter) -> None:
    """Whether SPT-Deep's training loss is below VPT-Deep's in the first half of the epochs, under
    MAE."""
    claim, frame = (
        "spt.figure-2.converges-faster",
        chapter.rows("pretraining", variants=PAIR, part="mae"),
    )
    rows = chapter.answers(claim, frame, PAIR, "pretraining", ["mae"])
    losses = [record.values["loss"] for record in rows.record] if len(rows) else []
    speed = [-float(np.mean(np.log(loss[: max(1, len(loss) // 2)]))) for loss in losses]
    if found := chapter.gain(claim, rows.assign(test=speed), "SPT-Deep", "VPT-Deep"):
        note = (
            f"Each at its own learning rate; {found.tasks} tasks, {found.seeds} seeds. SPT-Deep's "
            f"loss is lower on {found.better_tasks} of the tasks; the interval is over seeds alone."
        )
        told = dict(evidence="trend", records=found.records, note=note)
        chapter.page.judge(claim, *found.here, **told)


def mocov3_over_mae() -> pd.DataFrame:
    """Table 2's means under MoCo-v3 minus those under MAE, by method."""
    two = (
        papers.published("spt.table-2")
        .set_index(["pretraining", "method"])[["Mean Acc", *GROUPS]]
        .astype(float)
    )
    return two.loc["MoCo-v3"] - two.loc["MAE"]


def wins_over_full() -> int:
    """On how many of the 24 tasks SPT-Deep is printed above full fine-tuning under MAE (Tables 2
    and S3)."""
    two, s3 = (
        papers.published(name).set_index(["pretraining", "method"]).loc["MAE"]
        for name in ("spt.table-2", "spt.table-s3")
    )
    ahead = [
        t.loc["SPT-Deep", names].astype(float) > t.loc["Full", names].astype(float)
        for t, names in ((two, FGVC), (s3, vtab_names()))
    ]
    return int(sum(part.sum() for part in ahead))


def group_means_off() -> pd.DataFrame:
    """Means of the groups from Table S3's cells, minus those that Tables 2 and S4 print."""
    printed, vtab = (
        papers.published("spt.table-s3").set_index(["pretraining", "method"]),
        vtab_names(),
    )
    spans = dict(zip(GROUPS, (vtab[:7], vtab[7:11], vtab[11:]), strict=True))
    means = pd.DataFrame(
        {group: printed[names].astype(float).mean(axis=1) for group, names in spans.items()}
    )
    two = papers.published("spt.table-2").set_index(["pretraining", "method"])[GROUPS].astype(float)
    four = papers.published("spt.table-s4").set_index("method")[GROUPS].astype(float)
    four.index = pd.MultiIndex.from_product([["supervised"], four.index])
    return means - pd.concat([two, four]).rename_axis(means.index.names).loc[means.index]


def val_shares_off() -> tuple[float, str]:
    """How far Table S1's starred validation sets are from a tenth of the training images, and which
    they are."""
    starred = papers.published("spt.table-s1")
    starred = starred[starred.val.str.endswith("*")]
    train, val = (
        starred[name].str.strip("*").str.replace(",", "").astype(int) for name in ("train", "val")
    )
    return (100 * val / (train + val) - 10).abs().max(), ", ".join(starred.dataset)
