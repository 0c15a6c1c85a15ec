"""What the page on DA-VPT's parts draws: components and their cost, guided blocks, biases,
weights."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from visprompt import records

from ..pages import plots
from ..studies import bench, bench_table, comparable
from ..studies.statistics import Cell
from .chapter import PARTS, Chapter
from .davpt import BLUE, GREEN, ORANGE, POINTS, dots, over, printed_counts, prose

STEPS = {  # rows of Table 4 -> the gain that the text prints for them
    "VPT-Deep": "",
    "patches-prompts loss": "",
    "prompts-class loss": "",
    "both losses": "losses",
    "Efficient Bias": "",
    "patches-prompts loss + Efficient Bias": "",
    "prompts-class loss + Efficient Bias": "",
    "all": "all",
}
PART_COLORS = {"supervised": BLUE, "mae": ORANGE, "mocov3": GREEN}
WEIGHTS = {  # panels of Figure 5 but those of the prompts' numbers: x -> variant
    "β, patches-prompts": {0.01: "beta = 0.01", 0.1: "beta = 0.1", 1: "beta = 1", 10: "beta = 10"},
    "λ, prompts-class token": {0.01: "lambda = 0.01", 0.1: "beta = 0.1", 1: "lambda = 1"},
}


def of(frame: pd.DataFrame, variant: str) -> pd.Series:
    """Test accuracies of a variant, meaned over all tasks of the frame, one a seed."""
    frame = comparable.comparable(frame, ["variant"])
    return frame[frame.variant == variant].groupby("seed").test.mean().astype(float)


def printed_gains() -> dict[str, dict[str, float]]:
    """The gains that the text prints for the losses, the biases and all, on CUB and on the Natural
    group."""
    printed = prose()
    steps = ("losses", "bias", "all")
    return {
        kind: {step: float(printed[f"{step}-{kind.lower()}"]) for step in steps}
        for kind in ("CUB", "Natural")
    }


def components_table(parts: pd.DataFrame) -> pd.DataFrame:
    """A row a component of Table 4, with its gain over VPT-Deep and the gains that the text
    prints."""
    gains, rows = printed_gains(), []
    for variant in dict.fromkeys(parts.variant):
        values, gain, step = of(parts, variant), over(parts, variant, "VPT-Deep"), STEPS[variant]
        row = {
            "components": variant,
            ", ".join(parts.task.unique()): Cell(
                f"{values.mean():.1f}", parts.record[parts.variant == variant]
            ),
            "over VPT-Deep": f"{gain.mean():+.1f}" if len(gain) else "–",
            "least and most": f"{gain.min():+.1f} to {gain.max():+.1f}" if len(gain) > 1 else "–",
        }
        row |= {f"printed, {kind}": f"+{gains[kind][step]:.2f}" if step else "–" for kind in gains}
        rows.append({**row, "seeds": len(values)})
    return pd.DataFrame(rows)


def timed(name: str) -> records.Record | None:
    """The bench record at ViT-Base/16, from a GPU where there is one."""
    kept = [r for r in bench_table.kept_records() if r.settings["name"] == name]
    kept = [r for r in kept if r.settings.get("backbone") == bench.BASE]
    return max(kept, key=lambda r: r.settings["device"] == "cuda", default=None)


def step_ratios() -> dict[str, tuple[list[float], records.Record]]:
    """Time of a training step over VPT-Deep's, round by round, with its record; of what the bench
    has timed."""
    pair, every = timed("da-vpt"), timed("methods")
    found = {} if pair is None else {"da-vpt": (bench_table.ratios(pair), pair)}
    if every is not None:
        both = zip(
            every.values["da-vpt-plus"]["seconds"], every.values["vpt-deep"]["seconds"], strict=True
        )
        found["da-vpt-plus"] = [a / b for a, b in both], every
    return found


def step_memory() -> dict[str, records.Record]:
    """The counted memory of VPT-Deep, DA-VPT and DA-VPT+."""
    return {slug: bench.counted_memory(slug) for slug in ("vpt-deep", "da-vpt", "da-vpt-plus")}


def memory_ratio(memory: dict[str, records.Record], slug: str) -> float:
    """A method's counted memory over VPT-Deep's."""
    return memory[slug].values["memory"]["total"] / memory["vpt-deep"].values["memory"]["total"]


def cost_table(ratios: dict, memory: dict[str, records.Record]) -> pd.DataFrame:
    """Time, memory and parameters of a training step over VPT-Deep, the printed ones first."""
    before, after = (float(prose()[f"latency-{when}"].split()[0]) for when in ("before", "after"))
    bias, dash = printed_counts("davpt.table-4")[0], "–"
    rows = [
        ("all components, printed", f"{after / before:.3f}", dash, dash, f"{bias['printed']:g}")
    ]
    for slug in ("da-vpt", "da-vpt-plus"):
        values = ratios.get(slug, ([], None))[0]
        added = memory[slug].values["parameters"] - memory["vpt-deep"].values["parameters"]
        time = f"{np.median(values):.3f}" if values else "not timed"
        span = f"{min(values):.3f} to {max(values):.3f}" if values else dash
        more = f"{memory_ratio(memory, slug):.3f}"
        rows.append((f"{plots.NAMES[slug]}, here", time, span, more, f"{added / 1e6:.4f}"))
    return pd.DataFrame(
        rows,
        columns=[
            "method",
            "time over VPT-Deep",
            "range",
            "memory over VPT-Deep",
            "added parameters, M",
        ],
    )


def layers_figure(rows: pd.DataFrame, depth: int):
    """Accuracy against the guided block, alone and to the last."""
    fig, ax = plt.subplots(figsize=(7, 3))
    kinds = (
        ("block {} alone", BLUE, "one block"),
        ("blocks {} to the last", ORANGE, "from it to the last"),
    )
    for kind, color, label in kinds:
        block = {kind.format(at): at for at in range(depth)}
        mine = rows[rows.variant.isin(block)]
        if len(mine):
            plots.seeds_line(
                ax, mine.assign(block=mine.variant.map(block)), "block", label, color=color
            )
    ax.set(xlabel="guided block, counted from 0", ylabel=POINTS)
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return fig


def times_figure(used: list[records.Record]):
    """Milliseconds and moved classes by call of k-means."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(7, 2.8))
    for ax, name, scale in ((left, "seconds", 1000), (right, "moved", 1)):
        values = [scale * np.array(r.values[name]) for r in used]
        for one in values:
            ax.plot(one, color=BLUE, alpha=0.35, lw=1)
        ax.plot(np.mean(values, axis=0), "o-", color=BLUE, ms=4)
        ax.set(xlabel="call (0: before the first epoch)", ylim=(0, None))
    left.set_ylabel("milliseconds")
    right.set_ylabel("classes moved")
    return fig


def late_over_first(record: records.Record) -> float:
    """Mean time of k-means in the second half of its calls over that of the first three."""
    seconds = record.values["seconds"]
    return np.mean(seconds[len(seconds) // 2 :]) / np.mean(seconds[:3])


def biases_figure(rows: pd.DataFrame):
    """What a category of biases adds to that of the keys alone, which can change nothing."""
    fig, ax = plt.subplots(figsize=(7, 3))
    names = [name for name in dict.fromkeys(rows.variant) if name not in ("none", "key")]
    dots(ax, {name: over(rows, name, "key") for name in names}, BLUE)
    ax.set(xlabel="points over the bias of keys alone")
    return fig


def weight_panels(middle: int) -> dict[str, dict[float, str]]:
    """The panels of Figure 5, x -> variant; `middle` is the number of prompts at the defaults."""
    guided = {**{n: f"guided prompts = {n}" for n in (2, 16)}, middle: "beta = 0.1"}
    other = {**{n: f"other prompts = {n}" for n in (2, 20)}, middle: "beta = 0.1"}
    return {**WEIGHTS, "guided prompts": guided, "other prompts": other}


def weights_figure(chapter: Chapter, weighed: pd.DataFrame):
    """Accuracy over weights and numbers of prompts, a line a pre-training."""
    fig, axes = plt.subplots(2, 2, figsize=(7, 5.2), sharey=True)
    for ax, (name, points) in zip(
        axes.flat, weight_panels(chapter.scope.prompts["deep"]).items(), strict=True
    ):
        at = {variant: x for x, variant in points.items()}
        for part, color in PART_COLORS.items():
            rows = weighed[
                (weighed.backbone == chapter.scope.backbones.get(part)) & weighed.variant.isin(at)
            ]
            if len(rows):
                plots.seeds_line(
                    ax, rows.assign(x=rows.variant.map(at)), "x", PARTS[part], color=color
                )
        ax.set_xlabel(name)
        plots.plain_ticks(ax, points)
    for ax in axes[:, 0]:
        ax.set_ylabel(POINTS)
    handles = {
        label: handle
        for ax in axes.flat
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    fig.legend(handles.values(), handles, loc="outside upper center", ncols=3)
    return fig


def spans(chapter: Chapter) -> list[list[str]]:
    """The variants of Figure 5 that differ in guided prompts, and in the others."""
    panels = weight_panels(chapter.scope.prompts["deep"])
    return [list(panels[name].values()) for name in ("guided prompts", "other prompts")]


def judge_sensitive(chapter: Chapter, rows: pd.DataFrame, **about) -> None:
    """Judge whether accuracy depends more on the guided block's number of prompts than on the
    others'."""
    claim, both = "davpt.figure-5.guided-more-sensitive", spans(chapter)
    rows = chapter.answers(claim, rows, list({*both[0], *both[1]}), **about)
    if len(rows):
        chapter.judge_values(claim, range_differences(chapter, rows), [*rows.record])


def range_differences(chapter: Chapter, rows: pd.DataFrame) -> pd.Series:
    """Range of accuracy over guided minus range over other prompt numbers, by seed."""
    index = ["seed", "backbone", "task"]
    wide = rows.assign(test=rows.test.astype(float)).pivot_table(
        index=index, columns="variant", values="test"
    )
    guided, other = (wide[names].max(axis=1) - wide[names].min(axis=1) for names in spans(chapter))
    return (guided - other).groupby("seed").mean()
