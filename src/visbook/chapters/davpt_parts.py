"""What the page on DA-VPT's parts draws: components and their cost, guided blocks, biases,
weights."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from visprompt import records

from ..pages import plots
from ..pages.friendly import signed
from ..studies import bench, bench_table, comparable
from ..studies.comparable import listed
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
    "β (patches)": {0.01: "beta = 0.01", 0.1: "beta = 0.1", 1: "beta = 1", 10: "beta = 10"},
    "λ (class token)": {0.01: "lambda = 0.01", 0.1: "beta = 0.1", 1: "lambda = 1"},
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
            "over VPT-Deep": signed(gain.mean()) if len(gain) else "–",
            "lowest to highest seed": f"{signed(gain.min())} to {signed(gain.max())}"
            if len(gain) > 1
            else "–",
        }
        row |= {
            f"printed on {kind}": f"+{gains[kind][step]:.2f}" if step else "–" for kind in gains
        }
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
    """Added time, memory and parameters of a training step, the printed ones first."""
    before, after = (float(prose()[f"latency-{when}"].split()[0]) for when in ("before", "after"))
    more = lambda ratio: f"{100 * (ratio - 1):.2f}"
    bias, dash = printed_counts("davpt.table-4")[0], "–"
    rows = [("all components, printed", more(after / before), dash, dash, f"{bias['printed']:g}")]
    for slug in ("da-vpt", "da-vpt-plus"):
        values = ratios.get(slug, ([], None))[0]
        added = memory[slug].values["parameters"] - memory["vpt-deep"].values["parameters"]
        time = more(np.mean(values)) if values else "not timed"
        span = f"{more(min(values))} to {more(max(values))}" if values else dash
        memory_more = more(memory_ratio(memory, slug))
        rows.append((f"{plots.NAMES[slug]}, ours", time, span, memory_more, f"{added / 1e6:.4f}"))
    return pd.DataFrame(
        rows,
        columns=[
            "method",
            "added time, %",
            "range, %",
            "added memory, %",
            "added parameters, M",
        ],
    )


GUIDED = {
    "one block": ("block {} alone", BLUE),
    "from it to the last": ("blocks {} to the last", ORANGE),
}


def by_guided(rows: pd.DataFrame, depth: int) -> dict[str, pd.DataFrame]:
    """The rows by which blocks are guided, with the first of these as a column."""
    found = {}
    for label, (kind, _) in GUIDED.items():
        block = {kind.format(at): at for at in range(depth)}
        mine = rows[rows.variant.isin(block)]
        found[label] = mine.assign(block=mine.variant.map(block))
    return {label: mine for label, mine in found.items() if len(mine)}


def layers_told(rows: pd.DataFrame, depth: int) -> str:
    """The means of `layers_figure` as text."""
    each = by_guided(rows, depth).items()
    return " ".join(f"Guided, {label}: {plots.told(mine, 'block')}." for label, mine in each)


def layers_figure(rows: pd.DataFrame, depth: int):
    """Accuracy against the guided block, alone and to the last."""
    fig, ax = plt.subplots(figsize=(7, 3))
    best = []
    for label, mine in by_guided(rows, depth).items():
        plots.seeds_line(ax, mine, "block", label, color=GUIDED[label][1])
        means = mine.assign(test=mine.test.astype(float)).groupby("block").test.mean()
        best.append(f"{means.idxmax()} ({label})")
    ax.set(xlabel="guided block, counted from 0", ylabel=POINTS)
    ax.set_title(f"Most accurate with guided block {', '.join(best)}", fontsize=11)
    plots.legend_below(fig, [ax])
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
    late = np.mean([late_over_first(r) for r in used])
    left.set(ylabel="milliseconds", title=f"Late calls take {late:.1f} times the first")
    moved = np.mean([r.values["moved"] for r in used], axis=0)
    title = f"{moved[0]:.0f} classes move at first, {moved[-1]:.0f} at last"
    right.set(ylabel="classes moved", title=title)
    return fig


def times_told(used: list[records.Record]) -> str:
    """The means of `times_figure` as text."""
    each = {name: np.mean([r.values[name] for r in used], axis=0) for name in ("seconds", "moved")}
    told = ", ".join(f"{1000 * one:.1f}" for one in each["seconds"])
    moved = ", ".join(f"{one:.1f}" for one in each["moved"])
    return f"Milliseconds: {told}. Classes that changed their prompt: {moved}."


def late_over_first(record: records.Record) -> float:
    """Mean time of k-means in the second half of its calls over that of the first three."""
    seconds = record.values["seconds"]
    return np.mean(seconds[len(seconds) // 2 :]) / np.mean(seconds[:3])


def over_key(rows: pd.DataFrame) -> dict[str, pd.Series]:
    """What a category of biases adds to that of the keys alone, which can change nothing."""
    names = [name for name in dict.fromkeys(rows.variant) if name not in ("none", "key")]
    return {name: over(rows, name, "key") for name in names}


def biases_told(rows: pd.DataFrame) -> str:
    """The means of `biases_figure` as text."""
    return ", ".join(f"{name} {signed(gain.mean())}" for name, gain in over_key(rows).items()) + "."


def biases_figure(rows: pd.DataFrame):
    """The gains of `over_key`, with their seeds."""
    fig, ax = plt.subplots(figsize=(7, 3))
    dots(ax, over_key(rows), BLUE)
    means = {name: gain.mean() for name, gain in over_key(rows).items()}
    best = max(means, key=means.__getitem__)
    ax.set(
        xlabel="points above the bias of keys alone",
        title=f"Training the biases of {best} gains most: {means[best]:.1f} points",
    )
    return fig


def weight_panels(middle: int) -> dict[str, dict[float, str]]:
    """The panels of Figure 5, x -> variant; `middle` is the number of prompts at the defaults."""
    guided = {**{n: f"guided prompts = {n}" for n in (2, 16)}, middle: "beta = 0.1"}
    other = {**{n: f"other prompts = {n}" for n in (2, 20)}, middle: "beta = 0.1"}
    return {**WEIGHTS, "guided prompts": guided, "other prompts": other}


def weight_lines(chapter: Chapter, weighed: pd.DataFrame) -> dict[str, dict[str, pd.DataFrame]]:
    """Pre-training -> panel of Figure 5 -> its rows, with the varied number as column x."""
    panels, found = weight_panels(chapter.scope.prompts["deep"]), {}
    for part in PART_COLORS:
        rows = weighed[weighed.backbone == chapter.scope.backbones.get(part)]
        for name, points in panels.items():
            at = {variant: x for x, variant in points.items()}
            mine = rows[rows.variant.isin(at)]
            if len(mine):
                found.setdefault(part, {})[name] = mine.assign(x=mine.variant.map(at))
    return found


def weights_found(chapter: Chapter, weighed: pd.DataFrame) -> str:
    """What raising β from 0.1 to 1 does to each pre-training, as a sentence."""
    found = {}
    for part, panels in weight_lines(chapter, weighed).items():
        for rows in panels.values():
            gain = over(rows, "beta = 1", "beta = 0.1")
            if len(gain):
                found[PARTS[part]] = gain.mean()
    told = listed([f"{signed(gain)} points ({name})" for name, gain in found.items()])
    return f"β = 1 instead of 0.1 changes DA-VPT+'s accuracy by {told}." if found else ""


def weights_told(chapter: Chapter, weighed: pd.DataFrame) -> str:
    """The means of `weights_figure` as text."""
    return " ".join(
        f"{PARTS[part]}, {name}: {plots.told(rows, 'x')}."
        for part, panels in weight_lines(chapter, weighed).items()
        for name, rows in panels.items()
    )


def weights_figure(chapter: Chapter, weighed: pd.DataFrame):
    """Accuracy over weights and numbers of prompts, one row and one axis per pre-training."""
    lines, panels = weight_lines(chapter, weighed), weight_panels(chapter.scope.prompts["deep"])
    size = {"figsize": (7, 0.6 + 1.7 * len(lines)), "sharey": "row", "sharex": "col"}
    fig, axes = plt.subplots(len(lines), len(panels), squeeze=False, **size)
    for row, (part, found) in zip(axes, lines.items(), strict=True):
        for ax, (name, points) in zip(row, panels.items(), strict=True):
            if name in found:
                plots.seeds_line(ax, found[name], "x", color=PART_COLORS[part])
            plots.plain_ticks(ax, points)
        row[0].set_ylabel(f"{PARTS[part]}\n{POINTS}", fontsize=9)
    for ax, name in zip(axes[-1], panels, strict=True):
        ax.set_xlabel(name, fontsize=9)
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
