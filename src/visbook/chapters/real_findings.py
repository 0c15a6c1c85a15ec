"""What photographs alone say: every method beside VPT-Deep, AP at every block, bf16 beside
float32."""

import itertools
from collections.abc import Iterable

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import Markdown, display
from matplotlib.figure import Figure

from visprompt.words import REAL as PROFILE

from ..pages import plots
from ..pages.friendly import ends, signed
from ..pages.friendly import named as named_here
from ..studies import grids
from ..studies.case import rate_name
from ..studies.comparable import listed
from ..studies.statistics import MANY, Gain, gain, names_of_fallen, spread
from . import real
from . import small_and_real as two_legs
from .ap_blocks import LINES, block_grid, deep_lead, on_photographs
from .chapter import Chapter

BASE = "VPT-Deep"  # what the papers improve on; kept on every task
CHOSEN = "tasks that chose the lowest / a middle / the highest learning rate"


def gains(frame: pd.DataFrame) -> dict[str, Gain | None]:
    """Variant -> its gain over BASE on the tasks that both have, in the order of the study; None
    where there is none."""
    order = [name for name in grids.studies()["real"]["variants"] if (frame.variant == name).any()]
    return {name: None if name == BASE else gain(frame, name, BASE) for name in order}


def chosen(frame: pd.DataFrame) -> str:
    """On how many tasks validation chose the lowest, a middle and the highest rate of those tried,
    of one method's rows."""
    first = frame.drop_duplicates("task")
    rates = [
        record.settings["recipe"][rate_name(record.settings["method"])] for record in first.record
    ]
    places = [
        "low" if rate == tried[0] else "high" if rate == tried[-1] else "mid"
        for rate, tried in zip(rates, first.tried, strict=True)
    ]
    return " / ".join(str(places.count(place)) for place in ("low", "mid", "high"))


def accuracies(frame: pd.DataFrame, methods: Iterable[str]) -> pd.DataFrame:
    """Test accuracy over seeds, a row of every one of the methods and a column of every task."""
    cells = frame.groupby(["variant", "task"]).test.agg(spread).unstack().fillna("–")
    return named(
        cells[[task for task in grids.scope_of(PROFILE).tasks["real"] if task in cells]].loc[
            [*methods]
        ]
    )


def lead_table(frame: pd.DataFrame, found: dict[str, Gain | None]) -> pd.DataFrame:
    """A row of every method: its gain with both intervals, and which of the tried rates won."""
    rows = {
        name: {
            f"above {BASE}, on these tasks": two_legs.told(one),
            "interval over tasks as well": ends(*one.beyond) if one and one.tasks >= MANY else "–",
            CHOSEN: chosen(frame[frame.variant == name]),
        }
        for name, one in found.items()
    }
    return named(pd.DataFrame(rows).T)


def named(rows: pd.DataFrame) -> pd.DataFrame:
    """A table whose rows are methods, with their names as a column."""
    return rows.rename_axis("method").rename_axis(None, axis=1).reset_index()


def figure(frame: pd.DataFrame, found: dict[str, Gain | None]) -> Figure:
    """Every method's gain over BASE, see `two_legs.draw_gain`, with a mark for each task."""
    found = {name: gain for name, gain in found.items() if gain}
    fig, ax = plt.subplots(figsize=(7, 1.2 + 0.32 * len(found)))
    marks = []
    for marker, (task, part) in zip(
        itertools.cycle(plots.MARKERS), frame.groupby("task"), strict=False
    ):
        means = {row: one.mean for row, name in enumerate(found) if (one := gain(part, name, BASE))}
        ax.plot(
            [*means.values()],
            [row - 0.18 for row in means],
            marker,
            color="#8a8a8a",
            mfc="none",
            ms=5,
            label=named_here(task),
        )
        marks += means.values()
    for row, one in enumerate(found.values()):
        two_legs.draw_gain(
            ax, row + 0.12, one, "mean of its tasks", **two_legs.LOOKS[two_legs.PHOTOGRAPHS]
        )
    two_legs.finish_rows(
        fig,
        ax,
        [*found],
        [*found.values()],
        f"points of test accuracy above {BASE}",
        columns=3,
        marks=marks,
    )
    return fig


def show_methods(chapter: Chapter, cell: str) -> None:
    """The figure and the table of all methods, where BASE has runs."""
    frame = real.photographs()
    if not (frame.variant == BASE).any():
        return
    found = gains(frame)
    ways = {name: two_legs.way(gain) for name, gain in found.items()}
    above, below = (
        [name for name, way in ways.items() if way == side] for side in ("above", "below")
    )
    tried = " to ".join(dict.fromkeys(str(end(map(len, frame.tried))) for end in (min, max)))
    how = (
        f"{real.REAL}, {frame.seed.nunique()} seeds. Validation chose among {tried} learning "
        f"rates with seed 0."
    )
    said = f"Above {BASE}: {listed(above, 20)}. Below it: {listed(below, 20)}."
    same = {"evidence": "trend", "records": [*frame.record], "cell": cell}
    means = "; ".join(f"{name} {signed(gain.mean)}" for name, gain in found.items() if gain)
    alt = f"Gap to {BASE} by method, on each task and on average: {means} points. {said}"
    caption = f"On photographs, gap of every method to {BASE}. {said} {two_legs.LINES}"
    chapter.page.present(figure(frame, found), how=how, caption=caption, alt=alt, **same)
    chapter.page.present(
        accuracies(frame, found),
        how=how,
        caption="Test accuracy in %, mean ± standard deviation over seeds.",
        **same,
    )
    chapter.page.present(
        lead_table(frame, found), how=how, caption=f"Points of test accuracy above {BASE}.", **same
    )
    if fell := names_of_fallen(frame):
        why = (
            "Collapsed runs reach less than half of the best seed's accuracy, at a learning rate "
            "that was chosen with another seed. They are part of the means and intervals"
        )
        display(Markdown(named_here(f"{why}: {'; '.join(fell)}.")))


def show_blocks(chapter: Chapter, cell: str) -> None:
    """AP at every block on photographs (study `real-layers`), where all blocks of a task are kept,
    and the other methods."""
    rows, asked = on_photographs(), grids.tasks_of("real-layers", grids.scope_of(PROFILE))
    rows = rows[rows.block.notna() | rows.variant.isin(LINES)]
    if lacking := [task for task in asked if task not in set(rows.task)]:
        told = (
            f"Runs at every block are not kept for {listed(lacking)}; the command at the end of the"
        )
        display(Markdown(f"{told} page does them."))
    if not len(rows):
        return
    told = "; ".join(
        f"{named_here(task)} {signed(seeds.mean())} "
        f"(seeds {signed(seeds.min())} to {signed(seeds.max())})"
        for task, seeds in deep_lead(rows).items()
    )
    chapter.page.present(
        block_grid(rows),
        evidence="trend",
        records=[*rows.record],
        cell=cell,
        how=f"{real.REAL}; for each block, validation chose the learning rate with seed 0. Mean "
        f"and range over {rows[rows.block.notna()].seed.nunique()} seeds; star: best on "
        f"validation. Deepest third of the blocks minus shallowest third, points: {told}.",
        caption="AP at every block of a published ViT-Tiny, on photographs.",
        alt="Test accuracy by block with the prompt, one panel per data set. Deepest third of "
        f"the blocks minus shallowest third, in points: {told}.",
    )


def show_precisions(chapter: Chapter) -> None:
    """bf16 above float32 in kept runs of photographs that differ in nothing else, paired by task
    and seed."""
    frame = pd.concat(
        [
            real.photographs(precision).assign(precision=precision)
            for precision in ("float32", "bf16")
        ]
    )
    rates = frame.record.map(
        lambda record: record.settings["recipe"][rate_name(record.settings["method"])]
    )
    pairs = {
        key: gain(part, "bf16", "float32", by="precision")
        for key, part in frame.groupby([frame.variant, rates])
    }
    pairs = {key: found for key, found in pairs.items() if found}
    if not pairs:
        display(Markdown("No such pair is kept."))
        return
    chapter.page.present(
        pd.DataFrame(
            [
                {
                    "method": variant,
                    "learning rate": f"{rate:.3g}",
                    "bf16 − float32, points": two_legs.told(found),
                    "seeds": found.seeds,
                }
                for (variant, rate), found in pairs.items()
            ]
        ),
        evidence="measured",
        records=[record for found in pairs.values() for record in found.records],
        cell="precisions",
        how=f"{real.REAL}, autocast on a CPU; weights and their updates in float32.",
        caption="Test accuracy in bf16 minus that in float32, in points.",
    )
