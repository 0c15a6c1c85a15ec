"""AP beside the parameter-efficient methods: printed accuracies by group, and printed counts beside our own."""

from functools import cache

import pandas as pd

from .. import papers
from ..measure.counts import printed_counts
from ..pages import plots
from ..pages.page import Page
from ..records import Record
from .ap import printed_cells
from .ap_cost import medians

IN_TURNS = {  # timed in turns, with the settings that the paper states
    "ap": {},
    "bias": {},
    "lora": {"rank": 10},
    "vpt-deep": {"prompt_tokens": 10},
    "adapter": {},
    "adaptformer": {},
    "ssf": {},
}


@cache
def counts(artifact: str) -> pd.DataFrame:
    """The printed counts of an artifact by id, counted once."""
    return printed_counts(artifact).set_index("id")


def show_parameters(
    page: Page, artifact: str, unit: str = "M", how: str = "Counted on ViT-Large/16 with a head for 10 classes."
) -> None:
    """Show the parameter column of a table, counted beside printed."""
    rows = counts(artifact)
    table = pd.DataFrame(
        {
            "method": rows.method,
            f"parameters, {unit}": rows.computed.map("{:.3f}".format),
            f"printed, {unit}": rows.printed.map("{:.2f}".format),
            "read as": rows.reading,
        }
    ).reset_index(drop=True)
    page.show(artifact, table, evidence="derived", caption="Trained parameters beside the printed ones.", how=how)


def judge_count(page: Page, artifact: str, row: str, claim: str, note: str = "") -> None:
    """Hold a count of an artifact against a claim of it; the note is how the cell was read, unless given."""
    count = counts(artifact).loc[f"{artifact}.{row}"]
    page.judge_count(f"{artifact}.{claim}", count, note=note)


def groups(artifact: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The cells of a PEFT table, methods as rows; and its group accuracies with their mean over the 19 data sets."""
    table = papers.published(artifact).set_index("method").drop(index="Number of tasks")
    numbers = table[["FGVC", "VTAB", "Others"]].astype(float)
    return table, numbers.assign(mean=(numbers * [5, 9, 5]).sum(axis=1) / 19)


def rank(means: pd.DataFrame, method: str) -> int:
    """Place, from 1, of a method among the PEFT methods by mean accuracy."""
    return int(means.drop(index=["FULL-FINETUNE", "LINEAR-PROBE"])["mean"].rank(ascending=False)[method])


def ahead_of_ap(table: pd.DataFrame) -> int:
    """In how many of Table 4's efficiency columns another PEFT method is ahead of AP."""
    others = table.drop(index=["FULL-FINETUNE", "LINEAR-PROBE", "AP"])
    columns = {"parameters_m": 1, "memory_g": 1, "time_s_per_epoch": 1, "throughput_image_per_s": -1}  # -1: more is better
    return sum((sign * others[name].astype(float)).min() < sign * float(table[name]["AP"]) for name, sign in columns.items())


def group_gaps(means: pd.DataFrame) -> dict[tuple[str, str], float]:
    """(method, group) -> how far Table 4's group mean is from the mean of Table 1's cells, in points."""
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
    cells = papers.published("ap.table-a2").set_index("method").drop(columns=["total_parameters", "doubt"]).astype(float)
    return cells.loc["VPT-SHALLOW"], cells.loc["VPT-DEEP"], cells.filter(like="AP", axis=0).iloc[-1]


def times_table(turns: Record) -> pd.DataFrame:
    """Time of a training step and throughput of each method of IN_TURNS, in % of AP's."""
    train, infer = ({slug: medians(turns, slug)[n] for slug in IN_TURNS} for n in (0, 1))
    rows = {
        "training time, % of AP's": {plots.NAMES[slug]: f"{100 * train[slug] / train['ap']:.0f}" for slug in IN_TURNS},
        "throughput, % of AP's": {plots.NAMES[slug]: f"{100 * infer['ap'] / infer[slug]:.0f}" for slug in IN_TURNS},
    }
    return pd.DataFrame(rows)
