"""AP beside the parameter-efficient methods: printed accuracies by group, and printed counts beside
our own."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from visprompt import papers
from visprompt.data.tasks import group_of
from visprompt.records import Record

from ..auditing.counts import printed_counts
from ..pages import plots
from ..pages.page import Page
from ..studies.statistics import group_table
from ..timing import ap_tables
from ..timing.ap_tables import HELD, IN_TURNS
from .ap import printed_cells
from .ap_cost import machine, medians, ratio
from .chapter import Chapter
from .parameters import ChapterParameters

WEIGHTED = (
    "The mean over all tasks, that is the mean of the three groups weighted by their 5, 9 and 5 "
    "tasks. The plain mean is Table A2's, on photographs."
)


@dataclass(frozen=True)
class PeftParameters(ChapterParameters):
    """What the page on AP beside other methods takes."""

    # time the methods at the papers' model sizes on this machine (about half an hour on two cores)
    measure: bool = False


class PeftChapter(Chapter):
    """The runs of that page."""

    takes = PeftParameters


@cache
def counts(artifact: str) -> pd.DataFrame:
    """The printed counts of an artifact by id, counted once."""
    return printed_counts(artifact).set_index("id")


def show_parameters(
    page: Page,
    artifact: str,
    unit: str = "M",
    how: str = "Counted on ViT-Large/16 with a head for 10 classes.",
) -> None:
    """Show the parameter column of a table, counted beside printed."""
    rows = counts(artifact)
    table = pd.DataFrame(
        {
            "method": rows.method,
            f"parameters, {unit}": rows.computed.map("{:.3f}".format),
            f"printed, {unit}": rows.printed.map("{:.2f}".format),
            "counted as": rows.reading,
        }
    ).reset_index(drop=True)
    page.show(
        artifact,
        table,
        evidence="derived",
        caption="Trained parameters, counted and printed.",
        how=how,
    )


def show_tuned(chapter: Chapter, artifact: str, rows: pd.DataFrame | None = None) -> None:
    """Show the accuracies of an artifact's runs, or of some of them, by group of tasks."""
    rows = chapter.planned(artifact) if rows is None else rows
    caption = "Test accuracy in %, mean ± standard deviation over seeds."
    chapter.show(artifact, group_table, rows, caption)


def benchmarks(chapter: Chapter) -> tuple[list[str], list[str]]:
    """Of Table 4's data sets those of FGVC and those of VTAB; in the quick profile its fine-grained
    task and the others."""
    full = chapter.scope.tasks["full"]
    if chapter.p.plan == "paper":
        return full[:5], full[5:14]
    fine = [task for task in full if group_of(task) == "fine"]
    return fine, [task for task in full if task not in fine]


def judge_count(page: Page, artifact: str, row: str, claim: str, note: str = "") -> None:
    """Hold a count of an artifact against a claim of it; the note is how the cell was read, unless
    given."""
    count = counts(artifact).loc[f"{artifact}.{row}"]
    page.judge_count(f"{artifact}.{claim}", count, note=note)


def groups(artifact: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The cells of a PEFT table, methods as rows; and its group accuracies with their mean over the
    19 data sets."""
    table = papers.published(artifact).set_index("method").drop(index="Number of tasks")
    numbers = table[["FGVC", "VTAB", "Others"]].astype(float)
    return table, numbers.assign(mean=(numbers * [5, 9, 5]).sum(axis=1) / 19)


def rank(means: pd.DataFrame, method: str) -> int:
    """Place, from 1, of a method among the PEFT methods by mean accuracy."""
    return int(
        means.drop(index=["FULL-FINETUNE", "LINEAR-PROBE"])["mean"].rank(ascending=False)[method]
    )


def ahead_of_ap(table: pd.DataFrame) -> int:
    """In how many of Table 4's efficiency columns another PEFT method is ahead of AP."""
    others = table.drop(index=["FULL-FINETUNE", "LINEAR-PROBE", "AP"])
    # -1: more is better
    columns = {
        "parameters_m": 1,
        "memory_g": 1,
        "time_s_per_epoch": 1,
        "throughput_image_per_s": -1,
    }
    return sum(
        (sign * others[name].astype(float)).min() < sign * float(table[name]["AP"])
        for name, sign in columns.items()
    )


def group_gaps(means: pd.DataFrame) -> dict[tuple[str, str], float]:
    """(method, group) -> how far Table 4's group mean is from the mean of Table 1's cells, in
    points."""
    printed, cells = printed_cells("ap.table-1")
    is_vit = printed.architecture == "ViT-Large/16"
    cells = cells[is_vit].set_axis(printed.method[is_vit])
    split = {"FGVC": cells.columns[:5], "VTAB": cells.columns[5:14], "Others": cells.columns[14:]}
    return {
        (method, group): abs(means[group][method] - cells.loc[method, names].mean())
        for method in ("FULL-FINETUNE", "LINEAR-PROBE", "AP")
        for group, names in split.items()
    }


def beside_vpt() -> tuple[pd.Series, pd.Series, pd.Series]:
    """The printed accuracies of VPT-Shallow, VPT-Deep and AP in Table A2."""
    cells = (
        papers.published("ap.table-a2")
        .set_index("method")
        .drop(columns=["total_parameters", "doubt"])
        .astype(float)
    )
    return cells.loc["VPT-SHALLOW"], cells.loc["VPT-DEEP"], cells.filter(like="AP", axis=0).iloc[-1]


def drops_to_deep(columns: pd.Series) -> tuple[float, float]:
    """The mean of a difference over Table A2's four columns, and over the 19 tasks of VTAB-1k."""
    groups = columns[["Natural", "Specialized", "Structured"]]
    return float(columns.mean()), float(np.average(groups, weights=[7, 4, 8]))


def peaks(device: str, run: bool) -> dict[str, Record]:
    """The peak memory of a training step of those of HELD that were measured; with `run` of all."""
    found = {name: ap_tables.peak_of_table_4(name, device, run) for name in HELD}
    return {name: record for name, record in found.items() if record is not None}


def judge_memory(page: Page, claim: str, held: dict[str, Record], a: str, b: str) -> None:
    """Hold the peak memory of one of HELD over that of another, minus 1, against a claim; nothing
    where one is missing."""
    if {a, b} <= {*held}:
        used = [held[name] for name in (a, b)]
        first, other = (record.values["peak_mb"] for record in used)
        told = (
            f"{a} {first:,.0f} MiB, {b} {other:,.0f} MiB at batch "
            f"{used[0].settings['batch_size']}, {machine(used[0])}."
        )
        page.judge(claim, first / other - 1, evidence="measured", records=used, note=told)


def judge_time(page: Page, claim: str, timed: Record | None, a: str, b: str) -> None:
    """Hold how much longer one variant's training step takes than another's against a claim;
    nothing without a record."""
    if timed is not None:
        batch, rounds = (timed.settings[name] for name in ("batch_size", "repeats"))
        told = f"A training step at batch {batch}, {rounds} rounds in turns, {machine(timed)}."
        page.judge(
            claim, *ratio(timed, "seconds", a, b), evidence="measured", records=[timed], note=told
        )


def times_table(turns: Record) -> pd.DataFrame:
    """Time of a training step and throughput of each method of IN_TURNS, in % of AP's."""
    train, infer = ({slug: medians(turns, slug)[n] for slug in IN_TURNS} for n in (0, 1))
    rows = {
        "training time, % of AP's": {
            plots.NAMES[slug]: f"{100 * train[slug] / train['ap']:.0f}" for slug in IN_TURNS
        },
        "throughput, % of AP's": {
            plots.NAMES[slug]: f"{100 * infer['ap'] / infer[slug]:.0f}" for slug in IN_TURNS
        },
    }
    return pd.DataFrame(rows)
