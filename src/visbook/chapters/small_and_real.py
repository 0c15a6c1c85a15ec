"""A paper's claims on embedded tasks by a small network, and on photographs by a published ViT."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import Markdown, display
from matplotlib.figure import Figure

from visprompt import papers
from visprompt.words import answers

from ..pages import plots
from ..pages.friendly import counted, ends, signed
from ..studies import comparable
from ..studies.comparable import listed
from ..studies.statistics import MANY, Gain, gain
from . import photographs_first, real
from .chapter import FULL, Chapter

# A paper's study on embedded tasks; by list of its tasks, which method it prints above which.
COMPARED = {
    "ap": ("ap-full", {"ap": [("AP", "VP"), ("AP", "Linear probe"), (FULL, "AP")]}),
    "davpt": (
        "benchmark",
        {"vtab": [*product(("DA-VPT+", "DA-VPT"), ("VPT-Deep", FULL))]},
    ),
    "ivpt": ("benchmark", {"vtab": [("iVPT", "VPT-Deep"), ("iVPT", FULL), ("iVPT", "E2VPT")]}),
    "spt": ("benchmark", {"benchmark": [("SPT-Deep", "VPT-Deep")], "vtab": [("SPT-Deep", FULL)]}),
}
DRAWN, PHOTOGRAPHS = "embedded tasks", "photographs"
SEEN, NOT_SEEN, OPEN = answers("trend")
LOOKS = {
    DRAWN: {"color": "#7f7f7f", "marker": "o"},
    PHOTOGRAPHS: {"color": "#0072b2", "marker": "D"},
}
LINES = "Thick: 95 % intervals over seeds and test images; thin: over tasks too, of five or more."


@dataclass(frozen=True)
class Legs:
    """One comparison on embedded tasks and on photographs; None where there are no runs of both
    methods."""

    paper: str
    better: str  # by the paper
    worse: str
    drawn: Gain | None
    photographs: Gain | None

    @property
    def said(self) -> str:
        """Whether the paper's direction is seen on photographs and on embedded tasks."""
        each = {PHOTOGRAPHS: way(self.photographs), DRAWN: way(self.drawn)}
        says = {"above": SEEN, "below": NOT_SEEN, "open": OPEN}
        told = [f"{on}: {says[found]}" for on, found in each.items() if found]
        ways = {*each.values()}
        return f"both: {says[ways.pop()]}" if len(ways) == 1 else "; ".join(told)


def way(found: Gain | None) -> str:
    """On which side of 0 a gain lies on its own tasks, by their interval."""
    if found is None:
        return ""
    _, low, high = found.here
    return "above" if low > 0 else "below" if high < 0 else "open"


def legs(chapter: Chapter, names: Sequence[str] = tuple(COMPARED)) -> list[Legs]:
    """The comparisons of some papers; a paper without runs of photographs has none."""
    beside, found = real.photographs(), []
    for paper in names:
        study, pairs = COMPARED[paper]
        rows = chapter.rows(study, part="supervised")
        for on, pair in ((on, pair) for on in pairs for pair in pairs[on]):
            drawn, _ = comparable.whole(rows, pair, photographs_first.tasks_of(chapter, on))
            found.append(Legs(paper, *pair, gain(drawn, *pair), gain(beside, *pair)))
    return [leg for leg in found if leg.photographs]


def told(found: Gain | None) -> str:
    """A gain as text: mean and interval on its tasks, then how many of them are above 0."""
    if found is None:
        return "–"
    mean, low, high = found.here
    interval = ends(low, high) if np.isfinite(low) else "(no interval)"
    tasks = counted(found.tasks, "task")
    return f"{signed(mean)} {interval}; above 0 on {found.better_tasks} of {tasks}"


def table(found: Sequence[Legs]) -> pd.DataFrame:
    """A row of every comparison; in points of test accuracy."""
    short = papers.papers()
    rows = [
        {
            "paper": short[leg.paper]["short"],
            "the paper's comparison": f"{leg.better} over {leg.worse}",
            f"{PHOTOGRAPHS}, points": told(leg.photographs),
            f"{DRAWN}, points": told(leg.drawn),
            "the paper's direction": leg.said,
        }
        for leg in found
    ]
    columns = ["paper"] if len({leg.paper for leg in found}) == 1 else []
    return pd.DataFrame(rows).drop(columns=columns)


def figure(found: Sequence[Legs]) -> Figure:
    """Every comparison's gain on embedded tasks and on photographs, see `draw_gain`."""
    fig, ax = plt.subplots(figsize=(7, 0.9 + 0.45 * len(found)))
    for row, leg in enumerate(found):
        for shift, name, one in ((-0.13, DRAWN, leg.drawn), (0.13, PHOTOGRAPHS, leg.photographs)):
            if one is not None:
                draw_gain(ax, row + shift, one, name, **LOOKS[name])
    drawn = [one for leg in found for one in (leg.drawn, leg.photographs) if one]
    finish_rows(
        fig,
        ax,
        [f"{leg.better} over {leg.worse}" for leg in found],
        drawn,
        "points of test accuracy",
    )
    ways = [way(leg.photographs) for leg in found]
    ax.set_title(
        f"On photographs, {ways.count('above')} of {len(ways)} thick lines lie right of 0, "
        f"{ways.count('below')} left, {ways.count('open')} on both sides",
        fontsize=10,
        loc="right",
    )
    return fig


def draw_gain(ax, y: float, found: Gain, label: str, color: str, marker: str) -> None:
    """A gain at a height: its mean, thick on its own tasks, thin for other tasks too, where
    there are `statistics.MANY`."""
    if found.tasks >= MANY:
        ax.plot(found.beyond, [y] * 2, lw=0.9, color=color)
    ax.plot(found.here[1:], [y] * 2, lw=3, color=color, alpha=0.6)
    ax.plot(found.mean, y, ls="none", ms=6, label=label, color=color, marker=marker)


def finish_rows(
    fig: Figure,
    ax,
    names: Sequence[str],
    drawn: Sequence[Gain],
    xlabel: str,
    columns: int = 2,
    marks=(),
) -> None:
    """Names of the rows, top down; a line at 0; a legend; as wide as means, intervals for other
    seeds and other marks. An arrow ends a line that is longer."""
    ends = np.array([*marks, *(end for one in drawn for end in (one.mean, *one.here))])
    ends = ends[np.isfinite(ends)]  # one seed has no interval
    edges = min(*ends, 0) - 4, max(*ends, 0) + 4
    ax.set(xlim=edges, xlabel=xlabel)
    for line in list(ax.lines):
        x, y = (np.asarray(data, float) for data in line.get_data())
        for edge, marker, cut in zip(edges, "<>", (x < edges[0], x > edges[1]), strict=True):
            if cut.any():  # a line without points would widen the margin
                ax.plot(edge, y[cut][0], marker, ms=6, color=line.get_color(), clip_on=False)
    ax.axvline(0, color="black", lw=0.8)
    ax.set_yticks(range(len(names)), [name.replace("E2VPT", "E²VPT") for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    plots.legend_below(fig, [ax], columns)


def show(chapter: Chapter, *names: str) -> None:
    """A chapter's table of photographs beside embedded tasks, or a line that says that no
    photographs are kept for it."""
    found = legs(chapter, names)
    if found:
        present(chapter, found, table(found), "real")
    else:
        display(Markdown("No run of photographs is kept for this chapter."))


def present(
    chapter: Chapter, found: Sequence[Legs], thing: pd.DataFrame | Figure, cell: str
) -> None:
    """Show a table or figure of some comparisons with the runs behind it."""
    both = [one for leg in found for one in (leg.drawn, leg.photographs) if one]
    used = list({record.id: record for one in both for record in one.records}.values())
    caption = (
        "Each row is a comparison that a paper makes. The numbers are the gaps we measured, in "
        "points of test accuracy, on photographs and on embedded tasks."
        if isinstance(thing, pd.DataFrame)
        else "Gaps on photographs and on embedded tasks. Right of 0, a gap has the sign that the "
        f"paper gives it. {LINES}"
    )
    how = (
        f"Photographs: {real.REAL} on {listed(tasks(found), 20)}. Embedded tasks: small networks "
        f"of this project. 95 % intervals, over seeds and test images of these tasks."
    )
    alt = (
        None
        if isinstance(thing, pd.DataFrame)
        else "; ".join(
            f"{leg.better} over {leg.worse}: {told(leg.photographs)} on photographs, "
            f"{told(leg.drawn)} on embedded tasks"
            for leg in found
        )
    )
    chapter.page.present(
        thing, evidence="trend", records=used, cell=cell, how=how, caption=caption, alt=alt
    )


def tasks(found: Sequence[Legs]) -> list[str]:
    """The tasks of the photographs behind some comparisons."""
    return sorted({record.settings["task"] for leg in found for record in leg.photographs.records})
