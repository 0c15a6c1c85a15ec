"""Whether what a record says can be true: its identity, and its values by themselves and beside the
others."""

import functools
import json
from collections.abc import Iterable
from dataclasses import fields
from datetime import date, timedelta

from visprompt.data.catalogue import entry_of
from visprompt.data.tasks import embedded_tasks
from visprompt.errors import BadInput, brief, choose
from visprompt.methods import METHODS, settings_of
from visprompt.models import embedded
from visprompt.records import Record, key_of, store, test_images
from visprompt.training.recipe import Recipe, recorded_recipe

from ..studies.evidence import FREE
from ..studies.from_record import plain
from ..studies.keepable import Manifests
from ..studies.plan import recipes
from .form import Sent

# of which a record states the versions
PACKAGES = ("python", "torch", "torchvision", "timm", "numpy", "scikit-learn", "visprompt")


manifests = functools.cache(Manifests)


def own(content: dict) -> Record:
    """The record, whose form was checked, if it is what its own names say.

    Raises:
        BadInput: its id or its key belong to other content, or settings are impossible.
    """
    record = Record(**content)
    s = record.settings
    choose("method", s["method"], METHODS)
    known = {f.name for f in fields(Recipe)}
    for name in s["recipe"]:
        choose("field of a recipe", name, known)
    settings = s | {
        "method_settings": settings_of(s["method"], **plain(s["method_settings"])),
        "recipe": Recipe(**s["recipe"]),
    }
    if record.key != key_of(record.kind, settings, record.data, record.weights):
        raise BadInput("its key is not that of its settings, data and weights.")
    if record.id != store.digest(content):
        raise BadInput("its id is not that of its content.")
    return record


def told(record: Record) -> None:
    """Check names, dates and versions.

    Raises:
        BadInput: one is unknown or impossible.
    """
    s, about = record.settings, record.about
    networks = {**embedded.networks(), **embedded.published(), **embedded.from_files()}
    choose("backbone", s["backbone"], networks)
    if why := manifests().other_data(record):
        raise BadInput(why.replace(" (--any-data keeps it)", "") + ".")
    choose("recipe", about["recipe"], {"quick", "real", *recipes().values()})
    if (s["task"] in embedded_tasks()) != (about["images"] == "of this project"):
        raise BadInput(f"its images of {s['task']} are {about['images']!r}.")
    if record.weights.startswith("random") != (about["weights"] == "random"):
        raise BadInput(f"its weights are {about['weights']!r} and {record.weights}.")
    try:
        day = date.fromisoformat(record.date)
    except ValueError:
        day = date.max
    if not date(2026, 1, 1) <= day <= date.today() + timedelta(days=1):
        raise BadInput(f"its date is {brief(record.date)}.")
    if {*record.versions} != {*PACKAGES}:
        raise BadInput(f"its versions are of {brief(sorted(record.versions))}.")


def images_of(record: Record) -> tuple[int | None, int | None]:
    """How many validation and test images the task has; None where no manifest says."""
    task, split = record.settings["task"], record.about.get("split")
    if split:
        return split["counts"][1], split["counts"][2]
    if task in embedded_tasks():
        return tuple(embedded_tasks()[task]["splits"][1:3])
    about = entry_of(task).get("splits", {})
    return about.get("val"), about.get("test")


def values(record: Record) -> None:
    """Check that a run can have given these values.

    Raises:
        BadInput: an accuracy is no whole number of images or not that of its bits, the last epoch
            is not the reported one, epochs are too many or too few, or a time is impossible.
    """
    v, epochs = record.values, record.settings["recipe"]["epochs"]
    val, test = images_of(record)
    right = v["right"]["images"]
    if test is not None and right != test:
        raise BadInput(f"it has bits of {right} test images; {record.settings['task']} has {test}.")
    bits = test_images.unpacked(v)
    if test_images.packed(bits) != v["right"]:
        raise BadInput("its bits of test images have more after the last.")
    for name, percent in [("val", v["val"]), *(("val_by_epoch", one) for one in v["val_by_epoch"])]:
        if not whole(percent, val):
            raise BadInput(f"{name} is {percent}, no whole number of {val} images.")
    if not v["val_by_epoch"] or v["val"] != v["val_by_epoch"][-1]:
        raise BadInput("the validation accuracy is not that of the last epoch.")
    done = len(v["loss"])
    # a method that prunes is trained twice
    times = 2 if record.settings["method"] == "e2vpt" else 1
    if done != len(v["val_by_epoch"]) or done not in (epochs, times * epochs):
        raise BadInput(f"it has curves of {done} and {len(v['val_by_epoch'])} of {epochs} epochs.")
    counts = v["parameters"]
    if counts["method"] + counts["head"] != counts["total"]:
        raise BadInput("its numbers of parameters do not add up.")
    if not 0 < v["fit_seconds"] <= record.seconds or record.peak_memory_mb <= 0:
        raise BadInput("its time or its memory is impossible.")


def whole(percent: float, images: int | None) -> bool:
    """Whether an accuracy is a whole number of images."""
    if not 0 <= percent <= 100:
        return False
    return images is None or round(100 * round(percent * images / 100) / images, 4) == percent


class Curves:
    """Curves and bits that are known, to tell copies."""

    def __init__(self, records: Iterable[Record]):
        self.losses: dict[tuple, set[str]] = {}
        self.bits: dict[str, Record] = {}
        self.known: dict[str, Record] = {}
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Know one more record."""
        self.known[record.id] = record
        for place in enumerate(record.values["loss"]):
            self.losses.setdefault(place, set()).add(record.id)
        if test_images.NAME in record.values:
            self.bits.setdefault(json.dumps(record.values["right"]), record)

    def check(self, record: Record) -> Record | None:
        """A known record with equal values that need be no copy; nobody can see whether it is one.

        Raises:
            BadInput: the record is a copy of one that is known.
        """
        shared: dict[str, int] = {}
        for place in enumerate(record.values["loss"]):
            for id in self.losses.get(place, ()):
                shared[id] = shared.get(id, 0) + 1
        least = max(2, len(record.values["loss"]) // 2)
        alike = [self.known[id] for id, count in shared.items() if count >= least]
        same = self.bits.get(json.dumps(record.values.get("right")))
        if same is not None and 0 < same.values["test"] < 100:
            alike.append(same)
        for other in alike:
            if name_of(other) != name_of(record):
                raise BadInput(f"its values are those of record {other.id}, {run_of(other)}.")
            if taken(other, record):
                raise BadInput(f"record {other.id} is here already.")
        equal = [other for other in alike if other.values["loss"] == record.values["loss"]]
        return equal[0] if equal else None


def name_of(record: Record) -> dict:
    """What two runs with equal values have alike: all but what may change nothing, such as an
    option of a method that has no effect here."""
    s, recipe = record.settings, recorded_recipe(record.settings)
    names = ("method", "task", "backbone", "train_size", "seed", "image_size")
    return {name: s[name] for name in names} | {
        name: value for name, value in recipe.items() if name not in FREE
    }


def taken(one: Record, other: Record) -> bool:
    """Whether two records with equal values are of one training. Trainings of one run on two
    machines may take equal times, since short ones are timed to the millisecond."""
    if one.values["fit_seconds"] != other.values["fit_seconds"]:
        return False
    a, b = ((r.hardware, r.seconds, r.peak_memory_mb) for r in (one, other))
    return one.key != other.key or a == b


def run_of(record: Record) -> str:
    """Method, task, network and seed of a record."""
    s = record.settings
    return f"{s['method']} on {s['task']}, {s['backbone']}, seed {s['seed']}"


def checked(content: dict, sent: Sent) -> Record:
    """A record of a submission, if nothing that it says is impossible.

    Raises:
        BadInput: something is; the message names the record.
    """
    try:
        record = own(content)
        told(record)
        values(record)
    except (BadInput, ValueError) as error:
        raise BadInput(f"record {sent.id}: {error}") from None
    return record
