"""What the page on iVPT's parts draws: loss under noise, numbers of tokens, attention by block."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ..pages import plots
from ..studies import comparable, grids, insights
from .chapter import Chapter
from .ivpt import COLOURS, PAIR

NOISE = {  # profile -> artifact -> tasks
    "quick": {"ivpt.figure-4": ["letters"], "ivpt.figure-6": ["texture", "position"]},
    "paper": {
        "ivpt.figure-4": ["cifar100", "caltech101"],
        "ivpt.figure-6": ["patch_camelyon", "resisc45", "clevr_count", "dmlab"],
    },
}
# of Figure 7
LOOKED_AT = {
    "quick": ["texture", "position", "count"],
    "paper": ["pets", "resisc45", "clevr_count"],
}


def insight(
    chapter: Chapter, function: Callable, study: str, variant: str, slug: str, wanted: Sequence[str]
) -> pd.DataFrame:
    """The records of a measurement on a study's runs of one variant: backbone, task, variant, seed,
    record."""
    p, only = chapter.p, chapter.scope.only_tasks
    names = tuple(name for name in wanted if not only or name in only)
    found = []
    if names and (p.methods is None or slug in p.methods):
        narrow = replace(chapter.scope, only_tasks=names, only_methods=(slug,))
        compute = p.plan == "paper" if p.studies is None else study in p.studies
        cells = [
            run
            for name, run in grids.with_rates(
                study, narrow, chapter.lab, False, left_out={} if chapter.lenient else None
            )
            if name == variant
        ]
        for run in cells:
            for seed in dict.fromkeys([*p.seeds, *p.kept_seeds]):
                record = chapter.look(
                    function, replace(run, seed=seed), compute=compute and seed in p.seeds
                )
                found += [] if record is None else [(run.backbone, run.task, variant, seed, record)]
    return pd.DataFrame(found, columns=["backbone", "task", "variant", "seed", "record"])


def noise_of(chapter: Chapter, artifact: str) -> pd.DataFrame:
    """Loss of accuracy of CDC and EXPRESS by task, variant, seed and level of noise, in points."""
    wanted = NOISE[chapter.p.plan][artifact]
    both = [
        insight(chapter, insights.under_noise, "ivpt-structures", "CDC", "cdc", wanted),
        insight(chapter, insights.under_noise, "benchmark", "EXPRESS", "express", wanted),
    ]
    found = []
    for _, row in pd.concat(both).iterrows():
        levels, values = row.record.values["levels"], row.record.values["accuracy"]
        found += [
            {**row, "level": level, "loss": values[0] - value}
            for level, value in zip(levels, values, strict=True)
        ]
    return pd.DataFrame(
        found, columns=["backbone", "task", "variant", "seed", "record", "level", "loss"]
    )


def spared(chapter: Chapter, frame: pd.DataFrame, claim: str, artifact: str) -> pd.DataFrame:
    """How much less CDC loses than EXPRESS (seeds, an artifact's data sets): mean over the levels
    above 0.

    Empty where a run that the claim speaks of is missing.
    """
    rows = chapter.answers(claim, frame, ["CDC", "EXPRESS"], NOISE[chapter.p.plan][artifact])
    means = rows[rows.level > 0].pivot_table(
        index=["seed", "task"], columns="variant", values="loss"
    )
    return (
        (means["EXPRESS"] - means["CDC"]).unstack("task").dropna() if len(rows) else pd.DataFrame()
    )


def show_noise(chapter: Chapter, artifact: str, frame: pd.DataFrame) -> None:
    """Loss over noise level, one panel a task, and the claim that CDC loses less; nothing without
    runs."""
    if not len(frame):
        return
    names = list(dict.fromkeys(frame.task))
    fig, axes = plt.subplots(1, len(names), figsize=(7, 3.2), sharey=True, squeeze=False)
    for ax, name in zip(axes[0], names, strict=True):
        for variant, rows in frame[frame.task == name].groupby("variant"):
            plots.seeds_band(ax, rows, "level", "loss", variant, color=COLOURS[variant])
        most = frame[(frame.task == name) & (frame.level == frame.level.max())]
        lost = most.groupby("variant").loss.mean()
        told = ", ".join(f"{variant} {loss:.1f}" for variant, loss in lost.items())
        ax.set_title(f"{name}: {told.replace(' ', ' loses ', 1)}", fontsize=9)
        ax.set_xlabel("noise (standard deviation)")
    axes[0][0].set_ylabel("accuracy lost, points")
    axes[0][0].legend(loc="upper left")
    alt = "Points of test accuracy lost by standard deviation of the noise. " + " ".join(
        f"{variant} on {name}: {plots.told(rows, 'level', 'loss')}."
        for (name, variant), rows in frame.groupby(["task", "variant"], sort=False)
    )
    note = "Mean and range over seeds, one noise sample per seed."
    chapter.show(
        artifact,
        fig,
        frame,
        "Test accuracy lost relative to the same model without noise.",
        alt,
        note,
    )
    claim = f"{artifact}.cdc-loses-less"
    told = f"{' and '.join(names).capitalize()}, paired by seed;"
    chapter.judge_values(claim, spared(chapter, frame, claim, artifact), [*frame.record], told)


def judge_foreign(chapter: Chapter, foreign: pd.DataFrame, natural: pd.DataFrame) -> None:
    """Judge whether CDC spares more on specialised and structured sets than on natural ones."""
    claim, few = "ivpt.figure-6.more-on-foreign", natural.task.unique()
    if len(foreign) and len(few) == 1:
        chapter.page.not_judged(
            claim, f"its natural side is of 2 data sets; one task ({few[0]}) cannot stand for them"
        )
    elif len(foreign):
        more = spared(chapter, foreign, claim, "ivpt.figure-6").mean(axis=1)
        more = (more - spared(chapter, natural, claim, "ivpt.figure-4").mean(axis=1)).dropna()
        used = [*foreign.record, *natural.record]
        chapter.judge_values(claim, more, used, "Against the tasks of Figure 4, paired by seed;")


def token_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """The runs of ivpt-tokens with columns N and k."""
    numbers = [re.match(r"N = (\d+), k = (\d+)", name).groups() for name in frame.variant]
    return frame.assign(N=[int(n) for n, _ in numbers], k=[int(k) for _, k in numbers])


def tokens_figure(frame: pd.DataFrame):
    """Accuracy over N without AR, and over k with ten prompts."""
    fig, axes = plt.subplots(1, 2, figsize=(7, 3.2), sharey=True)
    frame = comparable.comparable(frame, ["N", "k"])
    for ax, name, other, fixed in zip(axes, "Nk", "kN", (0, 10), strict=True):
        line = frame[frame[other] == fixed].groupby([name, "seed"]).test.mean().reset_index()
        plots.seeds_band(ax, line, name, "test", color=COLOURS["iVPT"])
        kind = "prompt" if name == "N" else "reinforced"
        ax.set_xlabel(f"{name}, {kind} tokens ({other} = {fixed})")
        if len(line):  # without kept records a quick book runs one of the two lines alone
            ax.set_title(f"Highest at {name} = {line.groupby(name).test.mean().idxmax()}")
    axes[0].set_ylabel("test accuracy, %")
    return fig


def tokens_told(frame: pd.DataFrame) -> str:
    """The means of `tokens_figure` as text."""
    return " ".join(
        f"By {name} with {other} = {fixed}: {plots.told(frame[frame[other] == fixed], name)}."
        for name, other, fixed in zip("Nk", "kN", (0, 10), strict=True)
    )


def judge_tokens(chapter: Chapter, frame: pd.DataFrame) -> None:
    """Figure 5's claims: some k over none, and the range over N."""
    of_k = frame[frame.N == 10].assign(variant=[f"k = {k}" for k in frame[frame.N == 10].k])
    leads = {
        f"{name} over k = 0": (of_k, name, "k = 0")
        for name in dict.fromkeys(of_k.variant)
        if name != "k = 0"
    }
    if "k = 0" in set(of_k.variant):
        chapter.judge_least("ivpt.figure-5.k-over-none", leads, on=chapter.of_study("ivpt-tokens"))
    rows, claim = frame[frame.k == 0], "ivpt.figure-5.range-over-n"
    if rows.N.nunique() > 1:
        rows = chapter.answers(claim, rows, [*rows.variant.unique()], "ablation")
    if rows.N.nunique() > 1:
        spread = rows.pivot_table(index=["seed", "task"], columns="N", values="test")
        ranges = (spread.max(axis=1) - spread.min(axis=1)).groupby("seed").mean()
        note = f"N = {', '.join(map(str, spread))}. Scatter between runs adds to a range. Of"
        chapter.judge_values(claim, ranges, [*rows.record], note)


def maps_figure(chapter: Chapter, first: pd.DataFrame):
    """One test image of each task and the class token's attention to it by block; a row of `first`
    a row."""
    depth = len(first.record.iloc[0].values["class"][0])
    blocks = np.unique(np.linspace(0, depth - 1, min(8, depth)).round().astype(int))
    fig, axes = plt.subplots(
        len(first), 1 + len(blocks), figsize=(7, 0.4 + 0.76 * len(first)), squeeze=False
    )
    for line, (_, row) in zip(axes, first.iterrows(), strict=True):
        size = chapter.lab.backbone(row.record.settings["backbone"]).image_size
        line[0].imshow(chapter.lab.task(row.task, size).test[0][0].permute(1, 2, 0).cpu().numpy())
        line[0].set_ylabel(
            f"{row.task}\n{row.variant}", fontsize=8, rotation=0, ha="right", va="center"
        )
        for ax, block in zip(line[1:], blocks, strict=True):
            weights_of = np.array(row.record.values["class"][0][block])
            side = round(len(weights_of) ** 0.5)
            ax.imshow(weights_of.reshape(side, side), cmap="magma", vmin=0)
    for ax, title in zip(axes[0], ["image", *(f"block {block}" for block in blocks)], strict=True):
        ax.set_title(title, fontsize=8)
    for ax in axes.flat:
        ax.set_xticks([]), ax.set_yticks([]), ax.grid(False)
    return fig


def first_maps(maps: pd.DataFrame, order: Sequence[str]) -> pd.DataFrame:
    """The record with the least seed of each task and variant, tasks in order."""
    first = (
        maps.sort_values("seed", kind="stable")
        .groupby(["task", "variant"], sort=False)
        .first()
        .reset_index()
    )
    return first.sort_values("task", key=lambda names: names.map(order.index), kind="stable")


def entropies(maps: pd.DataFrame) -> pd.DataFrame:
    """Entropy by block, one row a record."""
    values = pd.DataFrame([row.record.values["entropy"] for _, row in maps.iterrows()])
    return pd.concat([maps[["task", "variant", "seed"]].reset_index(drop=True), values], axis=1)


def entropies_told(maps: pd.DataFrame) -> str:
    """The means of `entropy_figure` as text."""
    means = entropies(maps).drop(columns=["task", "seed"]).groupby("variant", sort=False).mean()
    told = [f"{name}: {', '.join(f'{bits:.2f}' for bits in row)}" for name, row in means.iterrows()]
    return f"{'; '.join(told)} (from the first block to the last)."


def entropy_figure(maps: pd.DataFrame):
    """Entropy by block, mean over tasks, with the range of the seeds."""
    patches = len(maps.record.iloc[0].values["class"][0][0])
    fig, ax = plt.subplots(figsize=(7, 3.2))
    for variant, rows in entropies(maps).groupby("variant", sort=False):
        line = rows.drop(columns=["task", "variant"]).groupby("seed").mean()
        blocks = np.arange(line.shape[1])
        ax.fill_between(blocks, line.min(), line.max(), color=COLOURS[variant], alpha=0.2, lw=0)
        ax.plot(blocks, line.mean(), "o-", color=COLOURS[variant], label=variant)
    ax.axhline(np.log2(patches), color="#555555", lw=1, ls="--", label="uniform attention")
    means = entropies(maps).drop(columns=["task", "seed"]).groupby("variant").mean()
    if set(PAIR) <= {*means.index}:
        lower = means.loc["iVPT"] < means.loc["VPT-Deep"]
        title = f"iVPT's attention is more concentrated in {lower.sum()} of {len(lower)} blocks"
        fig.suptitle(title, fontsize=12)
    ax.set(xlabel="block", ylabel="entropy, bits")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return fig


def judge_entropy(chapter: Chapter, maps: pd.DataFrame, looked_at: Sequence[str]) -> None:
    """Figure 7's claim, on the tasks that the benchmark has."""
    tasks, claim = (
        [name for name in looked_at if name in chapter.scope.tasks["benchmark"]],
        "ivpt.figure-7.more-concentrated",
    )
    rows = chapter.answers(claim, maps, PAIR, tasks)
    if len(rows):
        means = entropies(rows)
        means = means.assign(mean=means.drop(columns=["task", "variant", "seed"]).mean(axis=1))
        means = means.pivot_table(index=["seed", "task"], columns="variant", values="mean")
        lower = (means["iVPT"] - means["VPT-Deep"]).unstack("task").dropna()
        chapter.judge_values(claim, lower, [*rows.record], "Paired by seed and task;")
