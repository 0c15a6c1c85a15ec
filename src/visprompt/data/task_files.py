"""Schemas and further checks of the YAML files that `data` reads."""

import re
from collections.abc import Iterable
from pathlib import Path

from ..manifests.schema import COUNT, DIGITS, TEXT, known, listed, mapping, named, one_of
from ..manifests.wording import Fault
from . import drawing, mask_tasks, scenes, targets
from .catalogue import file_name
from .drawing import SIZE

ACCESS = ("open", "registration", "by hand")
BENCHMARKS = ("vtab-1k", "fgvc", "full", "segmentation", "amount", "pasted", "none")
PAPERS = ("ap", "davpt", "shallowvit", "ivpt", "spt")
CHECKSUM = {
    "type": "string",
    "pattern": "^(md5:[0-9a-f]{32}|sha256:[0-9a-f]{64})$",
    "description": "md5: or sha256: and the digits",
}
FILE_NAME = {
    "type": "string",
    "pattern": r"^[A-Za-z0-9_][A-Za-z0-9._+-]{0,199}\Z",
    "description": "a file's plain name: letters, digits and . _ + -, no folder",
}
ADDRESS = {
    "type": "string",
    "pattern": "^https?://",
    "description": "an address that begins with https:// or http://",
}


def datasets_schema() -> dict:
    """Schema of `datasets/*.yaml`: one data set, and the tasks that papers make of it."""
    file = mapping(
        {"url": ADDRESS},
        {
            "name": FILE_NAME,
            "bytes": COUNT,
            "checksum": CHECKSUM,
            "source": TEXT,
            "mirrors": listed(ADDRESS),
        },
    )
    splits = {
        "type": "object",
        "additionalProperties": COUNT,
        "propertyNames": one_of(["train", "val", "test"]),
    }
    task = mapping(
        {
            "benchmark": one_of(BENCHMARKS),
            "group": one_of(["natural", "specialized", "structured", "fine", "other"]),
            "classes": COUNT,
        },
        {
            "splits": splits,
            "source": TEXT,
            "label": TEXT,
            "lists": DIGITS,
        },  # lists: as `layouts.digest_of_lists` gives them
    )
    entry: dict = {name: TEXT for name in ("title", "about", "citation", "licence")}
    entry |= {
        "year": COUNT,
        "home": ADDRESS,
        "access": one_of(ACCESS),
        "tasks": named(task),
        "unverified": listed(TEXT, 0),
    }
    more = {
        "aliases": listed(TEXT),
        "steps": listed(TEXT),
        "torchvision": TEXT,
        "sizes": named(COUNT),
        "layout": TEXT,
    }
    more |= {"masks": one_of(mask_tasks.RAW), "ids": named(COUNT)}
    return mapping(entry, more | {"files": listed(file), "made_of": listed(TEXT)})


def datasets_faults(content: dict, file: Path) -> Iterable[Fault]:
    """Faults of data sets: nothing to fetch, or manual steps that are not described."""
    if content["access"] != "open" and "steps" not in content:
        yield Fault(
            ("access",), f"{content['access']!r} is given; write steps, what a person has to do."
        )
    if content["access"] == "open" and not {"torchvision", "files"} & set(content):
        yield Fault(
            ("access",), "'open' is given; write files, or the name of torchvision's data set."
        )
    seen = set()
    for place, given in enumerate(content.get("files", ())):
        name = given.get("name") or file_name(given["url"])
        if not re.match(FILE_NAME["pattern"], name):
            yield Fault(
                ("files", place, "url"),
                f"{given['url']!r} ends in no file name; write name, {FILE_NAME['description']}.",
            )
        if name in seen:
            yield Fault(("files", place), f"{name!r} is given twice; write another name.")
        seen.add(name)


def preprocessing_schema() -> dict:
    """Schema of `preprocessing.yaml`: each paper's image preparation, and where it is stated."""
    return mapping(
        {}, {name: mapping({}, {paper: TEXT for paper in PAPERS}) for name in BENCHMARKS}
    )


def tasks_schema() -> dict:
    """Schema of `tasks.yaml`."""
    entry = {
        "group": one_of(["natural", "specialized", "structured", "fine"]),
        "nature": TEXT,
        "classes": listed(TEXT, 2, uniqueItems=True),
        "splits": listed(COUNT, 3, 3),
        "seed": {"type": "integer", "minimum": 0},
        "image_size": {"const": SIZE, "description": f"{SIZE}, the size of the drawings"},
        "source": TEXT,
        "licence": TEXT,
        "purpose": TEXT,
    }
    embedded = named(mapping(entry, {"pool": COUNT}))
    masked = named(mapping({name: schema for name, schema in entry.items() if name != "group"}))
    return mapping({"embedded": embedded, "segmentation": masked})


def tasks_faults(content: dict, file: Path) -> Iterable[Fault]:
    """Faults of tasks that no function draws, or with another number of classes than names."""
    drawn = {
        name: classes for name, (classes, _) in (drawing.DRAWERS | targets.DRAWERS).items()
    } | {"digits": 10}
    for name, entry in content["embedded"].items():
        path = ("embedded", name)
        yield from known(("embedded",), "drawing", name, drawn, name)
        if len(entry["classes"]) != drawn.get(name, len(entry["classes"])):
            text = (
                f"{len(entry['classes'])} names are given; write {drawn[name]}, one for each class."
            )
            yield Fault((*path, "classes"), text)
        if name == "digits" and sum(entry["splits"]) != 1797:
            text = (
                f"{sum(entry['splits'])} images are split; write three numbers that add up to 1797."
            )
            yield Fault((*path, "splits"), text)
    for name, entry in content["segmentation"].items():
        yield from known(("segmentation",), "drawn segmentation task", name, scenes.CLASSES, name)
        if tuple(entry["classes"]) != scenes.CLASSES.get(name, tuple(entry["classes"])):
            yield Fault(
                ("segmentation", name, "classes"),
                f"write those that are drawn: {', '.join(scenes.CLASSES[name])}.",
            )
