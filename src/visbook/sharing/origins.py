"""Where sent values come from: the code of a commit here, and the data and weights that manifests
name."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from visprompt import records
from visprompt.data.catalogue import entry_of
from visprompt.data.tasks import embedded_tasks
from visprompt.errors import BadInput, brief
from visprompt.methods import build_method
from visprompt.methods.parameters import count_parameters
from visprompt.models import embedded
from visprompt.records import Record, carrying, keeping, lists, store
from visprompt.training.loop import data_of

from ..studies.from_record import backbone_of, plain, tasks_of
from ..studies.reference import checkout
from .form import PLACE

PRUNED = {"e2vpt"}  # whose numbers of parameters follow from the run
NAMED = 5  # functions that differ, as a message names them
SAID = """
import json, sys
from visprompt.records import carrying
print(json.dumps({place: carrying.today(place, said) for place, said in json.load(sys.stdin)}))
"""


def code(found: Sequence[Record], given: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Check each list of code, function by function, against the commit of its records.

    Returns:
        A line for each commit.

    Raises:
        BadInput: a commit is not of this repository, a list is not that of its name, or a function
            differs; the message names those that do.
    """
    for name, units in given.items():
        if store.short_hash(units) != name:
            raise BadInput(f"list of code {name} is not what its name says.")
        for place in units:
            if not PLACE.fullmatch(place) or place.startswith(("outside ", "variable:")):
                raise BadInput(f"list of code {name} has {brief(place)}, none of this repository.")
    for record in found:
        complete(record, given[record.code])
    told = []
    for commit in sorted({record.commit for record in found}):
        names = {record.code for record in found if record.commit == commit}
        told.append(of_commit(commit, {name: given[name] for name in names}))
    return told


def complete(record: Record, units: Mapping[str, str]) -> None:
    """Check that a list of code has the loop and the method of its record."""
    module = f"methods.{record.settings['method'].replace('-', '_')}:"
    if not any(place.endswith(":fit") for place in units) or not any(
        place.startswith(module) for place in units
    ):
        raise BadInput(f"record {record.id}: its list of code lacks the loop or its method.")


def of_commit(commit: str, given: Mapping[str, Mapping[str, str]]) -> str:
    """Check lists of code against one commit; see `code`."""
    if not keeping.is_known(commit):
        raise BadInput(f"commit {commit} is none of this repository; fetch it first.")
    pairs = sorted({pair for units in given.values() for pair in units.items()})
    if commit == store.commit():
        said = {place: carrying.today(place, digest) for place, digest in pairs}
    else:
        said = at_commit(commit, pairs)
    others = [place for place, digest in pairs if said[place] != lists.bare(digest)]
    if others:
        more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
        raise BadInput(f"not the code of commit {commit}: {', '.join(others[:NAMED])}{more}.")
    return f"{len(pairs)} functions and constants are those of commit {commit}"


def at_commit(commit: str, pairs: list[tuple[str, str]]) -> dict[str, str | None]:
    """Place -> its hash by the code of a commit, looked up by that code itself."""
    root = checkout(commit)
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "VISPROMPT_ROOT": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", SAID],
        input=json.dumps(pairs),
        capture_output=True,
        text=True,
        env=environment,
        cwd=root,
    )
    if done.returncode:
        raise BadInput(f"the code of commit {commit} cannot be looked up; it may be too old.")
    return json.loads(done.stdout)


def images_named(record: Record) -> tuple:
    """What decides the images of a record."""
    names = ("task", "train_size", "resize", "image_size", "prepared_on")
    return tuple(record.settings.get(name) for name in names)


class Origins:
    """Data and weights as they are here, each loaded once.

    Attributes:
        files: backbone -> file, for weights that are not published under its name.
        data_dir: folder of the tasks that are not embedded.
        unknown: what could not be compared, a line each.
    """

    def __init__(self, files: Mapping[str, str] = {}, data_dir: str | None = None):
        self.files, self.data_dir, self.unknown = files, data_dir, set[str]()
        self.images: dict[tuple, str] = {}
        self.counts: dict[str, dict] = {}
        self.prints: dict[tuple, set[str]] = {}
        self.networks: dict[str, set[str]] = {}
        for record in records.all_records("tune", [store.stores()[1]]):
            self.prints.setdefault(images_named(record), set()).add(record.data)
            self.networks.setdefault(record.settings["backbone"], set()).add(record.weights)

    def here(self, record: Record) -> bool:
        """Whether a run can be done again on this machine."""
        s = record.settings
        tasks = [task for task in (s["task"], s.get("prepared_on")) if task]
        given = self.data_dir is not None or all(task in embedded_tasks() for task in tasks)
        own = s["backbone"] in {*embedded.networks(), *self.files}
        return given and (own or record.weights.startswith("random"))

    def check(self, record: Record) -> None:
        """Check data, weights and numbers of parameters.

        Raises:
            BadInput: one is not what the manifests, or this machine, have.
        """
        try:
            self.check_images(record)
            self.check_network(record)
        except BadInput as error:
            said = str(error)
            raise BadInput(said if record.id in said else f"record {record.id}: {said}") from None

    def check_images(self, record: Record) -> None:
        """Check the images of a record; those of embedded tasks are drawn for it."""
        s, split, name = record.settings, record.about.get("split"), images_named(record)
        if s["task"] in embedded_tasks():
            if name not in self.images:
                tasks = [task and task.fingerprint for task in tasks_of(record, None)]
                self.images[name] = data_of(*tasks)
            if record.data != self.images[name]:
                raise BadInput("its images have another fingerprint.")
            return
        wanted = entry_of(s["task"]).get("lists")
        if wanted and (split is None or split["lists"] != wanted):
            raise BadInput(f"its lists of {s['task']} are not the manifest's.")
        if name not in self.prints:
            self.unknown.add(f"images of {s['task']}: numbers and lists fit, bytes are not known")
        elif record.data not in self.prints[name]:
            raise BadInput(f"its images of {s['task']} have another fingerprint.")

    def check_network(self, record: Record) -> None:
        """Check weights and numbers of parameters; those of embedded networks are loaded for it."""
        s = record.settings
        own = s["backbone"] in embedded.networks()
        random = record.weights.startswith("random")
        if not own and not random:
            if s["backbone"] not in self.networks:
                self.unknown.add(f"weights of {s['backbone']}: no fingerprint is known")
            elif record.weights not in self.networks[s["backbone"]]:
                raise BadInput(f"its weights of {s['backbone']} have another fingerprint.")
        if not own:
            return
        what = [record.weights, s["backbone"], s["method"], s["method_settings"], s["task"]]
        asked = json.dumps([*what, s["normalisation"], s["image_size"], s.get("architecture")])
        if asked not in self.counts:
            backbone = backbone_of(record, self.files)
            if s.get("architecture", {}) != json.loads(json.dumps(backbone.architecture or {})):
                raise BadInput(f"its architecture is not that of {s['backbone']}.")
            classes = len(embedded_tasks()[s["task"]]["classes"])
            model = build_method(s["method"], backbone, classes, **plain(s["method_settings"]))
            self.counts[asked] = count_parameters(model)
        if record.values["parameters"] != self.counts[asked] and s["method"] not in PRUNED:
            raise BadInput(f"it has {self.counts[asked]['total']} parameters to train.")
