"""A lab: loads each backbone and task once, and does the runs of one recipe, or finds them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

from visprompt import paths
from visprompt.data import resizing
from visprompt.data.tasks import Task, embedded_tasks, group_of, load_task
from visprompt.errors import BadInput, choose
from visprompt.manifests import load_yaml
from visprompt.models.reachable import backbone_once
from visprompt.records import Record, forget_failure, is_current, record_failure, recorded, store
from visprompt.training.activations import SHARED
from visprompt.training.protocol import Protocol, protocol, tries

from .case import Case, Facts, Run, rate_name
from .stand_ins import narrow_backbone
from .weights import named_files


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

    @property
    def fields(self) -> dict:
        """Fields of the recipe in place of its own: `changes`, and bf16 for the paper profile on a
        GPU, where float32 takes eight times as long."""
        on_card = self.profile == "paper" and self.device.startswith("cuda")
        return ({"precision": "bf16"} if on_card else {}) | self.changes


class Lab:
    """Does and finds runs. Each backbone and task is loaded once; finding a run needs no images of
    an embedded task, and no model."""

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
        """A frozen backbone by name, with random weights where `scratch`.

        What could not be loaded once is not tried again.

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
        """What a look-up must know of a task. Of an embedded one it is kept as a record, so that no
        image need be drawn."""
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
        for loaded in (self.tasks, self.prepared):
            for key in [key for key in loaded if key[0] == name]:
                SHARED.leave(loaded.pop(key).fingerprint)

    def special(self, task: str) -> dict:
        """What the recipe has different for fine-grained tasks; `stored` knows the other groups
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

    @cached_property
    def prepared(self) -> dict[tuple, Task]:
        """Tasks as the recipe has them, where that is not how they are stored; see `Case.task`."""
        return {}

    @cached_property
    def described(self) -> dict[tuple, Facts]:
        """Facts of tasks that are not drawn, or joined; they outlive the images."""
        return {}

    def stored(self, name: str, image_size: int, train_size: int | None, group: str) -> Task:
        """A task as it is stored, with pictures resized as the recipe says for its group."""
        key = name, image_size, train_size
        if key not in self.tasks and name not in embedded_tasks():
            self.tasks[key] = resizing.load_resized(
                name,
                data_dir=self.bench.data_dir,
                train_size=train_size,
                image_size=image_size,
                resize=self.protocol.resize(group),
            )
        return self.task(*key)

    def resolve(self, run: Run) -> Case:
        """The case of a run: all that decides it, each part loaded when it is first read."""
        return Case(run, self)

    def prepare(self, run: Run) -> dict:
        """What `tune` and `fit` take for a run; see `Case.ready`."""
        return self.resolve(run).ready()

    def trials(self, cell: Run) -> list[Run]:
        """The runs that a search tries for a cell, as many for every method, the preferred of
        equals first; the run alone where the recipe states the rate for its task."""
        field, case = rate_name(cell.method), self.resolve(cell)
        if case.stated:
            return [replace(cell, trial=True)]
        found = tries(self.protocol.search(self.bench.search), case.recipe, field)
        # the recipe's own rate alone
        found = found[:1] if self.bench.profile == "rehearsal" else found
        more = [(change.pop(field), change) for change in found]
        return [
            replace(cell, rate=rate, changes=cell.changes | change, trial=True)
            for rate, change in more
        ]

    def do(self, run: Run, compute: bool = True) -> Record | None:
        """The record of a run, from disk or, with `compute`, by doing it; a failure leaves a record
        too.

        Without `compute` the code may have been another one, the data and the weights not.
        """
        case, named = self.resolve(run), {"run": asdict(run), "bench": asdict(self.bench)}
        # whatever machine, folder or file it failed with
        for name in ("device", "data_dir", "weights"):
            del named["bench"][name]
        try:
            found = case.find()
            if not compute:
                return found
            if found is not None and is_current(found):
                forget_failure(case.kind, named)
                # the library alone made it, which knows of no study
                return found if found.about else store.completed(found, case.about)
            ready = case.ready()
        except BadInput as error:
            if compute:
                record_failure(case.kind, named, error)
            raise
        done = case.fit(ready)
        forget_failure(case.kind, named)
        return done
