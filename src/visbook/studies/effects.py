"""The difference of two methods on the very tasks that were run: a fixed effect with all its error.

What is drawn anew, were the study done again, are the seeds and the test images; the tasks stay.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from visprompt.data.tasks import embedded_tasks
from visprompt.errors import BadInput
from visprompt.records import test_images

MOST_IMAGES = 100_000  # of a test split
MOST_SEEDS = 100  # beyond which a claim is not said to be open for want of seeds


@dataclass(frozen=True)
class Effect:
    """A difference, in points, and the variance of its estimate by where it comes from.

    Attributes:
        mean: over the tasks, each the mean over its cells (backbone, number of training images).
        of_seeds: the variance that the seeds of each method give the mean; the spread of a method's
            seeds is pooled over all cells.
        freedom: degrees of freedom of each of these.
        of_images: the variance that the choice of test images gives it; 0 of what is no accuracy.
        seeds: of a cell, the fewest.
    """

    mean: float
    of_seeds: tuple[float, ...]
    freedom: tuple[int, ...]
    of_images: float
    seeds: int

    def half(self, seeds: int | None = None, level: float = 0.95) -> float:
        """Half of the interval, by Welch's degrees of freedom; infinite where nothing repeats.

        Args:
            seeds: had there been so many, with the same spread.
        """
        if min(self.freedom) < 1 or sum(self.freedom) < 2:
            return math.inf
        times = self.seeds / seeds if seeds else 1.0
        freedom = [
            had if seeds is None else had * (seeds - 1) / (self.seeds - 1) for had in self.freedom
        ]
        parts = [part * times for part in self.of_seeds]
        whole = sum(parts) + self.of_images
        if not sum(parts):
            return stats.norm.ppf(0.5 + level / 2) * math.sqrt(whole) if whole else math.inf
        welch = whole**2 / sum(part**2 / of for part, of in zip(parts, freedom, strict=True))
        return float(stats.t.ppf(0.5 + level / 2, welch) * math.sqrt(whole))

    @property
    def interval(self) -> tuple[float, float, float]:
        """(mean, low, high) at 95 %."""
        half = self.half()
        return self.mean, self.mean - half, self.mean + half

    def seeds_to_tell(self, margin: float) -> int | None:
        """The fewest seeds per cell by which the interval would leave the margin, were mean and
        spread the same; None if `MOST_SEEDS` would not do."""
        if self.seeds < 2:
            return None
        away = abs(self.mean - margin)
        enough = range(self.seeds + 1, MOST_SEEDS + 1)
        return next((seeds for seeds in enough if self.half(seeds) < away), None)


def effect(better: pd.DataFrame, worse: pd.DataFrame) -> Effect:
    """The effect of one method against another.

    The two are not paired by seed: a seed draws other numbers for another method, and in the kept
    runs the two do not vary together, so pairing would only halve the degrees of freedom.

    Args:
        better, worse: rows with backbone, task, train_size, seed, test and record, of the same
            cells.
    """
    keys = ["task", "backbone", "train_size"]
    arms = [
        rows.groupby([*keys, "seed"], dropna=False).test.mean().groupby(keys, dropna=False)
        for rows in (better, worse)
    ]
    means, counts = ([getattr(arm, of)() for arm in arms] for of in ("mean", "count"))
    by_task = means[0].groupby("task").size()
    weight = 1 / (
        len(by_task) * by_task.reindex(means[0].index.get_level_values("task")).to_numpy()
    )
    of_seeds, freedom = [], []
    for arm, count in zip(arms, counts, strict=True):
        free = int((count - 1).sum())
        squares = float((arm.var(ddof=0) * count).sum())
        of_seeds.append(float((weight**2 / count).sum()) * squares / free if free else 0.0)
        freedom.append(free)
    return Effect(
        float((means[0] - means[1]).groupby("task").mean().mean()),
        tuple(of_seeds),
        tuple(freedom),
        sum(of_images(*each) for each in by_tasks(better, worse)) / len(by_task) ** 2,
        int(min(count.min() for count in counts)),
    )


def by_tasks(better: pd.DataFrame, worse: pd.DataFrame):
    """The rows of both methods on each task."""
    for task in dict.fromkeys(better.task):
        yield better[better.task == task], worse[worse.task == task]


def of_images(better: pd.DataFrame, worse: pd.DataFrame) -> float:
    """The variance of a difference on one task, in points², for other test images of its kind.

    From the images that either classified correctly, of the runs whose records have them: fewer
    runs only make it larger. Where no run of one has them, as if the two erred independently, which
    is the most that it can be where they err on the same images.
    """
    records = [list({id(one): one for one in arm.record}.values()) for arm in (better, worse)]
    rows = [*better.itertuples(), *worse.itertuples()]
    kinds = {getattr(row.record, "kind", None) for row in rows}
    values = [getattr(row.record, "values", {}).get("test") for row in rows]
    if "segment" in kinds or values != [row.test for row in rows]:
        return 0.0  # no accuracy; of an mIoU no record says what single images gave
    bits = [[test_images.unpacked(record.values) for record in arm] for arm in records]
    known = [[found for found in arm if found is not None] for arm in bits]
    if all(known):
        apart = np.mean(known[0], axis=0) - np.mean(known[1], axis=0)
        return 1e4 * float(apart.var()) / len(apart)
    shares = [rows.test.mean() / 100 for rows in (better, worse)]
    return 1e4 * sum(share * (1 - share) for share in shares) / size([*records[0], *records[1]])


def size(records: Sequence) -> int:
    """How many test images the accuracies of some records of a task are over.

    Of a folder whose record does not say it: the least number of which all are whole shares, which
    at most makes the error too large.

    Raises:
        BadInput: no number of images gives them.
    """
    known, task = embedded_tasks(), records[0].settings["task"]
    if task in known:
        return known[task]["splits"][2]
    if split := records[0].about.get("split"):
        return split["counts"][2]
    tests = np.array([record.values["test"] for record in records])
    whole = (
        images
        for images in range(1, MOST_IMAGES)
        if (np.round(100 * np.round(tests * images / 100) / images, 4) == tests).all()
    )
    if (found := next(whole, None)) is None:
        raise BadInput(f"{task}: no number of test images gives {sorted(set(tests))} %.")
    return found


def of_table(table: pd.DataFrame) -> Effect:
    """The mean of a table (seeds, tasks) on these very tasks; the choice of images is not in it."""
    whole = table.dropna()
    table = whole if len(whole) else table
    count = table.count()
    free = int((count - 1).sum())
    squares = float((table.var(ddof=0) * count).sum())
    variance = float((1 / count).sum()) / table.shape[1] ** 2 * squares / free if free else 0.0
    return Effect(float(table.mean().mean()), (variance,), (free,), 0.0, int(count.min()))


def simulated(
    true: float,
    tasks: int,
    seeds: int,
    trials: int = 1000,
    *,
    of_seeds: float | Sequence[float] = 1.5,
    images: int = 1000,
    kept: float = 0.7,
    of_tasks: float = 0.0,
) -> dict[str, float]:
    """How often the rule says above, below or neither where the difference is known.

    Args:
        true: the difference of the two methods, in points, over tasks as they are and all images.
        of_seeds: standard deviation of a method's seeds, in points; of several, one per task.
        images: test images of each task, of which about 70 % are right.
        kept: variance of the difference from the choice of images, as a share of what two methods
            that err independently would have.
        of_tasks: standard deviation of the tasks' own differences, whose mean is `true`.

    Returns:
        Shares of the trials: "above", "below" and "open".
    """
    draw, found = np.random.default_rng(0), []
    chance = 1e4 * 2 * 0.7 * 0.3 / images * kept
    for _ in range(trials):
        own = of_tasks * draw.normal(size=tasks)
        gaps = true + own - own.mean() + math.sqrt(chance) * draw.normal(size=tasks)
        arms = [np.asarray(of_seeds) * draw.normal(size=(seeds, tasks)) for _ in range(2)]
        variances = [float(arm.var(axis=0, ddof=1).mean()) / (seeds * tasks) for arm in arms]
        mean = float((gaps + arms[0].mean(0) - arms[1].mean(0)).mean())
        one = Effect(mean, tuple(variances), ((seeds - 1) * tasks,) * 2, chance / tasks, seeds)
        found.append(int(np.sign(mean)) * (abs(mean) > one.half()))
    shares = {word: found.count(sign) / trials for word, sign in (("above", 1), ("below", -1))}
    return {**shares, "open": found.count(0) / trials}
