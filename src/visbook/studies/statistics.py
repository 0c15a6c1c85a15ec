"""What may be said of many runs: intervals, paired differences, and tables of means."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from visprompt.errors import BadInput

from .effects import Effect, effect


class Cell(str):
    """A mean as text, with the records of the runs that it is over, so that a page can lead to
    them."""

    def __new__(cls, text: str, records: Sequence = ()):
        cell = super().__new__(cls, text)
        cell.records = list(records)
        return cell


def spread(
    values: Sequence[float], records: Sequence = (), rows: pd.DataFrame | None = None
) -> Cell:
    """Mean and standard deviation (n - 1) of some values, one decimal; of one value there is no
    deviation. Where a run fell, how many did and the median stand beside them.

    Args:
        rows: the runs behind the values, where a value is over several tasks.
    """
    told = f"{np.mean(values):.1f}"
    if len(values) > 1:
        told += f" ± {np.std(values, ddof=1):.1f}"
    fell = fallen(pd.DataFrame({"test": [*values]}) if rows is None else rows)
    return Cell(told + beside(values, fell), records)


def fallen(rows: pd.DataFrame) -> pd.Series:
    """Which runs are below half of the best seed of their cell."""
    keys = ("variant", "backbone", "task", "train_size", "block", "prepared_on")
    cell = [key for key in keys if key in rows]
    groups = rows.groupby(cell, dropna=False, sort=False) if cell else rows
    return rows.test < (groups.test.transform("max") if cell else rows.test.max()) / 2


def beside(values: Sequence[float], fell: pd.Series) -> str:
    """What stands beside a mean where runs fell."""
    if not fell.any():
        return ""
    return f" (median {np.median(values):.1f}; {fell.sum()} of {len(fell)} collapsed)"


def names_of_fallen(rows: pd.DataFrame) -> list[str]:
    """The fallen runs in words, those of one variant, or source of prompts, and task together."""
    if "prepared_on" in rows:
        rows = rows.assign(variant="prompts of " + rows.prepared_on)
    fell = rows[fallen(rows)].drop_duplicates(["variant", "task", "seed", "test"])
    named = []
    for (variant, task), part in fell.groupby(["variant", "task"], sort=False):
        which = f"{len(part)} runs" if len(part) > 1 else f"seed {part.seed.iloc[0]}"
        values = dict.fromkeys(f"{value:.1f}" for value in (part.test.min(), part.test.max()))
        named.append(f"{variant} on {task}, {which}: {' to '.join(values)} %")
    return named


def told_of_fallen(rows: pd.DataFrame) -> str:
    """The fallen runs of some rows, in a sentence; "" where none fell."""
    fell = names_of_fallen(rows)
    return f"Collapsed: {'; '.join(fell)}." if fell else ""


def interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float, float]:
    """Mean of independent values with Student's t interval: (mean, low, high).

    Fewer than three values say nothing reliable about their spread, so their interval is
    everything.

    Raises:
        BadInput: there are no values.
    """
    values = np.asarray(list(values), float)
    if not len(values):
        raise BadInput(
            "no values to average: the runs for this comparison were left out by the parameters."
        )
    if len(values) < 3:
        return float(values.mean()), float("-inf"), float("inf")
    half = stats.t.ppf(0.5 + level / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean()), float(values.mean() - half), float(values.mean() + half)


def over_tasks(table: pd.DataFrame) -> tuple[float, float, float]:
    """Mean of a table (seeds, tasks) with an interval that holds for other seeds and, of several
    tasks, other tasks.

    Of one task the repetitions are its seeds. Of several they are the
    tasks, each the mean over its seeds: what tasks differ by and what seeds differ by are both in
    the spread of these means, and Student's t over them is the interval of the mixed model in which
    both are drawn (for a table without holes). A bootstrap that draws tasks, and seeds within them,
    says the same of thirty tasks, but of three it covers the truth three times in four where it
    promises nineteen in twenty.

    Raises:
        BadInput: the table is empty.
    """
    return interval(table.mean() if table.shape[1] > 1 else table.to_numpy().ravel())


MANY = 5  # tasks, from which on an interval over tasks is shown


@dataclass(frozen=True)
class Gain:
    """A difference of two variants, in points of test accuracy."""

    effect: Effect  # on these very tasks, for other seeds and test images
    # 95 % for other seeds and, where there are several tasks, for other tasks: see `over_tasks`
    elsewhere: tuple[float, float]
    tasks: int
    seeds: int
    better_tasks: int  # tasks on which the mean over seeds is above 0
    records: tuple = ()

    @property
    def counted(self) -> str:
        """Over how many tasks and seeds it is, and on how many of them it is above 0."""
        tasks, seeds = (
            f"{n} {word if n == 1 else word + 's'}"
            for n, word in ((self.tasks, "task"), (self.seeds, "seed"))
        )
        return f"{tasks}, {seeds}, above 0 on {self.better_tasks} of {tasks}"

    @property
    def here(self) -> tuple[float, float, float]:
        """Mean and interval of 95 % on these very tasks, see `effects`."""
        return self.effect.interval

    @property
    def beyond(self) -> tuple[float, float]:
        """95 % for other tasks as well, never narrower than `here`: a few tasks that happen to be
        alike say less than seeds and test images do."""
        return min(self.here[1], self.elsewhere[0]), max(self.here[2], self.elsewhere[1])

    @property
    def mean(self) -> float:
        """Over the tasks, each the mean over its seeds."""
        return self.effect.mean


def gain(frame: pd.DataFrame, better: str, worse: str, *, by: str = "variant") -> Gain | None:
    """How much `better` is above `worse`, paired by backbone, task, training size and seed; None
    where no pair has both."""
    keys = ["backbone", "task", "train_size", "seed"]
    if not len(frame):
        return None
    pair = [frame[frame[by] == name][[*keys, "test", "record"]] for name in (better, worse)]
    both = pd.merge(*pair, on=keys, suffixes=("_a", "_b"))
    if not len(both):
        return None
    difference = (both.test_a - both.test_b).groupby([both.seed, both.task]).mean().unstack()
    whole = difference.dropna()  # a seed counts only with all tasks
    values = whole if len(whole) else difference
    used = both[both.seed.isin(values.index)]
    arms = [
        used[[*keys, f"test_{arm}", f"record_{arm}"]].set_axis([*keys, "test", "record"], axis=1)
        for arm in "ab"
    ]
    by_task, here = values.mean(), effect(*arms)
    return Gain(
        here,
        over_tasks(values)[1:],
        len(by_task),
        here.seeds,
        int((by_task > 0).sum()),
        (*both.record_a, *both.record_b),
    )


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """`group_table` for each backbone, number of training images and task of the prompts, by a
    title that says them."""
    titles = []
    for run in frame.run:
        images = run.train_size and f"{run.train_size} training images"
        prompts = run.prepared_on and f"prompts of {run.prepared_on}"
        titles.append(", ".join(filter(None, [run.backbone, images, prompts])))
    return {title: group_table(rows) for title, rows in frame.groupby(pd.Index(titles), sort=False)}


def group_table(
    frame: pd.DataFrame,
    groups: Sequence[str] = ("natural", "specialized", "structured", "fine", "other"),
) -> pd.DataFrame:
    """Mean accuracy by variant and group with the spread of the seeds, as text; variants in the
    order of the frame.

    A cell is the mean over the group's tasks and the seeds, and the standard deviation over seeds
    of the mean over tasks; "mean" is the mean over the tasks of all groups. A variant that lacks a
    task of a group has no mean there.
    """

    def cell(rows, tasks):
        if set(rows.task) < set(tasks):
            return "–"
        seeds = rows.groupby(["seed", "task"]).test.mean().unstack().dropna().mean(axis=1)
        seeds = seeds if len(seeds) else rows.groupby("seed").test.mean()
        shown = rows[rows.seed.isin(seeds.index)]
        return spread(seeds, runs(shown), shown)

    groups = [group for group in groups if (frame.group == group).any()]
    rows = []
    for variant in dict.fromkeys(frame.variant):
        mine = frame[frame.variant == variant]
        cells = {
            group: cell(mine[mine.group == group], frame.task[frame.group == group])
            for group in groups
        }
        rows.append(
            {
                "method": variant,
                **cells,
                "mean": cell(mine, frame.task),
                "seeds": mine.seed.nunique(),
            }
        )
    return pd.DataFrame(rows, dtype=object)


def task_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracy by variant and task over the seeds, one decimal, as text."""
    groups = frame.groupby(["variant", "task"])
    cells = {
        key: Cell(f"{rows.test.mean():.1f}{beside(rows.test, fallen(rows))}", runs(rows))
        for key, rows in groups
    }
    variants, tasks = (list(dict.fromkeys(frame[name])) for name in ("variant", "task"))
    columns = {task: [cells.get((variant, task), "–") for variant in variants] for task in tasks}
    return pd.DataFrame(columns, index=variants, dtype=object)


def runs(rows: pd.DataFrame) -> list:
    """The records of some rows; a frame may have none."""
    return [*rows.get("record", ())]
