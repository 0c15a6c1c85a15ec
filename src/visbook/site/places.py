"""Everything on the site that has a name, for the jump box and the search: what it is called, and
where it is."""

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path

from docutils.nodes import make_id

import visprompt
from visprompt import papers
from visprompt.data import catalogue
from visprompt.methods import method_class
from visprompt.words import summary

from ..chapters.methods import by_idea
from ..pages.judging import MATHEMATICS
from . import api_pages, prose
from .claims import IN_A_BAR, asserted, list_address
from .tables import printed_name

COMMAND = re.compile(r"(?m)^\$ ([^#\n\\]+?) *(?:# *(.*))?$")
HEADING = re.compile(r"(?m)^#{1,3} (.+)$")


def places(results: dict, root: Path) -> list[list[str]]:
    """[kind, name, id, address from the front page, a few words] of every artifact, claim, method,
    ..."""
    makers = (artifacts, methods, pages, lists, datasets, names, commands, claims)
    return [list(place) for maker in makers for place in maker(results, root)]


def artifacts(results: dict, root: Path) -> Iterator[tuple]:
    """Every table, figure and theorem, where a page shows it, else its row of the list."""
    short = {slug: paper["short"] for slug, paper in papers.papers().items()}
    for id, row in papers.artifacts().iterrows():
        notebook = results["artifacts"][id]["notebook"]
        address = f"notebooks/{notebook}.html#{id}" if notebook else "status.html"
        yield "artifact", f"{short[row['paper']]}, {printed_name(row)}", id, address, row["title"]


def claims(results: dict, root: Path) -> Iterator[tuple]:
    """Every claim, at its row."""
    for claim in papers.claims():
        said = MATHEMATICS.sub(
            lambda match: match[1],
            asserted(claim),
        )
        yield (
            "claim",
            said[:120],
            claim.id,
            f"claims.html#{claim.id}",
            results["claims"][claim.id]["verdict"],
        )


def lists(results: dict, root: Path) -> Iterator[tuple]:
    """Every paper's claims of one verdict, at the explorer with its filters set."""
    for slug, paper in papers.papers().items():
        found = {results["claims"][claim.id]["verdict"] for claim in papers.claims(slug)}
        for verdict in (verdict for verdict in IN_A_BAR if verdict in found):
            also = "contradicted" if verdict == "disagrees" else ""
            yield (
                "page",
                f"{paper['short']}, claims: {verdict}",
                "",
                list_address(paper=paper["short"], verdict=verdict),
                also,
            )


def methods(results: dict, root: Path) -> Iterator[tuple]:
    """Every method, under the name that its file begins with and under its slug."""
    for slug, _, page in by_idea():
        if page:
            name, _, rest = summary(inspect.getmodule(method_class(slug))).partition(":")
            yield "method", name, slug, f"notebooks/{page}.html#method-{slug}", rest.strip()


def pages(results: dict, root: Path) -> Iterator[tuple]:
    """Every page, and every heading of the prose."""
    for name, title in results["titles"].items():
        yield "page", title, name, f"notebooks/{name}.html", ""
    for page, whole in prose.pages(root).items():
        text = re.sub(r"(?s)```.*?```", "", whole)
        for number, heading in enumerate(HEADING.findall(text)):
            name = heading.replace("`", "").strip()
            address = f"{page}.html" + (f"#{make_id(name)}" if number else "")
            yield "page", name, "", address, ""


def datasets(results: dict, root: Path) -> Iterator[tuple]:
    """Every data set of the papers, at its row."""
    for name, found in catalogue.datasets().items():
        yield (
            "data set",
            found.title,
            name,
            f"data.html#data-{name}",
            ", ".join([*found.aliases, *found.tasks]),
        )


def names(results: dict, root: Path) -> Iterator[tuple]:
    """What `import visprompt as vp` offers."""
    for name in api_pages.NAMES:
        yield "package", f"vp.{name}", name, api_pages.home(name), visprompt.home(name)


def commands(results: dict, root: Path) -> Iterator[tuple]:
    """Every command that the prose shows, at its heading."""
    for page, text in prose.pages(root).items():
        here = f"{page}.html"
        for line in re.split(r"(?m)^(?=#|\$ )", text):
            if line.startswith("## "):
                here = f"{page}.html#{make_id(line.splitlines()[0][3:])}"
            for command, note in COMMAND.findall(line):
                yield "command", command.strip(), "", here, note


def script(results: dict, root: Path) -> str:
    """The places as a script, since a page that was opened from a folder may not read any other
    file."""
    rows = ",\n".join(json.dumps(place, ensure_ascii=False) for place in places(results, root))
    return f"window.vpPlaces = [\n{rows}\n];\n"
