"""What the page on SPT's ablations draws: initialisations, share and amount of data, other tasks,
lengths, sizes."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from ..pages import plots
from ..pages.friendly import named, signed
from ..studies import comparable, grids, statistics
from .chapter import PARTS, Chapter
from .spt import COLOURS, PAIR

STARTS = {  # variant of studies.yaml -> as shown
    "uniform (VPT)": "uniform (VPT)",
    "k-means": "k-means",
    "mean": "mean pooling",
    "max": "max pooling",
    "random": "random sample",
}
SAMPLED = [name for name in STARTS if name != "uniform (VPT)"]
PROBE, SHALLOW = "Linear probe", ("VPT-Shallow", "SPT-Shallow")  # as studies.yaml names them
LEVELS = {
    "uniform (VPT)": "(a) uniform (VPT)",
    "tokens of block 0": "(b) first level",
    "tokens behind the last block": "(b) last level",
    "random": "(c) own level (SPT)",
}


def spread(rows: pd.DataFrame) -> str:
    """Mean over tasks and seeds with the standard deviation over seeds, as text."""
    by_seed = rows.groupby("seed").test.mean()
    return statistics.spread(by_seed, statistics.runs(rows), rows) if len(by_seed) else "–"


def starts_table(chapter: Chapter, frame: pd.DataFrame) -> pd.DataFrame:
    """A row a start, a column a pre-training and kind."""
    frame = comparable.comparable(frame, ["backbone", "variant"])
    rows = []
    for name, label in STARTS.items():
        row = {"initialisation": label}
        for part in ("supervised", "mae"):
            mine = frame[frame.backbone == chapter.scope.backbones.get(part)]
            row[f"{PARTS[part]}, frozen"] = spread(mine[mine.variant == f"{name}, frozen"])
            row[f"{PARTS[part]}, learned"] = spread(mine[mine.variant == name])
        rows.append(row)
    return pd.DataFrame(rows)


def probe_table(chapter: Chapter, frame: pd.DataFrame) -> pd.DataFrame:
    """The linear probe's accuracy, a column a pre-training; `frame` has the starts too, whose tasks
    it must have."""
    frame = comparable.comparable(frame, ["backbone", "variant"])
    frame = frame[frame.variant == PROBE]
    row = {"": "no prompts (linear probe)"}
    for part in ("supervised", "mae"):
        row[PARTS[part]] = spread(frame[frame.backbone == chapter.scope.backbones.get(part)])
    return pd.DataFrame([row])


def judge_starts(chapter: Chapter, frame: pd.DataFrame) -> None:
    """The claims of Table 4: every sampled start over the uniform one, k-means over the other
    sampled ones."""
    about = (chapter.of_study("spt-starts"), ["supervised", "mae"])
    for claim, tail in (("frozen", ", frozen"), ("learned", "")):
        leads = {STARTS[name]: (frame, name + tail, "uniform (VPT)" + tail) for name in SAMPLED}
        chapter.judge_least(f"spt.table-4.{claim}-over-uniform", leads, *about)
    leads = {
        PARTS[part]: (
            frame[frame.backbone == chapter.scope.backbones.get(part)],
            "random",
            "k-means",
        )
        for part in about[1]
    }
    chapter.judge_least("spt.table-4.learned-random-near-k-means", leads, about[0])
    others = [name for name in SAMPLED if name != "k-means"]
    leads = {
        f"over {STARTS[name]}": (frame, "k-means, frozen", f"{name}, frozen") for name in others
    }
    chapter.judge_least("spt.table-4.frozen-k-means-best", leads, *about)


def levels_table(chapter: Chapter, frame: pd.DataFrame) -> pd.DataFrame:
    """A row a level that prompts start from; columns without a run are left out."""
    frame = comparable.comparable(frame, ["backbone", "variant"])
    rows, of_shallow = [], [*SHALLOW, None, SHALLOW[1]]
    for (name, label), plain in zip(LEVELS.items(), of_shallow, strict=True):
        row = {"initialisation": label}
        for part in ("supervised", "mae"):
            mine = frame[frame.backbone == chapter.scope.backbones.get(part)]
            row[f"{PARTS[part]}, shallow"] = spread(mine[mine.variant == plain])
            row[f"{PARTS[part]}, deep"] = spread(mine[mine.variant == name])
        rows.append(row)
    table = pd.DataFrame(rows)
    return table.loc[:, (table != "–").any()]


def told_by(frame: pd.DataFrame, line: str, by: str) -> str:
    """The means of several lines along a column as text."""
    each = frame.groupby(line, sort=False)
    return " ".join(f"{name}: {plots.told(rows, by)}." for name, rows in each)


def share_plot(chapter: Chapter, artifact: str) -> None:
    """(a) Accuracy by the share of the images that k-means saw."""
    frame = chapter.rows("spt-share", part="mae")
    if not len(frame):
        return
    frame = frame.assign(share=frame.variant.str.removesuffix(" %").astype(float))
    plain = chapter.rows("pretraining", variants=["SPT-Deep"], tasks="ablation", part="mae")
    fig, ax = plt.subplots(figsize=(7, 3))
    plots.seeds_line(ax, frame, "share", "k-means", color=COLOURS["SPT-Deep"])
    if len(plain):
        ax.axhline(plain.test.mean(), ls="--", color="#7f7f7f", label="random sample")
    means = frame.groupby("share").test.mean()
    title = (
        f"{signed(means.iloc[-1] - means.iloc[0])} points from the smallest share to the largest"
    )
    ax.set_title(named(title), fontsize=9)
    ax.set(xlabel="training images used by k-means, %", ylabel="test accuracy, %")
    plots.legend_below(fig, [ax])
    used = pd.concat([frame, plain])
    chapter.show(
        artifact,
        fig,
        used,
        "(a) SPT-Deep by share of the images that k-means sees: mean and range over seeds.",
        f"Test accuracy in % by share of the images: {plots.told(frame, 'share')}. Random sample: "
        f"{plain.test.mean():.1f}.",
    )
    chapter.judge(
        "spt.figure-3.more-images-better", frame, "100 %", "10 %", on="ablation", parts=["mae"]
    )


def matrix_plot(chapter: Chapter, artifact: str, part: str, letter: str) -> None:
    """Accuracy with frozen prompts started on each task, over the best of its column."""
    frame = chapter.rows("spt-other-task", part=part)
    sources = [run.prepared_on for run in frame.run] if len(frame) else []
    frame = frame.assign(prepared_on=sources)
    if frame.prepared_on.nunique() < 2:
        return
    every = grids.tasks_of("spt-other-task", chapter.scope)
    tasks = [name for name in every if name in {*frame.task, *sources}]
    means = frame.groupby(["prepared_on", "task"]).test.mean().unstack()
    means = means.reindex(index=tasks, columns=tasks)
    fig, ax = plt.subplots(figsize=(7, 3.2))
    shares = 100 * means / means.max()
    shown = {"annot": True, "fmt": ".1f", "cmap": "viridis", "vmin": 50, "vmax": 100}
    sns.heatmap(shares, ax=ax, cbar_kws={"label": "% of the column's best"}, **shown)
    own = (means.idxmax() == means.columns).sum()
    ax.set_title(f"A task's own prompts are best for {own} of {len(tasks)} tasks", fontsize=9)
    ax.set(xlabel="task that is learned", ylabel="task of the prompts")
    ax.tick_params(axis="y", rotation=0)
    caption = (
        f"({letter}) Frozen prompts, initialised on the task of each row: accuracy in % of the "
        f"best in its column."
    )
    told = "; ".join(
        f"{task}: "
        + ", ".join(f"{share:.0f} with {other}" for other, share in shares[task].dropna().items())
        for task in tasks
    )
    chapter.show(artifact, fig, frame, caption, f"Accuracy in % of the best, by task: {told}.")
    four, claim = chapter.of_study("spt-other-task"), f"{artifact}.own-task-best"
    rows = chapter.answers(claim, frame.assign(variant=sources), four, four, [part])
    pair = ("prompts of the task itself", "mean of the others")
    sides = rows.assign(variant=np.where(rows.prepared_on == rows.task, *pair))
    chapter.judge(claim, sides, *pair, "Prompts frozen.", on=four, parts=[part], drawn=True)


def length_plot(chapter: Chapter, artifact: str, part: str, letter: str) -> None:
    """Accuracy of VPT-Deep and SPT-Deep by the number of prompts per block."""
    frame = chapter.rows("spt-length", part=part)
    if not len(frame):
        return
    split = frame.variant.str.split(", ", expand=True)
    frame = comparable.comparable(
        frame.assign(family=split[0], length=split[1].astype(int)), ["variant"]
    )
    lengths = frame.length.unique()
    if len(lengths) < 2:
        return
    fig, ax = plt.subplots(figsize=(7, 3))
    for family, rows in frame.groupby("family", sort=False):
        plots.seeds_line(ax, rows, "length", family, color=COLOURS[family])
    plots.plain_ticks(ax, lengths)
    means = frame.groupby(["length", "family"]).test.mean().unstack()
    told = (means.max() - means.min()).items()
    title = ", ".join(f"{family} by {points:.1f} points" for family, points in sorted(told)[::-1])
    ax.set_title(f"Between lengths accuracy varies: {title}", fontsize=9)
    ax.set(xlabel="prompts per block", ylabel="test accuracy, %")
    plots.legend_below(fig, [ax])
    caption = f"({letter}) Prompt length: mean and range over seeds."
    alt = "Test accuracy in % by number of prompts per block. " + told_by(frame, "family", "length")
    chapter.show(artifact, fig, frame, caption, alt)
    if len(lengths) > 2 and set(PAIR) <= set(frame.family):
        claim, every = (
            f"{artifact}.length-matters-less",
            [f"{family}, {length}" for family in PAIR for length in lengths],
        )
        rows = chapter.answers(claim, frame, every, "ablation", [part])
        if len(rows):
            by_length = rows.groupby(["seed", "family", "length"]).test.mean().unstack()
            ranges = (by_length.max(axis=1) - by_length.min(axis=1)).unstack("family")
            note = f"Range over {len(lengths)} lengths, for each of"
            chapter.judge_values(
                claim, ranges["SPT-Deep"] - ranges["VPT-Deep"], [*rows.record], note
            )
            if part == "mae":
                ours = by_length.xs("SPT-Deep", level="family")
                slopes = [
                    np.polyfit(np.log2(ours.columns.astype(float)), values, 1)[0]
                    for values in ours.to_numpy()
                ]
                ends = f"From {min(lengths)} to {max(lengths)} prompts, for each of"
                chapter.judge_values(
                    f"{artifact}.slight-gains-with-length", slopes, [*rows.record], ends
                )


def size_plot(
    chapter: Chapter, artifact: str, frame: pd.DataFrame, parts: Sequence[str], letter: str, on
) -> None:
    """Accuracy of VPT-Deep and SPT-Deep by the size of the backbone, and the claim on a list of
    tasks."""
    names = [chapter.scope.backbones[part] for part in parts if part in chapter.scope.backbones]
    frame = comparable.comparable(
        frame[frame.variant.isin(PAIR) & frame.backbone.isin(names)], ["backbone", "variant"]
    )
    if frame.backbone.nunique() < 2:
        return
    frame = frame.assign(
        place=frame.backbone.map(names.index) + 0.05 * (frame.variant == "SPT-Deep")
    )
    fig, ax = plt.subplots(figsize=(7, 3))
    for variant, rows in frame.groupby("variant", sort=False):
        plots.seeds_line(ax, rows, "place", variant, color=COLOURS[variant])
    ax.set_xticks(range(len(names)), [named(name.partition(".")[0]) for name in names])
    means = frame.groupby(["backbone", "variant"]).test.mean().unstack()
    if {*PAIR} <= {*means}:
        ahead = f"{(means[PAIR[1]] > means[PAIR[0]]).sum()} of {len(means)} sizes"
        ax.set_title(f"{PAIR[1]} is above {PAIR[0]} at {ahead}", fontsize=9)
    ax.set(xlabel="backbone", ylabel="test accuracy, %")
    plots.legend_below(fig, [ax])
    caption = (
        f"({letter}) Size of the backbone, on {' and '.join(dict.fromkeys(frame.task))}: "
        f"mean and range over seeds."
    )
    alt = "Test accuracy in % by backbone. " + named(told_by(frame, "variant", "backbone"))
    chapter.show(artifact, fig, frame, caption, alt)
    if set(names) == set(frame.backbone):
        leads = {name: (frame[frame.backbone == name], "SPT-Deep", "VPT-Deep") for name in names}
        chapter.judge_least(f"{artifact}.over-vpt-at-every-size", leads, on)


def amount_plot(
    chapter: Chapter, artifact: str, task: str, prompts: Sequence[str], on: Sequence[str]
) -> None:
    """Accuracy by training images and pre-training, and the claims at both ends, which speak of the
    tasks `on`."""
    whole = chapter.rows("spt-amount", variants=["Full fine-tuning", *PAIR])
    whole = whole[whole.task == task]
    parts = [
        part
        for part in ("mae", "supervised")
        if chapter.scope.backbones.get(part) in set(whole.backbone)
    ]
    if whole.train_size.nunique() < 2:
        return
    fig, axes = plt.subplots(1, len(parts), figsize=(7, 3.3), sharey=True, squeeze=False)
    told = []
    for ax, part in zip(axes[0], parts, strict=True):
        frame = whole[whole.backbone == chapter.scope.backbones[part]]
        for variant, rows in frame.groupby("variant", sort=False):
            plots.seeds_line(ax, rows, "train_size", variant, color=COLOURS[variant])
        plots.plain_ticks(ax, frame.train_size.unique())
        best = frame.groupby(["train_size", "variant"]).test.mean().unstack().idxmax(axis=1)
        title, last = f"{PARTS[part]}: {best.iloc[0]} best with {best.index[0]}", best.iloc[-1]
        more = "and with" if last == best.iloc[0] else f"{last} with"
        ax.set_title(f"{title},\n{more} {best.index[-1]} images", fontsize=9)
        ax.set(xlabel="training images", ylabel="test accuracy, %")
        told.append(f"{PARTS[part]} pre-training: {told_by(frame, 'variant', 'train_size')}")
    plots.legend_below(fig, axes[0], columns=3)
    caption = f"Accuracy on {task} by number of training images: mean and range over seeds."
    alt = f"Test accuracy in % by number of training images. {' '.join(told)}"
    chapter.show(artifact, fig, whole, caption, alt)
    for part in parts:
        judge_ends(
            chapter,
            artifact,
            whole[whole.backbone == chapter.scope.backbones[part]],
            part,
            prompts,
            on,
        )


def judge_ends(
    chapter: Chapter, artifact: str, frame: pd.DataFrame, part: str, prompts: Sequence[str], on
) -> None:
    """With the fewest images prompts are claimed above full fine-tuning, with the most below."""
    sizes, full = frame.train_size, "Full fine-tuning"
    if sizes.nunique() > 1:
        few, many = frame[sizes == sizes.min()], frame[sizes == sizes.max()]
        ahead = {f"{name} over {full}": (few, name, full) for name in prompts}
        behind = {f"{full} over {name}": (many, full, name) for name in prompts}
        first = few.groupby("variant").test.mean()
        if {full, *prompts} <= set(first.index) and (first[full] >= first[[*prompts]]).all():
            why = (
                f"full fine-tuning is ahead with {few.train_size.iloc[0]} images "
                f"already, so the order cannot reverse"
            )
            chapter.page.not_judged(f"{artifact}.{part}-many-images", why)
            behind = {}
        for word, leads, rows in (("few", ahead, few), ("many", behind, many)):
            note = f"{rows.train_size.iloc[0]} images."
            chapter.judge_least(f"{artifact}.{part}-{word}-images", leads, on, [part], note)
