"""What `data`'s files of `data_manifests/` may hold."""

from collections.abc import Iterable
from pathlib import Path

from ..manifests.schema import COUNT, TEXT, known, listed, mapping, named, one_of
from ..manifests.wording import Fault
from . import drawing, targets
from .drawing import SIZE


def tasks_schema() -> dict:
    """`tasks.yaml`."""
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
    return mapping({"embedded": named(mapping(entry, {"pool": COUNT}))})


def tasks_faults(content: dict, file: Path) -> Iterable[Fault]:
    """A task is drawn by its name, in as many classes as are named."""
    drawn = {name: classes for name, (classes, _) in (drawing.DRAWERS | targets.DRAWERS).items()} | {"digits": 10}
    for name, entry in content["embedded"].items():
        path = ("embedded", name)
        yield from known(("embedded",), "drawing", name, drawn, name)
        if len(entry["classes"]) != drawn.get(name, len(entry["classes"])):
            text = f"{len(entry['classes'])} names are given; write {drawn[name]}, one for each class."
            yield Fault((*path, "classes"), text)
        if name == "digits" and sum(entry["splits"]) != 1797:
            text = f"{sum(entry['splits'])} images are split; write three numbers that add up to 1797."
            yield Fault((*path, "splits"), text)
