"""The study of segmentation.yaml: a lab whose cases have masks; all else is as of any other
study."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import pandas as pd

from visprompt import paths
from visprompt.data.mask_tasks import SegmentationTask, drawn_tasks, load_segmentation
from visprompt.errors import choose
from visprompt.manifests import load_yaml
from visprompt.models.intermediates import resized
from visprompt.records import Record
from visprompt.training.mask_loop import segment
from visprompt.training.protocol import Protocol
from visprompt.training.segmentation_recipe import SegmentationRecipe, load_segmentation_recipe
from visprompt.training.segmenter import build_segmenter

from .case import Case, Run, rate_name
from .grids import MASKS, Scope, check_cells, study
from .lab import Lab, LabSettings


def content() -> dict:
    """The study as written."""
    return load_yaml(paths.MANIFESTS / "segmentation.yaml")


class MaskCase(Case):
    """A run of segmentation and all that decides it."""

    kind: ClassVar[str] = "segment"
    joined: ClassVar[bool] = False

    @cached_property
    def recipe(self) -> SegmentationRecipe:
        """The recipe of the task, with the rate of the run."""
        run, changes = self.run, self.lab.bench.fields | self.run.changes
        if run.rate is not None:
            changes[rate_name(run.method)] = run.rate
        return load_segmentation_recipe(self.lab.profile["tasks"][run.task], run.method, **changes)

    @cached_property
    def backbone(self):
        """The frozen backbone, at the size of the recipe's crops."""
        name, scratch, size = self.run.backbone, self.run.scratch, self.recipe.crop
        if (name, scratch, size) not in self.lab.sizes:
            self.lab.sizes[name, scratch, size] = resized(self.lab.backbone(name, scratch), size)
        return self.lab.sizes[name, scratch, size]

    @cached_property
    def task(self) -> SegmentationTask:
        """The pictures and their masks."""
        return self.lab.masks_of(self.run.task)

    def find(self) -> Record | None:
        """The record of the run, which other code may have made; None where there is none."""
        return segment(**self.ready(), run=False)

    def ready(self) -> dict:
        """What `segment` takes: model, task, recipe and seed."""
        run, task, recipe = self.run, self.task, self.recipe
        model = build_segmenter(
            run.method, self.backbone, task.classes, recipe.decoder, **self.settings
        )
        return {"model": model, "task": task, "recipe": recipe, "seed": run.seed}

    def fit(self, ready: dict) -> Record:
        """Do the run; `ready` is what `ready` gave."""
        return segment(**ready, about=self.about)

    @cached_property
    def about(self) -> dict:
        """What a record of the run says beside what decided it."""
        # no path of a machine
        drawn, data_dir = self.run.task in drawn_tasks(), self.lab.bench.data_dir
        data = "embedded" if drawn else Path(data_dir).resolve().name
        return {"profile": self.lab.bench.profile, "data": data, "evidence": "trend"}


class MaskLab(Lab):
    """A lab for the runs of a profile of segmentation.yaml."""

    def __init__(self, profile: str = "quick", **bench):
        super().__init__(LabSettings(profile=profile, **bench))
        profiles = content()["profiles"]
        self.profile = profiles[choose("profile", profile, profiles)]
        self.masks, self.sizes = {}, {}

    @cached_property
    def protocol(self) -> Protocol:
        """The search for a rate, the same for every method."""
        return Protocol(MASKS, searches={"ours": {"factors": self.profile["factors"]}})

    def masks_of(self, name: str) -> SegmentationTask:
        """A task by name."""
        if name not in self.masks:
            self.masks[name] = load_segmentation(name, self.bench.data_dir)
        return self.masks[name]

    def leave(self, name: str) -> None:
        """Let go of the pictures of a task."""
        self.masks.pop(name, None)

    def resolve(self, run: Run) -> MaskCase:
        return MaskCase(run, self)


def mask_scope(profile: str, tasks: Sequence[str] = (), methods: Sequence[str] = ()) -> Scope:
    """What fills the roles of the study in a profile.

    Args:
        tasks, methods: none but these.

    Raises:
        BadInput: an unknown profile or task, or a method that the study has none of.
    """
    profiles = content()["profiles"]
    about = profiles[choose("profile", profile, profiles)]
    for task in tasks:
        choose("segmentation task", task, about["tasks"])
    found = Scope(
        {"supervised": about["backbone"]},
        {MASKS: [*about["tasks"]]},
        about["prompts"],
        profile,
        tuple(tasks),
        tuple(methods),
    )
    check_cells([MASKS], found)
    return found


def runs(
    lab: MaskLab, scope: Scope, seeds: Sequence[int] = (), compute: bool = True
) -> pd.DataFrame:
    """The runs of the study at the rates that validation chooses, a row for each that has a record.

    Args:
        seeds: none: the profile's.
        compute: do those that have none first.

    Returns:
        The columns of `grids.study`, with "test" and "test_many", single- and multi-scale mIoU,
        and "constant", the best mIoU that one class for every pixel has.

    Raises:
        BadInput: runs that failed, after the last.
    """
    seeds = list(seeds) or lab.profile["seeds"]
    given = {"seeds": seeds, "search": True} if compute else {"kept_seeds": seeds}
    return study(MASKS, scope, lab, **given)
