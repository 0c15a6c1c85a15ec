"""Many runs as one table, and what may be said of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy import stats

from .backbones import load_backbone
from .errors import BadInput
from .manifests import ROOT, load_yaml
from .methods import build_method
from .records import run_all
from .tasks import load_task
from .tuning import load_recipe, tune


@dataclass(frozen=True)
class Run:
    """One method on one task: what a cell of a results table is made of, once a seed."""

    backbone: str
    task: str
    method: str
    seed: int = 0
    train_size: int | None = None  # None: the whole training split
    settings: dict = field(default_factory=dict)  # of the method
    rate: float | None = None  # learning rate in place of the recipe's, such as one chosen for this block


@dataclass(frozen=True)
class Bench:
    """Where runs are done: everything that is the same for all runs of a sweep."""

    recipe: str = "quick"  # name in data_manifests/recipes.yaml
    weights: str | None = "pretrained"  # or a file for all backbones of the sweep; None: random
    data_dir: str | None = None  # folder of the tasks that are not embedded
    device: str = "cpu"
    changes: dict = field(default_factory=dict)  # fields of the recipe that a notebook parameter overrides


def sweep(runs: Sequence[Run], bench: Bench, label: str, kept: Sequence[Run] = ()) -> pd.DataFrame:
    """Do the runs that have no record yet and return one row a run.

    Args:
        kept: runs that are shown where a record exists and are not done otherwise.

    Returns:
        Columns backbone, task, method, seed, train_size, test and val (percent), parameters (method's own),
        fit_seconds, record (the `Record`) and one column per method setting that occurs.

    Raises:
        BadInput: a name is wrong, or, after all runs, some failed.
    """
    backbones, tasks, rows = {}, {}, []

    def do(run: Run, compute: bool):
        if run.backbone not in backbones:
            backbones[run.backbone] = load_backbone(run.backbone, bench.weights, device=bench.device)
        backbone = backbones[run.backbone]
        key = (run.task, run.train_size, backbone.image_size)
        if key not in tasks:
            tasks[key] = load_task(
                run.task, data_dir=bench.data_dir, train_size=run.train_size, image_size=backbone.image_size
            )
        task = tasks[key]
        model = build_method(run.method, backbone, task.classes, **run.settings)
        changes = bench.changes if run.rate is None else {**bench.changes, "learning_rate": run.rate}
        recipe = load_recipe(bench.recipe, run.method, backbone.family != "resnet", **changes)
        record = tune(model, task, recipe, run.seed, run=compute)
        if record is not None:
            values = {name: record.values[name] for name in ("test", "val", "fit_seconds")}
            rows.append(
                {"backbone": run.backbone, "task": run.task, "method": run.method, "seed": run.seed,
                 "train_size": len(task.train[1]), **values, "parameters": record.values["parameters"]["method"],
                 "record": record, **run.settings}
            )  # fmt: skip
        return record

    run_all([(f"{r.method} on {r.task}, seed {r.seed}", lambda r=r: do(r, True)) for r in runs], label)
    for run in kept:
        do(run, False)
    if not rows:
        raise BadInput("no run was asked for: give at least one backbone, task, method and seed.")
    return pd.DataFrame(rows)


def ap_rates(recipe: str, part: str) -> dict:
    """AP's learning rates in a recipe, "by_block" or "by_variant"; empty where none were chosen."""
    return load_yaml(ROOT / "data_manifests" / "recipes.yaml")[recipe].get("ap_rates", {}).get(part, {})


def block_rates(recipe: str, is_vit: bool, depth: int) -> list[float | None]:
    """AP's learning rate at each block; None, the method's own rate, where none was chosen for this depth."""
    rates = ap_rates(recipe, "by_block").get("vit" if is_vit else "resnet", [])
    return rates if len(rates) == depth else [None] * depth


def interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float, float]:
    """Mean of independent values with Student's t interval: (mean, low, high).

    Fewer than three values say nothing reliable about their spread, so their interval is everything.

    Raises:
        BadInput: there are no values.
    """
    values = np.asarray(list(values), float)
    if not len(values):
        raise BadInput("no values to average: the runs for this comparison were left out by the parameters.")
    if len(values) < 3:
        return float(values.mean()), float("-inf"), float("inf")
    half = stats.t.ppf(0.5 + level / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean()), float(values.mean() - half), float(values.mean() + half)


def difference(better: pd.DataFrame, worse: pd.DataFrame) -> tuple[float, float, float]:
    """Interval of the mean accuracy difference of two parts of a sweep, in points, paired by seed.

    A seed's value is the mean over the tasks both parts have; seeds are the independent repetitions.
    """
    both = pd.merge(better, worse, on=["task", "seed", "train_size"], suffixes=("_a", "_b"))
    return interval((both.test_a - both.test_b).groupby(both.seed).mean())
