"""Schemas and further checks of the YAML files that `data` reads."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

from ..manifests.schema import (
    COUNT,
    TEXT,
    known,
    listed,
    mapping,
    named,
    of_fields,
    of_hint,
    one_of,
)
from ..manifests.wording import Fault
from ..papers import papers
from . import drawing, scenes, targets
from .catalogue import FILE_NAME, MASKS, Benchmark, DataSet, FileEntry, file_name
from .drawing import SIZE


def datasets_schema() -> dict:
    """Schema of `datasets/*.yaml`: one data set, and the tasks that papers make of it."""
    masks, files = one_of(MASKS), of_hint(Sequence[FileEntry])
    return of_fields(DataSet, leave_out=("name", "listed"), masks=masks, files=files)


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
    for place, entry in enumerate(content.get("files", ())):
        name = entry.get("name") or file_name(entry["url"])
        if not re.match(FILE_NAME["pattern"], name):
            yield Fault(
                ("files", place, "url"),
                f"{entry['url']!r} ends in no file name; write name, {FILE_NAME['description']}.",
            )
        if name in seen:
            yield Fault(("files", place), f"{name!r} is given twice; write another name.")
        seen.add(name)


def preprocessing_schema() -> dict:
    """Schema of `preprocessing.yaml`: each paper's image preparation, and where it is stated."""
    return mapping(
        {}, {name: mapping({}, {paper: TEXT for paper in papers()}) for name in get_args(Benchmark)}
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
