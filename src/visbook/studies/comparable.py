"""Fair comparisons: which rows of many runs can answer a question, or have means that may stand
side by side."""

from collections.abc import Sequence

import pandas as pd

from visprompt.data.tasks import embedded_tasks


def whole(
    frame: pd.DataFrame,
    variants: Sequence[str],
    tasks: Sequence[str],
    backbones: Sequence[str] = (),
):
    """The rows that can answer a question about certain data sets: those of the seeds that have all
    of it.

    Args:
        frame: columns variant, task and seed, and backbone where there are several.
        variants: what is compared.
        tasks: what the question is about, all of them.
        backbones: likewise; none: those in the frame that have every variant.

    Returns:
        (rows, "") or, where no seed has all, (no rows, why). A cell near chance leaves the rows,
        and `rows.attrs["near_chance"]` names those that did.
    """
    rows = frame if "backbone" in frame else frame.assign(backbone="")
    rows = rows[rows.variant.isin(variants)]
    of_variant = rows.groupby("backbone").variant.nunique()
    backbones = list(backbones) or list(of_variant.index[of_variant == len(set(variants))])
    there = set(zip(rows.backbone, rows.variant, rows.task))
    about = listed(tasks) + (f" on {listed(backbones)}" if len(backbones) > 1 else "")
    asked = [(task, backbone) for task in tasks for backbone in backbones or [""]]
    lacking = [
        (t, b) for t, b in asked if not backbones or any((b, v, t) not in there for v in variants)
    ]
    if lacking:
        names = [
            f"{task} on {backbone}" if len(backbones) > 1 else task for task, backbone in lacking
        ]
        return rows.iloc[
            :0
        ], f"it is about {about}; not all that it compares was run here on {listed(names)}"
    rows = rows[rows.task.isin(tasks) & rows.backbone.isin(backbones)]
    cells = rows.drop_duplicates(["seed", "backbone", "variant", "task"]).groupby("seed").size()
    seeds = cells.index[cells == len(backbones) * len(set(variants)) * len(set(tasks))]
    if not len(seeds):
        return rows.iloc[:0], f"it is about {about}, and no seed has all of it"
    rows, guessed = (
        rows[rows.seed.isin(seeds)],
        near_chance(frame) if {"test", "backbone"} <= {*frame} else [],
    )
    guessed = [cell for cell in guessed if cell in {*zip(rows.task, rows.backbone)}]
    rows = rows[[cell not in guessed for cell in zip(rows.task, rows.backbone)]]
    rows.attrs["near_chance"] = [f"{task} on {backbone}" for task, backbone in guessed]
    return rows, "" if len(
        rows
    ) else f"nothing tried learns it: {listed(rows.attrs['near_chance'])} is near chance"


def comparable(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The rows whose means over tasks can stand side by side: a seed counts under `by` only with
    every task of the frame."""
    return (
        frame[frame.groupby([*by, "seed"]).task.transform("nunique") == frame.task.nunique()]
        if len(frame)
        else frame
    )


def near_chance(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """(task, backbone) wherever even the best variant's mean is below twice that of guessing;
    embedded tasks only."""
    known, found = embedded_tasks(), frame[frame.task.isin(embedded_tasks())]
    best = (
        found.groupby(["task", "backbone", "variant"])
        .test.mean()
        .groupby(["task", "backbone"])
        .max()
    )
    return [cell for cell, test in best.items() if test < 200 / len(known[cell[0]]["classes"])]


def wins_everywhere(frame: pd.DataFrame, variant: str) -> bool:
    """Whether a variant's mean is the highest of all on every task, backbone and training size of
    the rows."""
    means = frame.groupby(["task", "backbone", "train_size", "variant"]).test.mean().unstack()
    others = means.drop(columns=variant, errors="ignore")
    return (
        variant in means
        and others.shape[1] > 0
        and bool((means[variant] > others.max(axis=1)).all())
    )


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names in a sentence, the last ones of many left out; "nothing" where there is none."""
    names = list(names)
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return (
        " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names) or "nothing"
    )
