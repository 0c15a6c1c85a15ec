"""Why a number differs: what one factor at a time moves, from kept runs of photographs."""

import html
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from visprompt.records import Record, store
from visprompt.training.recipe import load_recipe
from visprompt.words import REAL as PROFILE

from ..pages import plots
from ..pages.friendly import ends, signed
from ..pages.page import Page
from ..pages.plots import NAMES
from ..studies import factors
from ..studies.case import rate_name
from . import real

WIDEST = 25.0  # points that the figure has room for; beyond it a number stands at the edge
LOOKS = {"VPT-Deep": ("#0072b2", "o"), "AdaptFormer": ("#d55e00", "D")}
NOT_MEASURED = "not measured"
SEEDS = 3  # that the baseline has


@dataclass(frozen=True)
class Moved:
    """What a factor moves a method by, in points of test accuracy.

    Attributes:
        mean: over tasks, each the mean over its seeds.
        half: of the interval of 95 % for other seeds, on these tasks and test images; NaN: none.
        tasks, seeds: that it is over; of seeds the fewest of a task.
    """

    mean: float
    half: float
    tasks: int
    seeds: int
    records: tuple[Record, ...] = ()

    @property
    def told(self) -> str:
        """The mean and the interval as text."""
        low, high = self.mean - self.half, self.mean + self.half
        wide = "" if np.isnan(self.half) else f" {ends(low, high)}"
        return signed(self.mean) + wide


@dataclass(frozen=True)
class Row:
    """A factor, and what it moves each method by; none where no run is kept."""

    name: str
    entry: Mapping
    moved: Mapping[str, Moved]

    @property
    def size(self) -> float:
        """Points by which the method that it moves most is moved; -1 where none is measured."""
        return max((abs(one.mean) for one in self.moved.values()), default=-1.0)

    def clear(self, least: float) -> bool:
        """Whether it moves a method by more than `least` points, with an interval without 0."""
        return any(
            abs(one.mean) > max(least, np.nan_to_num(one.half)) for one in self.moved.values()
        )


def tuned(methods: Iterable[str]) -> dict[tuple[str, str], list[Record]]:
    """(method, task) -> the study real's kept runs of all rates and seeds."""
    kept = real.kept_rows("tune", tasks=tasks_of_study(), backbone=real.REAL)
    kept = [r for r in kept if r.settings["recipe"]["precision"] == "float32"]
    named = {NAMES[slug]: slug for slug in NAMES}
    return {
        (method, part[0].settings["task"]): part
        for method in methods
        for part in real.alike(kept)
        if part[0].settings["method"] == named[method]
    }


def tasks_of_study() -> list[str]:
    """The tasks of the study real."""
    return factors.grids.scope_of(PROFILE).tasks["real"]


def changed() -> dict[tuple[str, str, str], list[Record]]:
    """(factor, method, task) -> the kept runs with it, which do what factors.yaml says today."""
    asked, found = factors.options(), {}
    its = {*factors.manifest()["tasks"]}
    paths = [
        path
        for folder in store.stores()[1:]
        for kind in ("tune", "epochs")
        for path in store.files(folder, kind)
        if its & {*path.parts} and path.name.startswith(real.REAL)
    ]
    for record in map(store.read_record, paths):
        name, s = record.about.get("factor", of_precision(record)), record.settings
        option = asked.get(name)
        if option and all(s["recipe"].get(key) == value for key, value in option.recipe.items()):
            found.setdefault((name, NAMES[s["method"]], s["task"]), []).append(record)
    return found


def of_precision(record: Record) -> str:
    """The factor that a run of the study real in 16 bits is one of, and was before there were
    factors."""
    return "bf16" if record.settings["recipe"]["precision"] == "bf16" else ""


def deviation(parts: Iterable[Sequence[Record]]) -> tuple[float, int]:
    """Standard deviation of a run over its seeds, pooled over tasks, and its degrees of freedom."""
    tests = [np.array([record.values["test"] for record in part]) for part in parts]
    free = sum(len(test) - 1 for test in tests)
    squares = sum(float(((test - test.mean()) ** 2).sum()) for test in tests)
    return (np.sqrt(squares / free) if free else np.nan), free


def moved(pairs: Mapping[str, Mapping[int, float]], usual: tuple[float, int], records=()) -> Moved:
    """What differences, task -> seed -> points, say together.

    Of one seed a task, the spread of the baseline's own seeds stands in for that of differences.

    Args:
        usual: what `deviation` says of the baseline.
    """
    each = [np.array([*seeds.values()]) for seeds in pairs.values()]
    free = sum(len(one) - 1 for one in each)
    squares = sum(float(((one - one.mean()) ** 2).sum()) for one in each)
    alone = min(map(len, each)) < 2
    of_one, free = (2 * usual[0] ** 2, usual[1]) if alone else (squares / free, free)
    spread = np.sqrt(of_one * sum(1 / len(one) for one in each)) / len(each)
    half = float(stats.t.ppf(0.975, free) * spread) if free else np.nan
    mean = float(np.mean([one.mean() for one in each]))
    return Moved(mean, half, len(each), min(map(len, each)), tuple(records))


def of_factor(name: str, method: str, best: Mapping[str, list[Record]], found: Mapping, usual):
    """What a factor with runs of its own moves a method by; None where none is kept."""
    pairs, used = {}, []
    for task, part in best.items():
        base = {record.settings["seed"]: record for record in part}
        for record in found.get((name, method, task), ()):
            seed = record.settings["seed"]
            if seed in base and rate_of(record) == rate_of(base[seed]):
                pairs.setdefault(task, {})[seed] = points(record, base[seed])
                used += [record, base[seed]]
    return moved(pairs, usual, used) if pairs else None


def rate_of(record: Record) -> float:
    """The method's own learning rate in a run."""
    return record.settings["recipe"][rate_name(record.settings["method"])]


def points(record: Record, base: Record) -> float:
    """By how many points a run is above its baseline; of one that was followed on the test images,
    its best epoch above its last."""
    by_epoch = record.values.get("test_by_epoch")
    return max(by_epoch) - by_epoch[-1] if by_epoch else record.values["test"] - base.values["test"]


def of_seed(best: Mapping[str, list[Record]]) -> Moved:
    """By how many points two seeds differ, in the mean over all pairs, either way."""
    apart = {
        task: [abs(a.values["test"] - b.values["test"]) for a, b in combinations(part, 2)]
        for task, part in best.items()
    }
    means = [np.mean(one) for one in apart.values() if one]
    used = [record for part in best.values() for record in part]
    seeds = min(len(part) for part in best.values())
    return Moved(float(np.mean(means)), np.nan, len(means), seeds, tuple(used))


def of_search(how: str, parts: Mapping[str, list[Record]], usual) -> Moved | None:
    """What another learning rate of the search moves, with seed 0; see `other_rate`."""
    pairs, used = {}, []
    for task, part in parts.items():
        tried = {rate_of(record): record for record in part if record.settings["seed"] == 0}
        first = tried.get(rate_of(real.at_best_rate(part)[0][0]))  # None: a search is half done
        if first and (other := other_rate(how, first, tried)):
            pairs[task] = {0: other.values["test"] - first.values["test"]}
            used += [first, other]
    apart = sum(a is not b for a, b in zip(used[::2], used[1::2], strict=True))
    # a task whose two runs are one adds nothing to the spread
    usual = (usual[0] * math.sqrt(apart / max(len(pairs), 1)), usual[1] if apart else 0)
    return moved(pairs, usual, used) if pairs else None


def other_rate(how: str, chosen: Record, tried: Mapping[float, Record]) -> Record | None:
    """The run of a search that is compared with the chosen one: at the next "higher" or "lower"
    learning rate, "unsearched" at the recipe's own, "smallest" at the smallest within a standard
    error of the best, or the best on "test"."""
    method, rates = chosen.settings["method"], sorted(tried)
    if how == "test":
        return max(tried.values(), key=lambda record: record.values["test"])
    if how == "smallest":
        val = {rate: record.values["val"] for rate, record in tried.items()}
        best, images = max(val.values()), chosen.about["split"]["counts"][1]
        error = math.sqrt(best * (100 - best) / images)  # percent
        return tried[min(rate for rate in rates if val[rate] >= best - error)]
    if how == "unsearched":
        return tried.get(getattr(load_recipe(PROFILE, method, True), rate_name(method)))
    step = rates.index(rate_of(chosen)) + {"higher": 1, "lower": -1}[how]
    return tried[rates[step]] if 0 <= step < len(rates) else None


def rows() -> list[Row]:
    """All factors, those that move a method most first; then those without runs, in their order."""
    asked = factors.manifest()
    runs, found, result = tuned(asked["methods"]), changed(), []
    for name, entry in asked["factors"].items():
        one = {}
        for method in asked["methods"]:
            parts = {task: part for (of, task), part in runs.items() if of == method}
            best = {task: real.at_best_rate(part)[0] for task, part in parts.items()}
            its = {task: best[task] for task in asked["tasks"] if task in best}
            # what is chosen on the test images can only gain, which no interval about it says
            on_test = entry.get("kept") == "test" or "measure" in entry.get("option", {})
            usual = deviation([] if on_test else (best if "kept" in entry else its).values())
            if not best:
                continue
            if entry.get("kept") == "seed":
                one[method] = of_seed(best)
            elif "kept" in entry:
                one[method] = of_search(entry["kept"], parts, usual)
            elif "option" in entry:
                one[method] = of_factor(name, method, its, found, usual)
        result.append(Row(name, entry, {key: value for key, value in one.items() if value}))
    return sorted(result, key=lambda row: (-row.size, "why" in row.entry))


def said(done: str) -> str:
    """ "who | does what | where" as HTML."""
    who, what, where = done.split(" | ")
    address = where if where.startswith("https:") else f"../{where}"
    return (
        f"<b>{html.escape(who)}</b>: {html.escape(what)} "
        f'(<a href="{html.escape(address)}">source</a>)'
    )


def others(row: Row, first: Mapping[tuple, Row]) -> str:
    """What papers and released code do, as HTML; said once, in the first row that it holds for."""
    earlier = first[(*row.entry["done"],)]
    if earlier is not row:
        return f"as above, <i>{html.escape(earlier.entry['changed'])}</i>"
    return "<br>".join(map(said, row.entry["done"]))


def cell(row: Row, method: str) -> str:
    """What the table shows for a factor and a method."""
    if found := row.moved.get(method):
        return found.told.replace("+", "±") if row.name == "seed" else found.told
    return NOT_MEASURED if "why" in row.entry else "not run yet"


def counted(row: Row) -> str:
    """Over how much a row is, the command for what of it is not run, or why it is not measured."""
    if "why" in row.entry:
        return f"from sources: {html.escape(row.entry['why'])}"
    each = [*row.moved.values()]
    words = [
        " and ".join(dict.fromkeys(str(getattr(one, of)) for one in each)) + f" {of}"
        for of in ("tasks", "seeds")
    ]
    words = [word.removesuffix("s") if word.startswith("1 ") else word for word in words]
    more = "more runs: " if row.moved else ""
    command = [f"{more}<code>visprompt factors {row.name}</code>"] if unfinished(row) else []
    return "; ".join([*([", ".join(words)] if row.moved else []), *command])


def unfinished(row: Row) -> bool:
    """Whether runs of a factor are not kept."""
    if "option" not in row.entry:
        return False
    asked = factors.manifest()
    tasks = len(row.entry["option"].get("tasks", asked["tasks"]))
    return any(
        (one := row.moved.get(method)) is None or (one.tasks, one.seeds) != (tasks, SEEDS)
        for method in asked["methods"]
    )


def table(found: Sequence[Row]) -> pd.DataFrame:
    """A row of each factor, as HTML."""
    methods, first = factors.manifest()["methods"], {}
    for row in found:
        first.setdefault((*row.entry["done"],), row)
    return pd.DataFrame(
        [
            {
                "what is changed": html.escape(row.entry["changed"]),
                **{f"{method}, points": cell(row, method) for method in methods},
                "over": counted(row),
                "what papers and released code do": others(row, first),
            }
            for row in found
        ]
    )


def figure(found: Sequence[Row]) -> Figure:
    """The measured factors, a mark for each method with its interval; a band is another seed."""
    seed = next(row for row in found if row.name == "seed").size
    found = [row for row in found if row.moved and row.name != "seed"]
    fig, ax = plt.subplots(figsize=(7, 1 + 0.42 * len(found)))
    ax.axvspan(-seed, seed, color="#dddddd", lw=0, label="another seed")
    for number, row in enumerate(found):
        for side, method in enumerate(row.moved):
            draw(ax, number + 0.32 * side - 0.16, row.moved[method], method)
    ax.axvline(0, color="black", lw=0.8)
    ends = [
        one.mean + side * np.nan_to_num(one.half)
        for row in found
        for one in row.moved.values()
        for side in (-1, 1)
    ]
    edges = np.clip([min(ends) - 2, max(ends) + 2], -WIDEST - 0.5, WIDEST + 0.5)
    ax.set(xlim=edges, xlabel="points of test accuracy")
    names = [textwrap.fill(row.entry["changed"], 42) for row in found]
    ax.set_yticks(range(len(found)), names, fontsize=8)
    ax.set_ylim(len(found) - 0.5, -0.5)
    plots.legend_below(fig, [ax], 3)
    return fig


def draw(ax, place: float, one: Moved, method: str) -> None:
    """What a factor moves a method by, at a height; what has no room stands at the edge."""
    color, marker = LOOKS[method]
    shown, *ends = np.clip([one.mean, one.mean - one.half, one.mean + one.half], -WIDEST, WIDEST)
    ax.plot(ends, [place] * 2, lw=2.5, alpha=0.5, color=color)
    ax.plot(shown, place, marker, ms=5, color=color, ls="none", label=method)
    if shown != one.mean:
        ax.annotate(signed(one.mean), (shown, place), (6, -3), color=color, fontsize=8,
                    textcoords="offset points")  # fmt: skip


def clear(found: Sequence[Row]) -> list[Row]:
    """The changes that clearly move a method by more than another seed does."""
    seed = next((row for row in found if row.name == "seed" and row.moved), None)
    return [row for row in found if seed and row is not seed and row.clear(seed.size)]


def finding(found: Sequence[Row]) -> str:
    """What the figure shows, in a sentence."""
    measured = [row for row in found if row.moved]
    seed = next(row for row in measured if row.name == "seed")
    above = len(clear(measured))
    first = next(row for row in measured if row is not seed)
    method = max(first.moved, key=lambda name: abs(first.moved[name].mean))
    points = first.moved[method].mean
    way = "lowers" if points < 0 else "raises"
    return (
        f"{first.entry['changed'].capitalize()}, {way} {method} by {abs(points):.1f} points; "
        f"{above} of {len(measured) - 1} measured changes move a method by more than another seed "
        f"({seed.size:.1f} points), with an interval that excludes 0."
    )


def show(page: Page) -> None:
    """The figure and the table, where the study real has kept runs."""
    found = rows()
    if not any(row.moved for row in found):
        return
    plots.style()
    used = [record for row in found for one in row.moved.values() for record in one.records]
    how = (
        "A published ViT-Tiny, 112 pixels, 10 epochs; pairs of runs with the same seed. 95 % "
        "intervals for other seeds, on these tasks and test images; of one seed, from the spread "
        "of the baseline's seeds."
    )
    same = {"evidence": "trend", "records": used, "how": how}
    told = finding(found)
    left = sum(map(unfinished, found))
    alt = f"{told} Points moved by each change: " + "; ".join(
        f"{row.entry['changed']}, "
        + ", ".join(f"{method} {one.told}" for method, one in row.moved.items())
        for row in found
        if row.moved
    )
    page.present(figure(found), caption=told, alt=alt, cell="moved", **same)
    caption = "Points of test accuracy that one change moves, the larger of the two columns first."
    if left:
        caption += f" For {left} of the changes, not all runs are done yet."
    page.present(table(found), caption=caption, cell="moved", escape=False, **same)
