"""What `pages`'s files of `data_manifests/` may hold."""

from collections.abc import Iterable
from pathlib import Path

from .. import papers
from ..manifests.schema import TEXT, known, listed, mapping, named
from ..manifests.wording import Fault
from ..words import PROFILES


def notebooks_schema() -> dict:
    """`notebooks.yaml`."""
    slices = mapping({}, {name: named(named({}, 0), 0) for name in PROFILES})
    after = {"after": listed(TEXT, uniqueItems=True)}
    return named(mapping({"title": TEXT, "artifacts": listed(TEXT, 0, uniqueItems=True), "slices": slices}, after))


def notebooks_faults(content: dict, file: Path) -> Iterable[Fault]:
    """A notebook exists, what it shows are artifacts that no other shows, and it stands after others given above it."""
    there = [path.stem for path in (file.parents[1] / "notebooks").glob("*.py")]
    artifacts, shown = set(papers.artifacts().index), {}
    for number, (name, entry) in enumerate(content.items()):
        yield from known((), "notebook", name, there, name)
        for place, other in enumerate(entry.get("after", [])):
            yield from known((name, "after", place), "notebook above this one", other, [*content][:number])
        for place, id in enumerate(entry["artifacts"]):
            path = (name, "artifacts", place)
            yield from known(path, "artifact", id, artifacts)
            if id in shown:
                yield Fault(path, f"{id!r} is given to {shown[id]} already; delete one.")
            shown[id] = name
