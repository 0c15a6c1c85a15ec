"""What a paper says of its method, on two legs: the small drawn world, and real photographs through a published ViT."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import Markdown, display
from matplotlib.figure import Figure

from .. import papers
from ..errors import BadInput
from ..pages import plots
from ..studies import grids
from ..studies.fair import listed
from ..studies.lab import rate_name
from ..studies.statistics import Gain, gain
from ..words import REAL as PROFILE
from . import real
from .ap_others import LINES, block_grid
from .chapter import Chapter

# A paper's study of the drawn world, and which method it prints above which.
COMPARED = {
    "ap": ("ap-layers", [("AP", "VP"), ("AP", "Linear probe"), ("Full fine-tuning", "AP")]),
    "davpt": ("benchmark", [("DA-VPT", "VPT-Deep"), ("DA-VPT", "Full fine-tuning"), ("DA-VPT+", "DA-VPT")]),
    "ivpt": ("benchmark", [("iVPT", "VPT-Deep"), ("iVPT", "Full fine-tuning"), ("iVPT", "E2VPT")]),
    "spt": ("benchmark", [("SPT-Deep", "VPT-Deep"), ("SPT-Deep", "Full fine-tuning")]),
}
DRAWN, PHOTOGRAPHS = "drawn world", "photographs"
LOOKS = {DRAWN: {"color": "#7f7f7f", "marker": "o"}, PHOTOGRAPHS: {"color": "#0072b2", "marker": "D"}}


@dataclass(frozen=True)
class Legs:
    """One comparison on both legs; None where a leg has no run of both methods."""

    paper: str
    better: str  # by the paper
    worse: str
    drawn: Gain | None
    photographs: Gain | None

    @property
    def said(self) -> str:
        """Whether the legs point the same way on their own tasks."""
        ways = [way(found) for found in (self.drawn, self.photographs)]
        if "" in ways:
            return "one leg alone"
        if "open" in ways:
            return "open"
        return "both agree with the paper" if ways == ["above"] * 2 else "both differ" if ways[0] == ways[1] else "legs differ"


def way(found: Gain | None) -> str:
    """On which side of 0 a gain lies on its own tasks, by the interval for other seeds."""
    if found is None:
        return ""
    _, low, high = found.here
    return "above" if low > 0 else "below" if high < 0 else "open"


def photographs(precision: str = "float32", every_block: bool = False) -> pd.DataFrame:
    """A row of every kept run of the study `real`, each method at its best rate, as `studies.statistics.gain` takes them.

    Args:
        every_block: AP's runs of the study `real-layers` too, as variants "ap, block 0" and so on.
    """
    names = {settings["method"]: variant for variant, settings in grids.studies()["real"]["variants"].items()}
    kept = [r for r in real.kept_rows("tune", backbone=real.REAL) if r.about.get("profile") == PROFILE]
    kept = [r for r in kept if r.settings["recipe"]["precision"] == precision]
    rows = []
    for part in real.alike(kept):
        for record in real.at_best_rate(part)[0]:
            same = {key: record.settings[key] for key in ("backbone", "task", "train_size", "seed")}
            found = {"test": record.values["test"], "val": record.values["val"], "record": record}
            if real.of_variants(part):
                rows.append({**same, "variant": names[record.settings["method"]], **found})
            if every_block and (block := record.settings["method_settings"].get("block")) is not None:
                rows.append({**same, "variant": f"ap, block {block}", "block": block, **found})
    return pd.DataFrame(rows, columns=["backbone", "task", "train_size", "seed", "variant", "block", "test", "val", "record"])


def legs(chapter: Chapter, names: Sequence[str] = tuple(COMPARED)) -> list[Legs]:
    """The comparisons of some papers; a paper without runs of photographs has none."""
    beside, found = photographs(), []
    for paper in names:
        study, pairs = COMPARED[paper]
        drawn = chapter.rows(study, part="supervised")
        found += [Legs(paper, *pair, of(drawn, *pair), of(beside, *pair)) for pair in pairs]
    return [leg for leg in found if leg.photographs]


def of(frame: pd.DataFrame, better: str, worse: str, by: str = "variant") -> Gain | None:
    """The gain of one variant over another, None where no task and seed has both."""
    try:
        return gain(frame, better, worse, by=by)
    except BadInput:
        return None


def told(found: Gain | None) -> str:
    """A gain as text: mean and interval for other seeds, then the tasks on which it is above 0."""
    if found is None:
        return "–"
    mean, low, high = found.here
    interval = f"[{low:+.1f}, {high:+.1f}]" if np.isfinite(low) else "(no interval)"
    return f"{mean:+.1f} {interval}; above 0 on {found.better_tasks} of {found.tasks}"


def table(found: Sequence[Legs]) -> pd.DataFrame:
    """A row of every comparison; in points of test accuracy."""
    short = papers.papers()
    rows = [
        {
            "paper": short[leg.paper]["short"],
            "above, by the paper": f"{leg.better} over {leg.worse}",
            f"{DRAWN}: points": told(leg.drawn),
            f"{PHOTOGRAPHS}: points": told(leg.photographs),
            "together": leg.said,
        }
        for leg in found
    ]
    columns = ["paper"] if len({leg.paper for leg in found}) == 1 else []
    return pd.DataFrame(rows).drop(columns=columns)


def figure(found: Sequence[Legs]) -> Figure:
    """Every comparison's gain on both legs: thick for other seeds on its tasks, thin for other tasks too."""
    fig, ax = plt.subplots(figsize=(7, 0.9 + 0.45 * len(found)))
    for row, leg in enumerate(found):
        for shift, name, one in ((-0.13, DRAWN, leg.drawn), (0.13, PHOTOGRAPHS, leg.photographs)):
            if one is None:
                continue
            look = LOOKS[name]
            if one.tasks > 1 and np.isfinite(one.low):
                ax.plot([one.low, one.high], [row + shift] * 2, lw=0.9, color=look["color"])
            ax.plot(one.here[1:], [row + shift] * 2, lw=3, color=look["color"], alpha=0.6)
            ax.plot(one.mean, row + shift, ls="none", ms=6, label=name, **look)
    ends = np.array([end for leg in found for one in (leg.drawn, leg.photographs) if one for end in (one.mean, *one.here)])
    ends = ends[np.isfinite(ends)]  # one seed has no interval
    ax.set(xlim=(min(*ends, 0) - 4, max(*ends, 0) + 4), xlabel="points of test accuracy")
    ax.axvline(0, color="black", lw=0.8)
    labels = [f"{leg.better} over {leg.worse}".replace("E2VPT", "E²VPT") for leg in found]
    ax.set_yticks(range(len(found)), labels)
    ax.set_ylim(len(found) - 0.5, -0.5)
    plots.legend_below(fig, [ax])
    return fig


def show(chapter: Chapter, *names: str) -> None:
    """A chapter's table of its two legs, or the line that says that no photographs are kept for it."""
    found = legs(chapter, names)
    if found:
        present(chapter, found, table(found), "real")
    else:
        display(Markdown("No run of photographs is kept for this chapter."))


def present(chapter: Chapter, found: Sequence[Legs], thing: pd.DataFrame | Figure, cell: str) -> None:
    """Show a table or figure of some comparisons with the runs behind it."""
    both = [one for leg in found for one in (leg.drawn, leg.photographs) if one]
    used = list({record.id: record for one in both for record in one.records}.values())
    caption = "What a paper prints above what, in points of test accuracy, on drawn pictures and on photographs."
    how = f"{real.REAL} on {listed(tasks(found))}, beside the quick profile's runs; intervals of 95 % are for other seeds on these tasks."
    alt = None if isinstance(thing, pd.DataFrame) else "; ".join(f"{leg.better} over {leg.worse}: {leg.said}" for leg in found)
    chapter.page.present(thing, evidence="trend", records=used, cell=cell, how=how, caption=caption, alt=alt)


def tasks(found: Sequence[Legs]) -> list[str]:
    """The tasks of the photographs that stand behind some comparisons."""
    return sorted({record.settings["task"] for leg in found for record in leg.photographs.records})


def show_blocks(chapter: Chapter, cell: str) -> None:
    """AP at every block on photographs (study `real-layers`), where all blocks of a task are kept, and the other methods."""
    frame = photographs(every_block=True)
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
    frame = pd.concat([photographs(precision).assign(precision=precision) for precision in ("float32", "bf16")])
    rates = frame.record.map(lambda record: record.settings["recipe"][rate_name(record.settings["method"])])
    pairs = {key: of(part, "bf16", "float32", by="precision") for key, part in frame.groupby([frame.variant, rates])}
    pairs = {key: found for key, found in pairs.items() if found}
    if not pairs:
        display(Markdown("No such pair is kept."))
        return
    chapter.page.present(
        pd.DataFrame(
            [
                {"method": variant, "rate": rate, "bf16 − float32: points": told(found), "seeds": found.seeds}
                for (variant, rate), found in pairs.items()
            ]
        ),
        evidence="measured",
        records=[record for found in pairs.values() for record in found.records],
        cell="precisions",
        how=f"{real.REAL}, autocast on a processor; weights and their updates in float32.",
        caption="Test accuracy with bf16 above that with float32, in points.",
    )
