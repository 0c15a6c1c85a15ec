"""The experiments of data_manifests/studies.yaml: grids of runs, and what may be said of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy import stats

from .errors import BadInput, choose
from .manifests import ROOT, load_yaml
from .sweeps import Lab, Run, at_best_rates, interval, row_of, sweep
from .tasks import group_of


@dataclass(frozen=True)
class Cast:
    """Who plays the parts of the studies, and how much of them is done."""

    backbones: dict[str, str]  # part -> backbone
    tasks: dict[str, list[str]]  # part -> tasks
    prompts: dict[str, int]  # "deep" and "shallow" -> prompt tokens
    profile: str = "quick"
    only_tasks: tuple[str, ...] = ()  # none but these; empty: all
    only_methods: tuple[str, ...] = ()  # likewise, slugs


def cast(profile: str, *, backbone: str | None = None, tasks: Sequence[str] = (), methods: Sequence[str] = ()) -> Cast:
    """The cast of a profile.

    Args:
        backbone: plays "supervised" in place of the profile's, and no other part is played.
        tasks: none but these; those that no study names, such as a folder's, take every part.
        methods: slugs; no variants but theirs.

    Raises:
        BadInput: unknown profile.
    """
    profiles = load_yaml(ROOT / "data_manifests" / "studies.yaml")["profiles"]
    entry = profiles[choose("profile", profile, profiles)]
    backbones = entry["backbones"] if backbone is None else {"supervised": backbone}
    known = {task for part in entry["tasks"].values() for task in part}
    foreign = [task for task in tasks if task not in known]
    parts = {part: foreign or names for part, names in entry["tasks"].items()}
    return Cast(backbones, parts, entry["prompts"], profile, tuple(tasks), tuple(methods))


def studies() -> dict[str, dict]:
    """All studies by name, as written."""
    return load_yaml(ROOT / "data_manifests" / "studies.yaml")["studies"]


def cells(name: str, cast: Cast, depth: int | None = None) -> list[tuple[str, Run, str | None]]:
    """The cells of a study: (variant, run with seed 0, variant of the benchmark whose rate it takes or None).

    Args:
        depth: blocks of the backbone, for a study that goes through them.

    Raises:
        BadInput: no study has that name.
    """
    known = studies()
    study = known[choose("study", name, known)]
    variants = dict(study["variants"])
    for block in range(depth or 0) if "blocks" in study else ():
        base = {"method": study["blocks"], "prompt_tokens": "deep", "guided_from": block}
        variants |= {f"block {block} alone": {**base, "guided_to": block}, f"blocks {block} to the last": base}
    sizes = study.get("train_sizes", {}).get(cast.profile, [None])
    found = []
    for part in study["backbones"]:
        for task in cast.tasks[study["tasks"]]:
            for variant, given in variants.items():
                if part not in cast.backbones or (cast.only_tasks and task not in cast.only_tasks):
                    continue
                if cast.only_methods and given["method"] not in cast.only_methods:
                    continue
                given = {key: cast.prompts.get(value, value) if isinstance(value, str) else value
                         for key, value in given.items()}  # fmt: skip
                given = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
                method, scratch = given.pop("method"), given.pop("scratch", False)
                rate_of = given.pop("rate_of", study.get("rate_of"))
                if rate_of is True:
                    rate_of = next((v for v, g in known["benchmark"]["variants"].items() if g["method"] == method), None)
                others = cast.tasks[study["prepared_on"]] if "prepared_on" in study else [None]
                for size in sizes:
                    for other in others:
                        run = Run(cast.backbones[part], task, method, 0, size, given, None, scratch, other)
                        found.append((variant, run, rate_of))
    return found


def with_rates(name: str, cast: Cast, lab: Lab, compute: bool, part: str = "1/1") -> list[tuple[str, Run]]:
    """The cells of a study at their learning rates: (variant, run with seed 0). See `sweeps.at_best_rates`."""
    number, parts = share(part)
    depth = None
    if "blocks" in studies()[choose("study", name, studies())]:
        depth = lab.backbone(cast.backbones["supervised"]).depth
    found = cells(name, cast, depth)[number - 1 :: parts]
    searched = {i: run for i, (_, run, rate_of) in enumerate(found) if rate_of is None}
    own = dict(zip(searched, at_best_rates(list(searched.values()), lab, compute, f"search of {name}"), strict=True))
    rates = {}

    def rate_like(run: Run, variant: str) -> float | None:
        """The rate of a variant of the benchmark on the run's backbone and task, else on the nearest backbone."""
        parts = {name: part for part, name in cast.backbones.items()}
        near = "mae" if "mae" in parts[run.backbone] else "supervised"
        for backbone in dict.fromkeys([run.backbone, cast.backbones.get(near), cast.backbones.get("supervised")]):
            given = {**studies()["benchmark"]["variants"][variant]}
            method = given.pop("method")
            given = {key: cast.prompts.get(value, value) for key, value in given.items()}
            like = Run(backbone, run.task, method, settings=given)
            if repr(like) not in rates:
                rates[repr(like)] = at_best_rates([like], lab, False)[0].rate
            if rates[repr(like)] is not None:
                return rates[repr(like)]
        return None

    result = []
    for i, (variant, run, rate_of) in enumerate(found):
        if rate_of not in (None, "none"):
            run = replace(run, rate=rate_like(run, rate_of))
        result.append((variant, own.get(i, run)))
    return result


def study(name: str, cast: Cast, lab: Lab, *, seeds: Sequence[int] = (), kept_seeds: Sequence[int] = (), part: str = "1/1",
          search: bool = False) -> pd.DataFrame:  # fmt: skip
    """Do a study's runs with `seeds` that have no record yet, look up those with `kept_seeds`, and return all.

    Args:
        part: "2/3" takes the second of every three cells.
        search: do the search for learning rates too; else rates come from the records that there are.

    Returns:
        The columns of `sweeps.sweep`, "variant" and "group"; empty where there is no record.

    Raises:
        BadInput: unknown study, an impossible part, or runs that failed.
    """
    known, rows = with_rates(name, cast, lab, search, part), []
    wanted = [(variant, replace(run, seed=seed)) for seed in seeds for variant, run in known]
    if wanted:
        frame = sweep([run for _, run in wanted], lab, name)
        rows = [{**row, "variant": variant} for (variant, _), row in zip(wanted, frame.to_dict("records"), strict=True)]
    for seed in kept_seeds:
        for variant, run in known:
            record = lab.do(replace(run, seed=seed), compute=False)
            if record is not None:
                rows.append({**row_of(replace(run, seed=seed), record), "variant": variant})
    frame = pd.DataFrame(rows)
    if len(frame):
        frame["group"] = frame.task.map(group_of)
    return frame


def share(part: str) -> tuple[int, int]:
    """"The two numbers of "2/3".

    Raises:
        BadInput: anything else.
    """
    try:
        number, parts = (int(n) for n in part.split("/"))
    except ValueError:
        number, parts = 0, 0
    if not 1 <= number <= parts:
        raise BadInput(f"part must be written 1/2, the first of two, not {part!r}.")
    return number, parts


@dataclass(frozen=True)
class Gain:
    """A paired difference of two variants, in points of test accuracy."""

    mean: float
    low: float  # Student's t interval, 95 %, over seeds, each the mean over the tasks both have
    high: float
    tasks: int
    seeds: int
    better_tasks: int  # tasks on which the mean over seeds is above 0
    p_tasks: float  # Wilcoxon's signed ranks over the tasks' means, two-sided; NaN for fewer than five tasks
    records: tuple = ()


def gain(frame: pd.DataFrame, better: str, worse: str, *, by: str = "variant") -> Gain:
    """How much `better` is above `worse`, paired by backbone, task, training size and seed.

    Raises:
        BadInput: no pair has both.
    """
    keys = ["backbone", "task", "train_size", "seed"]
    pair = [frame[frame[by] == name][[*keys, "test", "record"]] for name in (better, worse)]
    both = pd.merge(*pair, on=keys, suffixes=("_a", "_b"))
    if not len(both):
        raise BadInput(f"no task and seed has runs of both {better} and {worse}.")
    difference = (both.test_a - both.test_b).groupby([both.seed, both.task]).mean().unstack()
    whole = difference.dropna()  # a seed counts only with all tasks
    by_task = difference.mean()
    p = stats.wilcoxon(by_task).pvalue if len(by_task) >= 5 and np.any(by_task != 0) else float("nan")
    return Gain(
        *interval(whole.mean(axis=1) if len(whole) else difference.mean(axis=1)), len(by_task), len(whole),
        int((by_task > 0).sum()), float(p), (*both.record_a, *both.record_b),
    )  # fmt: skip


def group_table(frame: pd.DataFrame, groups: Sequence[str] = ("natural", "specialized", "structured", "fine")) -> pd.DataFrame:
    """Mean accuracy by variant and group with the spread of the seeds, as text; variants in the order of the frame.

    A cell is the mean over the group's tasks and the seeds, and the standard deviation over seeds of the mean over
    tasks; "mean" is the mean over the tasks of all groups. A variant that lacks a task of a group has no mean there.
    """

    def cell(rows, tasks):
        if set(rows.task) < set(tasks):
            return "–"
        seeds = rows.groupby(["seed", "task"]).test.mean().unstack().dropna().mean(axis=1)
        seeds = seeds if len(seeds) else rows.groupby("seed").test.mean()
        return f"{seeds.mean():.1f} ± {seeds.std(ddof=1):.1f}" if len(seeds) > 1 else f"{seeds.mean():.1f}"

    groups = [group for group in groups if (frame.group == group).any()]
    rows = []
    for variant in dict.fromkeys(frame.variant):
        mine = frame[frame.variant == variant]
        cells = {group: cell(mine[mine.group == group], frame.task[frame.group == group]) for group in groups}
        rows.append({"method": variant, **cells, "mean": cell(mine, frame.task), "seeds": mine.seed.nunique()})
    return pd.DataFrame(rows)


def task_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracy by variant and task over the seeds, one decimal, as text."""
    means = frame.groupby(["variant", "task"]).test.mean().unstack()
    means = means.loc[list(dict.fromkeys(frame.variant)), list(dict.fromkeys(frame.task))]
    return means.map(lambda value: "–" if np.isnan(value) else f"{value:.1f}").rename_axis(None).rename_axis(None, axis=1)
