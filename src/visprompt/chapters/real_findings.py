"""What photographs alone say: every method beside VPT-Deep, AP at every block, bf16 beside float32."""

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import Markdown, display
from matplotlib.figure import Figure

from ..pages import plots
from ..studies import grids
from ..studies.fair import listed
from ..studies.lab import rate_name
from ..studies.statistics import Gain, spread
from ..words import REAL as PROFILE
from . import real, two_legs
from .ap_others import LINES, block_grid
from .chapter import Chapter

BASE = "VPT-Deep"  # what the papers improve on; kept on every task
MARKERS = ["o", "s", "^", "D", "v"]


def ordered(frame: pd.DataFrame) -> list[str]:
    """The variants of the study `real` that have runs, as it lists them."""
    return [variant for variant in grids.studies()["real"]["variants"] if (frame.variant == variant).any()]


def gains(frame: pd.DataFrame) -> dict[str, Gain | None]:
    """Variant -> its gain over BASE on the tasks that both have; None where they share none, and of BASE itself."""
    return {name: None if name == BASE else two_legs.of(frame, name, BASE) for name in ordered(frame)}


def chosen(frame: pd.DataFrame) -> str:
    """On how many tasks validation chose the lowest, a middle and the highest rate of those tried, of one method's rows."""
    first = frame.drop_duplicates("task")
    rates = [record.settings["recipe"][rate_name(record.settings["method"])] for record in first.record]
    places = ["low" if rate == tried[0] else "high" if rate == tried[-1] else "mid" for rate, tried in zip(rates, first.tried)]
    return " · ".join(str(places.count(place)) for place in ("low", "mid", "high"))


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """A row of every method: accuracy by task over seeds, then its gain over BASE with both intervals."""
    tasks = [task for task in grids.cast(PROFILE).tasks["real"] if (frame.task == task).any()]
    cells = {key: spread(part.test, part.record) for key, part in frame.groupby(["variant", "task"])}
    return pd.DataFrame(
        [
            {
                "method": name,
                **{task: cells.get((name, task), "–") for task in tasks},
                f"over {BASE}: points, other seeds": two_legs.told(found),
                "other tasks": f"[{found.low:+.1f}, {found.high:+.1f}]" if found and found.tasks > 2 else "–",
                "rate: low · mid · high": chosen(frame[frame.variant == name]),
            }
            for name, found in gains(frame).items()
        ],
        dtype=object,
    )


def figure(frame: pd.DataFrame) -> Figure:
    """Every method's gain over BASE: a mark for each task; thick for other seeds on these tasks, thin for other tasks too."""
    found = {name: gain for name, gain in gains(frame).items() if gain}
    means = frame.groupby(["variant", "task"]).test.mean().unstack("task")
    fig, ax = plt.subplots(figsize=(7, 1.2 + 0.32 * len(found)))
    ax.axvline(0, color="black", lw=0.8)
    for row, (name, gain) in enumerate(found.items()):
        for marker, task in zip(MARKERS, means, strict=False):
            look = {"color": "#8a8a8a", "mfc": "none", "ms": 5, "ls": "none", "zorder": 1}
            ax.plot(means.loc[name, task] - means.loc[BASE, task], row - 0.18, marker, label=task, **look)
        if gain.tasks > 2:  # of two tasks the interval is everything
            ax.plot([gain.low, gain.high], [row + 0.12] * 2, lw=0.9, color="#0072b2")
        ax.plot(gain.here[1:], [row + 0.12] * 2, lw=3, color="#0072b2", alpha=0.6)
        ax.plot(gain.mean, row + 0.12, "D", ms=5, color="#0072b2", label="mean of its tasks")
    ax.set_yticks(range(len(found)), [name.replace("E2VPT", "E²VPT") for name in found])
    ax.set(ylim=(len(found) - 0.5, -0.5), xlabel=f"points of test accuracy above {BASE}")
    plots.legend_below(fig, [ax], columns=3)
    return fig


def fallen(frame: pd.DataFrame) -> list[str]:
    """Runs below half of the best seed of their method on their task, in words."""
    best = frame.groupby(["variant", "task"]).test.transform("max")
    return [
        f"{row.variant} on {row.task}, seed {row.seed}: {row.test:.1f} %" for row in frame[frame.test < best / 2].itertuples()
    ]


def show_methods(chapter: Chapter, cell: str) -> None:
    """The figure and the table of all methods, where BASE has runs."""
    frame = real.photographs()
    if not (frame.variant == BASE).any():
        return
    frame = frame[frame.variant.notna()]
    above = [name for name, gain in gains(frame).items() if gain and two_legs.way(gain) == "above"]
    below = [name for name, gain in gains(frame).items() if gain and two_legs.way(gain) == "below"]
    how = (
        f"{real.REAL}; of three rates, validation chose with seed 0. Mean ± standard deviation of {frame.seed.nunique()} seeds. "
        "The last column counts the tasks on which the lowest, a middle and the highest of the rates won. "
        f"A gain is over the tasks that a method and {BASE} both have. Of its own tasks with other seeds, above {BASE}: "
        f"{listed(above, 20)}; below: {listed(below, 20)}."
    )
    said = {"evidence": "trend", "records": [*frame.record], "cell": cell, "how": how}
    alt = "For every method, marks of its gain on each task, their mean and its intervals. " + how
    chapter.page.present(figure(frame), caption=f"Every method beside {BASE} on photographs.", alt=alt, **said)
    chapter.page.present(table(frame), caption="Test accuracy in %, by task.", **said)
    if fell := fallen(frame):
        why = "The search saw one seed. At the rate it chose, another fell below half of the best seed's accuracy"
        display(Markdown(f"{why}: {'; '.join(fell)}. A mean and its interval take it in."))


def show_blocks(chapter: Chapter, cell: str) -> None:
    """AP at every block on photographs (study `real-layers`), where all blocks of a task are kept, and the other methods."""
    frame = real.photographs(every_block=True)
    asked = grids.tasks_of("real-layers", grids.cast(PROFILE))
    rows = frame[frame.task.isin(asked)]
    whole = rows.groupby("task").block.transform("nunique") == grids.depth_of("real", grids.cast(PROFILE))
    rows = rows[whole & (rows.block.notna() | rows.variant.isin(LINES))]
    if lacking := [task for task in asked if task not in set(rows.task)]:
        display(
            Markdown(f"Runs at every block are not kept for {listed(lacking)}; the command at the end of the page does them.")
        )
    if not len(rows):
        return
    by_block = rows[rows.block.notna()]
    mean = by_block.groupby(["task", "seed", "block"]).test.mean().unstack()
    third = mean.shape[1] // 3
    lead = (mean.iloc[:, :third].mean(axis=1) - mean.iloc[:, -third:].mean(axis=1)).groupby("task").mean()
    told = "; ".join(f"{task}: {points:+.1f}" for task, points in lead.items())
    chapter.page.present(
        block_grid(rows),
        evidence="trend",
        records=[*rows.record],
        cell=cell,
        how=f"{real.REAL}; of three rates a block, validation chose with seed 0. Mean and range over "
        f"{by_block.seed.nunique()} seeds; star: the block best on validation. The shallowest third of the blocks above the "
        f"deepest third, in points: {told}.",
        caption="AP at every block of a published ViT-Tiny, on photographs.",
        alt="Test accuracy over the block with the prompt, a panel for every data set. " + told,
    )


def show_precisions(chapter: Chapter) -> None:
    """bf16 above float32 in kept runs of photographs that differ in nothing else, paired by task and seed."""
    frame = pd.concat([real.photographs(precision).assign(precision=precision) for precision in ("float32", "bf16")])
    rates = frame.record.map(lambda record: record.settings["recipe"][rate_name(record.settings["method"])])
    pairs = {key: two_legs.of(part, "bf16", "float32", by="precision") for key, part in frame.groupby([frame.variant, rates])}
    pairs = {key: found for key, found in pairs.items() if found}
    if not pairs:
        display(Markdown("No such pair is kept."))
        return
    chapter.page.present(
        pd.DataFrame(
            [
                {"method": variant, "rate": rate, "bf16 − float32: points": two_legs.told(found), "seeds": found.seeds}
                for (variant, rate), found in pairs.items()
            ]
        ),
        evidence="measured",
        records=[record for found in pairs.values() for record in found.records],
        cell="precisions",
        how=f"{real.REAL}, autocast on a processor; weights and their updates in float32.",
        caption="Test accuracy with bf16 above that with float32, in points.",
    )
