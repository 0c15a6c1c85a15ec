"""A run, and the lab that does it: one recipe's backbones, tasks and settings, loaded once."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path

from visprompt import paths
from visprompt.data.catalogue import entry_of, used_whole
from visprompt.data.joining import JOINED, first, joined
from visprompt.data.layouts import digest_of_lists, task_folder
from visprompt.data.originals import WHOLE_CROPS, with_originals
from visprompt.data.tasks import embedded_tasks, group_of, load_task
from visprompt.errors import BadInput, choose
from visprompt.manifests import load_yaml
from visprompt.methods import build_method
from visprompt.methods import settings_of as method_settings
from visprompt.models.backbones import is_known, known_backbones
from visprompt.models.reachable import backbone_once
from visprompt.records import Record, forget_failure, is_current, record_failure, recorded, store
from visprompt.training.loop import SHARED, data_of, settings_of, tune
from visprompt.training.protocol import Protocol, protocol, tries
from visprompt.training.recipe import Recipe, load_recipe, settled

from .ap_rates import ap_rate
from .stand_ins import narrow_backbone


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
class LabSettings:
    """Where runs are done: everything that is the same for all runs of a sweep."""

    recipe: str = "quick"  # name in data_manifests/recipes.yaml
    # or a file, or "NAME=FILE" for each backbone; None: random
    weights: str | Sequence[str] | None = "pretrained"
    data_dir: str | None = None  # folder of the tasks that are not embedded
    device: str = "cpu"
    # fields of the recipe that a notebook parameter overrides
    changes: dict = field(default_factory=dict)
    profile: str = "quick"  # told in the records
    search: str = "ours"  # which of the recipe's searches chooses a rate


@dataclass(frozen=True)
class Facts:
    """What a look-up must know of a task, without its images."""

    classes: int
    fingerprint: str
    # "task", "train_size", "resize" and "image_size", as `training.loop.settings_of` takes them
    settings: dict


def named_files(weights: str | Sequence[str] | None) -> dict[str, str] | None:
    """Backbone -> file, where weights name backbones; None where they do not."""
    if isinstance(weights, str) and weights.startswith("["):  # a list as papermill -p hands it over
        weights = [word.strip() for word in weights.strip("[] ").split(",")]
    if isinstance(weights, str) and "=" in weights and not Path(weights).exists():
        weights = [weights]
    return None if weights is None or isinstance(weights, str) else files_of(weights)


def files_of(words: Sequence[str]) -> dict[str, str]:
    """Backbone -> file, of words NAME=FILE.

    Raises:
        BadInput: a word is not written so, names a backbone again or one that nobody knows, or its
            file is not there.
    """
    for word in words:
        if not all(word.partition("=")):
            raise BadInput(
                f"weights are given as NAME=FILE, the backbone's name first, not {word!r}."
            )
    found = dict(word.split("=", 1) for word in words)
    if len(found) < len(words):
        raise BadInput(f"weights name a backbone twice: {' '.join(words)}. Give one file for each.")
    for name, file in found.items():
        if not is_known(name):
            choose("backbone in weights", name, known_backbones())
        if not Path(file).is_file():
            raise BadInput(f"weights {name}={file}: there is no such file.")
    return found


def rate_name(method: str) -> str:
    """The field of the recipe that is a method's own learning rate."""
    return "head_rate" if method == "linear-probe" else "learning_rate"


class Lab:
    """Does runs; every backbone and every task is loaded once, and a look-up draws no images and
    builds no model."""

    def __init__(self, bench: LabSettings):
        self.bench, self.backbones, self.prints, self.tasks, self.known = bench, {}, {}, {}, {}
        self.files = named_files(bench.weights)
        recipes = load_yaml(paths.MANIFESTS / "recipes.yaml")
        self.fine = recipes[choose("recipe", bench.recipe, recipes)].get("fine", {})

    @cached_property
    def protocol(self) -> Protocol:
        """What the recipe says beside its fields."""
        return protocol(self.bench.recipe)

    def weights_of(self, name: str) -> str | None:
        """What `load_backbone` takes as weights of a backbone.

        Raises:
            BadInput: one file was given for two backbones.
        """
        weights = self.bench.weights
        if self.files is not None:
            return self.files.get(name, "pretrained")
        if weights is None or weights == "pretrained":
            return weights
        others = [other for other, scratch in self.backbones if other != name and not scratch]
        if others:
            raise BadInput(
                f"weights {weights} were given for {others[0]} and would now serve {name} "
                f"too; name them for each: "
                f"{others[0]}=FILE {name}=FILE."
            )
        return weights

    def backbone(self, name: str, scratch: bool = False):
        """A frozen backbone by name; `scratch` gives it random weights. What was refused once is
        not asked for again.

        Raises:
            BadInput: as `load_backbone`.
        """
        if (name, scratch) in self.refused:
            raise BadInput(self.refused[name, scratch])
        if (name, scratch) not in self.backbones:
            weights = None if scratch else self.weights_of(name)
            load = narrow_backbone if self.bench.profile == "rehearsal" else backbone_once
            more = {"image_size": self.protocol.pixels} if self.protocol.pixels else {}
            try:
                found = load(
                    name,
                    weights,
                    device=self.bench.device,
                    statistics=self.protocol.statistics,
                    **more,
                )
            except BadInput as error:
                self.refused[name, scratch] = str(error)
                raise
            self.backbones[name, scratch] = found
            self.prints[name, scratch] = self.backbones[name, scratch].fingerprint
        return self.backbones[name, scratch]

    @cached_property
    def refused(self) -> dict[tuple[str, bool], str]:
        """(backbone, scratch) -> why it could not be loaded."""
        return {}

    def lacking(self, run: Run) -> str:
        """What of a run's data and weights is not at hand; "" where all is. No picture is read, and
        no run is done."""
        for task in filter(None, (run.task, run.prepared_on)):
            if self.bench.data_dir is None and task not in embedded_tasks():
                return "no data folder is given"
            try:
                if task not in embedded_tasks():
                    task_folder(self.bench.data_dir, task, embedded_tasks())
            except BadInput as error:
                there = Path(self.bench.data_dir).is_dir()
                return f"{task} is not in the data folder" if there else str(error)
        try:
            self.backbone(run.backbone, run.scratch)
        except BadInput as error:
            return str(error)
        return ""

    def task(self, name: str, image_size: int, train_size: int | None = None):
        """A task by name, at a backbone's image size."""
        key = name, image_size, train_size
        if key not in self.tasks:
            self.tasks[key] = load_task(
                name,
                data_dir=self.bench.data_dir,
                train_size=train_size,
                image_size=image_size,
                resize=self.special(name).get("resize", "direct"),
            )
        return self.tasks[key]

    def facts(self, name: str, image_size: int, train_size: int | None = None) -> Facts:
        """A task's facts; those of an embedded one have a record, so that its images need not be
        drawn for them."""
        key = name, image_size, train_size
        if key not in self.known:

            def compute():
                task = self.task(*key)
                settings = {
                    "task": name,
                    "train_size": len(task.train[1]),
                    "resize": task.resize,
                    "image_size": task.size,
                }
                return {
                    "classes": task.classes,
                    "fingerprint": task.fingerprint,
                    "settings": settings,
                }

            if name in embedded_tasks():
                about = embedded_tasks()[name]
                asked = {
                    "task": name,
                    "train_size": train_size,
                    "image_size": image_size,
                    "manifest": about,
                }
                self.known[key] = Facts(**recorded("data", asked, compute).values)
            else:
                self.known[key] = Facts(**compute())
        return self.known[key]

    def leave(self, name: str) -> None:
        """Let go of the images of a task, and of the activations made of them; drawn images are few
        and stay."""
        if name in embedded_tasks():
            return
        for key in [key for key in self.tasks if key[0] == name]:
            SHARED.leave(self.tasks.pop(key).fingerprint)

    def special(self, task: str) -> dict:
        """What the recipe has different for fine-grained tasks; `images` knows the other groups
        too."""
        return self.fine if group_of(task) == "fine" else {}

    @cached_property
    def groups(self) -> dict[str, str]:
        """Task -> its group; each look-up asks."""
        return {}

    def group(self, task: str) -> str:
        """The group of a task, see `group_of`."""
        if task not in self.groups:
            self.groups[task] = group_of(task)
        return self.groups[task]

    def joins(self, run: Run) -> bool:
        """Whether a run is a final one that the recipe trains on train and val together.

        Of a data set that is used whole: where both are the authors' train, of which a number of
        images is taken then.
        """
        if run.trial or not self.protocol.joins(self.group(run.task)):
            return False
        if not used_whole(run.task):
            return run.train_size is None
        task = self.task(run.task, self.backbone(run.backbone, run.scratch).image_size)
        return len(task.train[1]) + len(task.val[1]) == entry_of(run.task)["splits"]["train"]

    def images(self, run: Run):
        """The task of a run, prepared as its recipe says; train and val are joined where
        `joins`."""
        # a share of train and val, so both are loaded whole
        cut = run.train_size if used_whole(run.task) else None
        key = (
            run.task,
            self.backbone(run.backbone, run.scratch).image_size,
            None if cut else run.train_size,
        )
        if key not in self.tasks and run.task not in embedded_tasks():
            name, size, train_size = key
            more = {"image_size": size, "resize": self.protocol.resize(self.group(name))}
            self.tasks[key] = load_task(
                name, data_dir=self.bench.data_dir, train_size=train_size, **more
            )
        how, both = self.recipe(run).augmentation, self.joins(run)
        if not both and not cut and how not in WHOLE_CROPS:
            return self.task(*key)
        if (*key, both, how, cut) not in self.tasks:
            task = joined(self.task(*key)) if both else self.task(*key)
            # a trial has no val to add
            size = min(cut, len(task.train[1])) if cut and run.trial else cut or run.train_size
            task = first(task, size) if cut else task
            if how in WHOLE_CROPS:
                task = with_originals(
                    task, how, self.bench.data_dir, (0, 1) if both else (0,), size
                )
            self.tasks[*key, both, how, cut] = task
        return self.tasks[*key, both, how, cut]

    def facts_of(self, run: Run) -> Facts:
        """The facts of the task of a run."""
        size = self.backbone(run.backbone, run.scratch).image_size
        key = run.task, size, run.train_size, self.joins(run), run.trial and used_whole(run.task)
        if run.task in embedded_tasks() and not self.joins(run):
            return self.facts(*key[:3])
        if key not in self.known:
            task = self.images(run)
            settings = {
                "task": run.task,
                "train_size": len(task.train[1]),
                "resize": task.resize,
                "image_size": task.size,
            }
            self.known[key] = Facts(task.classes, task.fingerprint, settings)
        return self.known[key]

    def chosen(self, run: Run) -> dict:
        """The settings of a run's method, with the task's own in the place of the profile's usual
        ones."""
        if not isinstance(run.settings.get("prompt_tokens"), Usual):
            return run.settings
        return run.settings | self.protocol.per_task.get(run.method, {}).get(run.task, {})

    def recipe(self, run: Run) -> Recipe:
        """The recipe of a run. The rate of a linear probe is its head's, since it trains nothing
        else; AP has one a block."""
        backbone = self.backbone(run.backbone, run.scratch)
        family, rate = backbone.family, run.rate
        changes = self.protocol.of_group(self.group(run.task)) | self.bench.changes | run.changes
        if rate is None and run.method == "ap":
            rate = ap_rate(self.bench.recipe, run.settings, family != "resnet", backbone.depth)
        if rate is not None:
            changes[rate_name(run.method)] = rate
        return settled(
            load_recipe(self.bench.recipe, run.method, family != "resnet", **changes),
            run.method,
            family,
        )

    def prepare(self, run: Run) -> dict:
        """What `tune` and `fit` want for a run: model, task, recipe, seed and prepared_on.

        Raises:
            BadInput: a name or a file is wrong.
        """
        backbone = self.backbone(run.backbone, run.scratch)
        task, other = self.images(run), None
        if run.prepared_on is not None:
            other = self.images(replace(run, task=run.prepared_on, train_size=None, trial=True))
        model = build_method(run.method, backbone, task.classes, **self.chosen(run))
        return {
            "model": model,
            "task": task,
            "recipe": self.recipe(run),
            "seed": run.seed,
            "prepared_on": other,
        }

    def trials(self, cell: Run) -> list[Run]:
        """What a search tries for a cell, which every method has as many of; of equals the first is
        taken."""
        field = rate_name(cell.method)
        found = tries(self.protocol.search(self.bench.search), self.recipe(cell), field)
        # the recipe's own rate alone
        found = found[:1] if self.bench.profile == "rehearsal" else found
        more = [(change.pop(field), change) for change in found]
        return [
            replace(cell, rate=rate, changes=cell.changes | change, trial=True)
            for rate, change in more
        ]

    def about(self, run: Run) -> dict:
        """What a record of a run says beside what decided it."""
        drawn, sources = run.task in embedded_tasks(), self.protocol.sources
        given = (
            "random" if run.scratch or self.bench.weights is None else self.weights_of(run.backbone)
        )
        return (
            {
                "profile": self.bench.profile,
                "recipe": self.bench.recipe,
                "data": "embedded"
                if drawn
                else Path(self.bench.data_dir).resolve().name,  # no path of a machine
                "weights": {"random": "random", "pretrained": "published"}.get(
                    given, "from a file"
                ),
                "images": "of this project" if drawn else "from a folder",
            }
            | ({"trained_on": JOINED} if self.joins(run) else {})
            | ({} if drawn else {"split": self.split(run)})
            | ({"sources": sources} if sources else {})
        )

    def split(self, run: Run) -> dict:
        """How many images the three splits of a folder have, and which lists name them; see
        `evidence`."""
        task = self.task(run.task, self.backbone(run.backbone, run.scratch).image_size)
        root = task_folder(self.bench.data_dir, run.task, embedded_tasks()).root
        return {
            "counts": [len(part[1]) for part in (task.train, task.val, task.test)],
            "lists": digest_of_lists(root),
        }

    def find(self, run: Run) -> Record | None:
        """The record of a run, which other code may have made; None where there is none."""
        backbone = self.backbone(run.backbone, run.scratch)
        facts, other = self.facts_of(run), None
        if run.prepared_on is not None:
            other = self.facts_of(
                replace(run, task=run.prepared_on, train_size=None, trial=True)
            ).fingerprint
        settings = settings_of(
            run.method,
            method_settings(run.method, **self.chosen(run)),
            backbone,
            facts.settings,
            self.recipe(run),
            run.seed,
            run.prepared_on,
        )
        return recorded(
            "tune",
            settings,
            dict,
            data=data_of(facts.fingerprint, other),
            weights=self.prints[run.backbone, run.scratch],
            run=False,
        )

    def do(self, run: Run, compute: bool = True) -> Record | None:
        """The record of a run, from disk or, with `compute`, by doing it; a failure leaves a record
        too.

        Without `compute` the code may have been another one, the data and the weights not.
        """
        bench = {
            name: value
            for name, value in asdict(self.bench).items()
            if name not in ("device", "data_dir", "weights")
        }
        # whatever machine, folder or file it failed with
        named = {"run": asdict(run), "bench": bench}
        try:
            found = self.find(run)
            if not compute or (found is not None and is_current(found)):
                if compute:
                    forget_failure("tune", named)
                if compute and not found.about:  # `vp.tune` made it, which knows of no study
                    found = store.completed(found, self.about(run))
                return found
            ready = self.prepare(run)
        except BadInput as error:
            if compute:
                record_failure("tune", named, error)
            raise
        done = tune(**ready, about=self.about(run))
        forget_failure("tune", named)
        return done
