"""What a named recipe states beyond one fit: images, checkpoints, searches, settings per task."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

from .. import paths
from ..data.joining import JOINED
from ..errors import choose
from ..manifests import load_yaml
from ..manifests.schema import COUNT, Text
from .recipe import Recipe

# what `data.tasks.group_of` says of a task
GROUPS = ("natural", "specialized", "structured", "fine", "other")
PICTURES = ("resize", "trained_on")  # fields of a group that are none of `Recipe`
# of a recipe, beside its groups
PARTS = ("statistics", "pixels", "checkpoints", "searches", "per_task", "sources", "lacking")
FACTORS = (0.2, 1.0, 5.0)  # of the recipe's rate: the search "ours", which every recipe has


@dataclass(frozen=True)
class Protocol:
    """A recipe of `recipes.yaml` without its fields of `Recipe`.

    Attributes:
        groups: group of a task -> fields of `Recipe` that differ there, `resize`, and `trained_on`
            of the final runs.
        statistics: the normalisation of pixels, see `models.loading`.
        pixels: side of an image, to which a ViT's positions are interpolated; None: the
            checkpoint's own.
        checkpoints: part of `studies.yaml` -> backbone.
        searches: name -> field -> values; see `tries`.
        per_task: method -> task -> settings that stand for "deep" and "shallow", and under `recipe`
            fields of `Recipe`; or method -> part of `checkpoints` -> task -> these.
        sources: field -> where the paper or its code states it.
        lacking: what the paper or its released code does and this project does not -> why.
    """

    name: str
    groups: dict[str, dict] = field(default_factory=dict)
    statistics: str = "checkpoint"
    pixels: Annotated[int | None, COUNT] = None
    checkpoints: dict[str, Text] = field(default_factory=dict)
    searches: dict[str, dict] = field(default_factory=dict)
    per_task: dict[str, dict] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    lacking: dict[str, Text] = field(default_factory=dict)

    def of_group(self, group: str) -> dict:
        """The fields of `Recipe` that differ for a group of tasks."""
        return {
            name: value
            for name, value in self.groups.get(group, {}).items()
            if name not in PICTURES
        }

    def resize(self, group: str) -> str:
        """The resize rule for images of a group."""
        return self.groups.get(group, {}).get("resize", "direct")

    def joins(self, group: str) -> bool:
        """Whether final runs train on train and val together."""
        return self.groups.get(group, {}).get("trained_on") == JOINED

    def of_task(self, method: str, task: str, backbone: str) -> tuple[dict, dict]:
        """What a task has of its own on a backbone: a method's settings, and `Recipe`'s fields."""
        tasks = self.per_task.get(method, {})
        part = next((part for part, name in self.checkpoints.items() if name == backbone), None)
        settings = dict(tasks.get(part, tasks).get(task, {}))
        return settings, settings.pop("recipe", {})

    def tasks_of(self, method: str) -> dict[str, dict]:
        """Part of `checkpoints`, or "" for any -> task -> what it has of its own for a method."""
        tasks = self.per_task.get(method, {})
        return tasks if {*tasks} <= {*self.checkpoints} else {"": tasks}

    @cached_property
    def budget(self) -> dict[str, int]:
        """Search -> number of tries per cell, whatever the method."""
        return {
            name: math.prod(len(values) for values in grid.values())
            for name, grid in self.searches.items()
        }

    def search(self, name: str) -> dict:
        """A search of the recipe: field -> values.

        Raises:
            BadInput: the recipe has none of that name.
        """
        return self.searches[choose(f"search of recipe {self.name}", name, self.searches)]


def protocol(name: str) -> Protocol:
    """The protocol of a recipe.

    Raises:
        BadInput: unknown recipe.
    """
    recipes = load_yaml(paths.MANIFESTS / "recipes.yaml")
    entry = recipes[choose("recipe", name, recipes)]
    groups = {group: entry[group] for group in GROUPS if group in entry}
    parts = {part: entry[part] for part in PARTS if part in entry}
    parts["searches"] = {"ours": {"factors": list(FACTORS)}, **parts.get("searches", {})}
    return Protocol(name, groups, **parts)


def tries(grid: Mapping[str, list], recipe: Recipe, rate_field: str) -> list[dict]:
    """The changes of a recipe that a search tries; in a tie the first is chosen.

    Factors multiply the recipe's rate, nearest to it first; what a search tries "outward" of them
    depends on these (`visbook.studies.sweeps`). Rates as printed refer to 256 images
    per step if the grid says so ("of_batch": 256), smallest first.

    Args:
        rate_field: the method's own rate: "learning_rate", or "head_rate" of a linear probe.
    """
    grid = {name: values for name, values in grid.items() if name != "outward"}
    times = recipe.batch_size / grid.pop("of_batch")[0] if "of_batch" in grid else 1.0
    if "factors" in grid:
        # a head without a rate has the method's
        base = getattr(recipe, rate_field) or recipe.learning_rate
        rates = [
            base * factor
            for factor in sorted(grid.pop("factors"), key=lambda factor: abs(math.log(factor)))
        ]
    else:
        rates = [rate * times for rate in sorted(grid.pop("learning_rate"))]
    return [
        {rate_field: rate, **dict(zip(grid, values))}
        for rate, *values in itertools.product(rates, *grid.values())
    ]
