"""Schemas and further checks of the YAML files that `papers` reads."""

from collections.abc import Iterable
from pathlib import Path

from .. import papers
from ..manifests.schema import TEXT, listed, mapping, named, of_fields
from ..manifests.wording import Fault, refusal


def papers_schema() -> dict:
    """Schema of `papers/papers.yaml`."""
    more = {"drawing": TEXT, "theory": TEXT, "proposes": listed(TEXT)}
    return named(mapping({"title": TEXT, "short": TEXT, "subject": TEXT}, more))


def lost_schema() -> dict:
    """Schema of `papers/<paper>/lost.yaml`."""
    return named(TEXT)


def claims_schema() -> dict:
    """Schema of `papers/<paper>/claims.yaml`."""
    claim = of_fields(papers.Claim)
    claim["required"].append("weight")
    needs = [
        (
            ["equal"],
            ["published", "tolerance"],
            "direction 'equal' needs published and tolerance as numbers.",
        ),
        (
            ["greater", "less"],
            ["margin"],
            "direction 'greater' or 'less' needs a margin; write 0 for none.",
        ),
    ]
    claim["allOf"] = [
        {
            "if": {"properties": {"direction": {"enum": directions}}, "required": ["direction"]},
            "then": {"required": needed, "errorMessage": message},
        }
        for directions, needed, message in needs
    ]
    return listed(claim, 0)


def claims_faults(content: list, file: Path) -> Iterable[Fault]:
    """Faults of claims: of another paper's artifact, not named after it, or given twice."""
    table, seen = papers.artifacts(), set()
    artifacts = set(table.index[table["paper"] == file.parent.name])
    for place, claim in enumerate(content):
        if claim["artifact"] not in artifacts:
            text = refusal("artifact of this paper", claim["artifact"], artifacts).split(
                " Allowed:"
            )[0]
            yield Fault((place, "artifact"), f"{text} Write a known artifact, from artifacts.csv.")
        elif not claim["id"].startswith(claim["artifact"] + "."):
            yield Fault(
                (place, "id"),
                f"{claim['id']!r} is given; write '{claim['artifact']}.<short slug>'.",
            )
        if claim["id"] in seen:
            yield Fault((place, "id"), f"{claim['id']!r} is given twice; rename one.")
        seen.add(claim["id"])


def lost_faults(content: dict, file: Path) -> Iterable[Fault]:
    """Faults of tables that are called lost and have cells."""
    for name in content:
        if (file.parent / f"{name}.csv").exists():
            yield Fault((), f"{name}.csv holds its cells; delete one of the two.", name)
