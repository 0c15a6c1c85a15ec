"""Why two numbers of one method differ: the runs of `factors.yaml`, one factor at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pandas as pd

from visprompt import paths
from visprompt.data.tasks import group_of
from visprompt.errors import choose
from visprompt.manifests import load_yaml
from visprompt.records import Record, run_all
from visprompt.training.protocol import Protocol
from visprompt.words import REAL

from . import grids, insights
from .case import Case, Run
from .lab import Lab, LabSettings
from .sweeps import row_of

BASE = "baseline"  # the study real's own runs


@dataclass(frozen=True)
class Option:
    """What a factor changes; see the head of factors.yaml."""

    recipe: dict = field(default_factory=dict)
    statistics: str | None = None
    resize: str | None = None
    trained_on: str | None = None
    settings: dict[str, dict] = field(default_factory=dict)
    measure: str = ""
    tasks: tuple[str, ...] = ()

    def on(self, run: Run) -> Run:
        """A run of the baseline with this changed."""
        own = self.settings.get(run.method, {})
        return replace(run, settings=run.settings | own, changes=run.changes | self.recipe)

    def protocol(self, usual: Protocol, tasks: Sequence[str]) -> Protocol:
        """The images' part of a recipe with this changed."""
        of_group = {
            name: value
            for name in ("resize", "trained_on")
            if (value := getattr(self, name)) is not None
        }
        groups = {group: usual.groups.get(group, {}) | of_group for group in map(group_of, tasks)}
        statistics = self.statistics or usual.statistics
        return replace(usual, groups=usual.groups | groups, statistics=statistics)


class FactorLab(Lab):
    """A lab in which one factor is changed; its records name it."""

    def __init__(self, bench: LabSettings, name: str, option: Option, tasks: Sequence[str]):
        super().__init__(bench)
        self.name, self.option, self.its = name, option, tasks

    @cached_property
    def protocol(self) -> Protocol:
        return self.option.protocol(super().protocol, self.its)

    def resolve(self, run: Run) -> Case:
        return FactorCase(run, self)


class FactorCase(Case):
    """A run with one factor changed, which no page shows among the study's own."""

    @cached_property
    def about(self) -> dict:
        return super().about | {"factor": self.lab.name}


def manifest() -> dict:
    """`factors.yaml`, as written."""
    return load_yaml(paths.MANIFESTS / "factors.yaml")


def options() -> dict[str, Option]:
    """Factor -> what it changes, in the order of their runs."""
    return {
        name: Option(**{key: tuple(v) if key == "tasks" else v for key, v in given.items()})
        for name, entry in manifest()["factors"].items()
        if (given := entry.get("option"))
    }


def baseline(lab: Lab) -> list[Run]:
    """The study real's runs with seed 0 of the methods and tasks, each at the learning rate of its
    search."""
    asked, scope = manifest(), grids.scope_of(REAL)
    found = {(variant, run.task): run for variant, run, _ in grids.cells("real", scope)}
    runs = [found[variant, task] for task in asked["tasks"] for variant in asked["methods"]]
    return [grids.at_searched_rate(run, run, lab) for run in runs]


def jobs(
    lab: Lab, seeds: Sequence[int], names: Sequence[str] = (), compute: bool = True
) -> list[tuple[str, Run, Callable[[], Record | None]]]:
    """(factor, run, what does or finds it), all factors with the first seed first.

    Args:
        lab: of the baseline, in profile real.
        names: factors; none: all, and the baseline.
    """
    known, usual = options(), baseline(lab)
    for name in names:
        choose("factor", name, [BASE, *known])
    found = []
    for seed in seeds:
        for name in names or [BASE, *known]:
            option = known.get(name, Option())
            own = lab if name == BASE else FactorLab(lab.bench, name, option, manifest()["tasks"])
            for run in usual:
                if option.tasks and run.task not in option.tasks:
                    continue
                run = option.on(replace(run, seed=seed))
                found.append((name, run, job(own, run, option, compute)))
    return found


def job(lab: Lab, run: Run, option: Option, compute: bool) -> Callable[[], Record | None]:
    """What does or finds a run, and then lets go of its images."""

    def do():
        try:
            if option.measure:
                return insights.test_by_epoch(run, lab, compute=compute)
            return lab.do(run, compute)
        finally:
            lab.leave(run.task)

    return do


def frame(lab: Lab, seeds: Sequence[int], names: Sequence[str] = (), compute: bool = True):
    """A row of each run that there is: the columns of `sweeps.row_of`, and "variant", the factor.

    Args:
        compute: do those without a record.
    """
    found = jobs(lab, seeds, names, compute)
    records = run_all(
        [(f"{name}: {run.label}", do) for name, run, do in found] if compute else [], "factors"
    ) or [do() for _, _, do in found]
    return pd.DataFrame(
        {**row_of(run, record), "variant": name}
        for (name, run, _), record in zip(found, records, strict=True)
        if record is not None
    )


def is_of_factor(about: Mapping) -> bool:
    """Whether a record says that it is a run with a factor changed."""
    return "factor" in about
