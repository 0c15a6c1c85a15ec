"""A run, and the case that it is: the network, images, recipe and settings that decide it, each
asked for once."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from visprompt.data.catalogue import entry_of, used_whole
from visprompt.data.joining import JOINED, first, joined
from visprompt.data.layouts import digest_of_lists, task_folder
from visprompt.data.originals import WHOLE_CROPS, with_originals
from visprompt.data.tasks import Task, embedded_tasks
from visprompt.errors import BadInput
from visprompt.methods import build_method
from visprompt.methods import settings_of as method_settings
from visprompt.models import pooling
from visprompt.records import Record, recorded
from visprompt.training.loop import data_of, settings_of, tune
from visprompt.training.recipe import Recipe, heeded, load_recipe, settled

from .ap_rates import ap_rate

if TYPE_CHECKING:
    from .lab import Lab


@dataclass(frozen=True)
class Run:
    """One method on one task: what a cell of a results table is made of, once a seed."""

    backbone: str
    task: str
    method: str
    seed: int = 0
    train_size: int | None = None  # None: the whole training split
    settings: dict = field(default_factory=dict)  # of the method
    # learning rate in place of the recipe's, such as one chosen for this block
    rate: float | None = None
    scratch: bool = False  # random weights in place of the pretrained ones
    # another task, whose images the method sees before the first step
    prepared_on: str | None = None
    # more of the recipe, such as a decay that a search chose
    changes: dict = field(default_factory=dict)
    # one of a search: trained on train alone, whatever the recipe's final runs are trained on
    trial: bool = False

    @property
    def label(self) -> str:
        """What a reader of a log needs to know of it."""
        changes = "".join(f", {key} {value}" for key, value in self.settings.items())
        return f"{self.method} on {self.task}, {self.backbone}{changes}, seed {self.seed}"


class Usual(int):
    """A profile's number of prompt tokens, in whose place a recipe may have the task's own."""


@dataclass(frozen=True)
class Facts:
    """What a look-up must know of a task, without its images."""

    classes: int
    fingerprint: str
    # "task", "train_size", "resize" and "image_size", as `training.loop.settings_of` takes them
    settings: dict


def rate_name(method: str) -> str:
    """The field of the recipe that is a method's own learning rate."""
    return "head_rate" if method == "linear-probe" else "learning_rate"


@dataclass(frozen=True, eq=False)
class Case:
    """A run and all that decides it, by which it is found, fitted and described.

    `Lab.resolve` makes it. Each part is asked for when it is first read, and once.

    Attributes:
        run: what was asked for.
        lab: loads backbones and tasks, which its cases share.
    """

    run: Run
    lab: "Lab"
    kind: ClassVar[str] = "tune"  # of the record

    @cached_property
    def backbone(self):
        """The frozen backbone; `BadInput` where it cannot be loaded."""
        return self.lab.backbone(self.run.backbone, self.run.scratch)

    @cached_property
    def group(self) -> str:
        """The group of the task, by which a recipe differs."""
        return self.lab.group(self.run.task)

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe, with what differs for the group of the task and for this run.

        The rate of a linear probe is its head's, since it trains nothing else; AP has one per
        block.
        """
        run, bench, rate = self.run, self.lab.bench, self.run.rate
        family, depth = self.backbone.family, self.backbone.depth
        is_vit = family != "resnet"
        own = self.lab.protocol.of_group(self.group) | self.of_task[1]
        changes = own | bench.fields | run.changes
        if rate is None and run.method == "ap":
            rate = ap_rate(bench.recipe, run.settings, is_vit, depth)
        if rate is not None:
            changes[rate_name(run.method)] = rate
        recipe = load_recipe(bench.recipe, run.method, is_vit, **changes)
        return heeded(settled(recipe, run.method, family), self.averages)

    @property
    def averages(self) -> bool:
        """Whether the backbone averages its tokens; see `pooling.averages`."""
        return pooling.averages(self.backbone)

    @cached_property
    def settings(self) -> dict:
        """The settings of the method: the profile's usual ones, replaced by the recipe's own for
        this task, and both by those that the run sets itself."""
        given = self.run.settings
        asked = {name: value for name, value in given.items() if not isinstance(value, Usual)}
        return given | self.of_task[0] | asked

    @cached_property
    def of_task(self) -> tuple[dict, dict]:
        """What the recipe says of this task alone: settings, and fields of the recipe.

        A run that asks for no usual number of prompts has none of it.
        """
        run = self.run
        usual = any(isinstance(value, Usual) for value in run.settings.values())
        return self.lab.protocol.of_task(run.method, run.task, run.backbone) if usual else ({}, {})

    @property
    def stated(self) -> bool:
        """Whether the recipe states the rate for this task, so that none is searched."""
        return rate_name(self.run.method) in self.of_task[1]

    @cached_property
    def whole(self) -> bool:
        """Whether a number of images is taken from train and val together, which are loaded whole:
        of a data set that a paper uses whole."""
        return used_whole(self.run.task)

    @cached_property
    def joined(self) -> bool:
        """Whether this is a final run, which the recipe trains on train and val together.

        Of a data set that is used whole: where both are the authors' train.
        """
        if self.run.trial or not self.lab.protocol.joins(self.group):
            return False
        return self.val_of_train if self.whole else self.run.train_size is None

    @cached_property
    def val_of_train(self) -> bool:
        """Whether val was taken out of the authors' train."""
        task = self.stored
        given = entry_of(self.run.task)["splits"]["train"]
        return len(task.train[1]) + len(task.val[1]) == given

    @cached_property
    def stored(self) -> Task:
        """The task as it is stored, with as many training images as are asked for."""
        return self.load(None if self.whole else self.run.train_size)

    def load(self, train_size: int | None) -> Task:
        """The task as it is stored, at the backbone's size."""
        return self.lab.stored(self.run.task, self.backbone.image_size, train_size, self.group)

    @cached_property
    def task(self) -> Task:
        """The task as the recipe prepares it: train and val joined, originals to crop."""
        run, how, cut = self.run, self.recipe.augmentation, self.run.train_size
        if not (self.joined or self.whole and cut or how in WHOLE_CROPS):
            return self.stored
        key = *self.key, how
        if key in self.lab.prepared:
            return self.lab.prepared[key]
        task = joined(self.stored) if self.joined else self.stored
        if self.whole and cut:
            # a trial has no val to add
            cut = min(cut, len(task.train[1])) if run.trial else cut
            task = first(task, cut)
        if how in WHOLE_CROPS:
            splits = (0, 1) if self.joined else (0,)
            task = with_originals(task, how, self.lab.bench.data_dir, splits, cut)
        self.lab.prepared[key] = task
        return task

    @property
    def key(self) -> tuple:
        """What tells the images of two cases apart, but for their augmentation."""
        run = self.run
        share_of_train = run.trial and self.whole
        return run.task, self.backbone.image_size, run.train_size, self.joined, share_of_train

    @cached_property
    def facts(self) -> Facts:
        """What a look-up must know of the task; that of a drawn one needs no image."""
        run, known = self.run, self.lab.described
        if run.task in embedded_tasks() and not self.joined:
            return self.lab.facts(run.task, self.backbone.image_size, run.train_size)
        if self.key not in known:
            task = self.task
            settings = {
                "task": run.task,
                "train_size": len(task.train[1]),
                "resize": task.resize,
                "image_size": task.size,
            }
            known[self.key] = Facts(task.classes, task.fingerprint, settings)
        return known[self.key]

    @cached_property
    def prepared_on(self) -> "Case | None":
        """The case of the other task whose images the method sees before the first step."""
        run = self.run
        if run.prepared_on is None:
            return None
        other = replace(run, task=run.prepared_on, prepared_on=None, train_size=None, trial=True)
        return self.lab.resolve(other)

    def find(self) -> Record | None:
        """The record of the run, which other code may have made; None where there is none."""
        run, facts, other = self.run, self.facts, self.prepared_on
        settings = settings_of(
            run.method,
            method_settings(run.method, **self.settings),
            self.backbone,
            facts.settings,
            self.recipe,
            run.seed,
            run.prepared_on,
        )
        return recorded(
            self.kind,
            settings,
            dict,
            data=data_of(facts.fingerprint, other and other.facts.fingerprint),
            weights=self.lab.prints[run.backbone, run.scratch],
            run=False,
        )

    def ready(self) -> dict:
        """What `tune` and `fit` take: model, task, recipe, seed and prepared_on.

        Raises:
            BadInput: a name or a file is wrong.
        """
        backbone, task, other = self.backbone, self.task, self.prepared_on
        model = build_method(self.run.method, backbone, task.classes, **self.settings)
        return {
            "model": model,
            "task": task,
            "recipe": self.recipe,
            "seed": self.run.seed,
            "prepared_on": other and other.task,
        }

    def fit(self, ready: dict) -> Record:
        """Do the run; `ready` is what `ready` gave."""
        return tune(**ready, about=self.about)

    @cached_property
    def lacking(self) -> str:
        """What of the data and weights is not at hand; "" where all is. No image is read, and
        nothing is trained."""
        data_dir = self.lab.bench.data_dir
        for task in filter(None, (self.run.task, self.run.prepared_on)):
            if task in embedded_tasks():
                continue
            if data_dir is None:
                return "no data folder is given"
            try:
                task_folder(data_dir, task, embedded_tasks())
            except BadInput as error:
                there = Path(data_dir).is_dir()
                return f"{task} is not in the data folder" if there else str(error)
        try:
            _ = self.backbone
        except BadInput as error:
            return str(error)
        return ""

    @cached_property
    def about(self) -> dict:
        """What a record of the run says beside what decided it."""
        run, bench, sources = self.run, self.lab.bench, self.lab.protocol.sources
        drawn = run.task in embedded_tasks()
        none = run.scratch or bench.weights is None
        given = "random" if none else self.lab.weights_of(run.backbone)
        found = {
            "profile": bench.profile,
            "recipe": bench.recipe,
            # no path of a machine
            "data": "embedded" if drawn else Path(bench.data_dir).resolve().name,
            "weights": {"random": "random", "pretrained": "published"}.get(given, "from a file"),
            "images": "of this project" if drawn else "from a folder",
        }
        found |= {"trained_on": JOINED} if self.joined else {}
        found |= {} if drawn else {"split": self.split}
        return found | ({"sources": sources} if sources else {})

    @property
    def split(self) -> dict:
        """How many images the three splits of a folder have, and which lists name them; see
        `evidence`."""
        task = self.load(None)
        root = task_folder(self.lab.bench.data_dir, self.run.task, embedded_tasks()).root
        counts = [len(part[1]) for part in (task.train, task.val, task.test)]
        return {"counts": counts, "lists": digest_of_lists(root)}
