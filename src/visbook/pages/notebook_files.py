"""What `pages`'s files of `data_manifests/` may hold."""

from collections.abc import Iterable
from pathlib import Path

from visprompt import papers
from visprompt.manifests.schema import TEXT, known, listed, mapping, named
from visprompt.manifests.wording import Fault


def notebooks_schema() -> dict:
    """`notebooks.yaml`."""
    own = {"title": TEXT, "artifacts": listed(TEXT, 0, uniqueItems=True)}
    return named(mapping(own, {"after": listed(TEXT, uniqueItems=True)}))


def notebooks_faults(content: dict, file: Path) -> Iterable[Fault]:
    """A notebook exists, comes after notebooks above it, and shows artifacts that no other
    shows."""
    # an installed package has none
    there = [path.stem for path in (file.parents[1] / "notebooks").glob("*.py")] or [*content]
    artifacts, shown = set(papers.artifacts().index), {}
    for name, entry in content.items():
        yield from known((), "notebook", name, there, name)
        for place, other in enumerate(entry.get("after", ())):
            yield from known(
                (name, "after", place),
                "notebook above it",
                other,
                list(content)[: list(content).index(name)],
            )
        for place, id in enumerate(entry["artifacts"]):
            path = (name, "artifacts", place)
            yield from known(path, "artifact", id, artifacts)
            if id in shown:
                yield Fault(path, f"{id!r} is given to {shown[id]} already; delete one.")
            shown[id] = name


def replies_schema() -> dict:
    """`replies.yaml`."""
    day = {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$", "description": "a date in quotes"}
    link = {"type": "string", "pattern": r"^https?://\S+$", "description": "an address"}
    return named(listed(mapping({"from": TEXT, "date": day, "text": TEXT}, {"link": link})), 0)


def replies_faults(content: dict, file: Path) -> Iterable[Fault]:
    """A reply is to a claim that there is."""
    claims = [claim.id for claim in papers.claims()]
    for id in content:
        yield from known((), "claim", id, claims, id)
