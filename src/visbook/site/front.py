"""What is said by hand of each paper, in book/summaries.yaml, on the front page and on the first
screen of a chapter."""

import html
import json
import math
import re
from dataclasses import dataclass, fields
from pathlib import Path

from visprompt import manifests, papers
from visprompt.errors import BadInput, choose

from ..pages.judging import number, rich
from . import claims, overview, pictograms

WORDS = 110  # by hand of a paper, at most: a chapter's first screen holds no more
FOUND = re.compile(r"\{([a-z0-9.-]+)(:printed|:-?%?)?\}")


@dataclass(frozen=True)
class Paper:
    """One entry of book/summaries.yaml."""

    authors: str
    year: int
    venue: str
    link: str
    audited: str  # the version of the text at hand
    chapters: list[str]  # the pages that stand for it, the first of them with all its core claims
    proposes: str
    holds: list[dict]  # sentences: {says, rests: {claim: verdict}}
    fails: list[dict]
    small: list[dict]  # what was only seen at reduced scale
    easy: str
    hard: str


def told(root: Path) -> dict[str, Paper]:
    """Slug -> what book/summaries.yaml says of a paper; {} where there is no such file.

    Raises:
        BadInput: an unknown paper, a field too many or too few, a sentence without `says` and
            `rests`, or too many words.
    """
    path = root / "book" / "summaries.yaml"
    if not path.exists():
        return {}
    given, names = manifests.load_yaml(path), [field.name for field in fields(Paper)]
    for slug, entry in given.items():
        choose(f"paper in {path.name}:", slug, papers.papers())
        for name in entry:
            choose(f"field of {slug} in {path.name}:", name, names)
        if missing := [name for name in names if name not in entry]:
            raise BadInput(f"{path}: {slug} has no {', '.join(missing)}; write it.")
        sentences = [*entry["holds"], *entry["fails"], *entry["small"]]
        for sentence in sentences:
            if not isinstance(sentence, dict) or set(sentence) != {"says", "rests"}:
                raise BadInput(
                    f"{path}: a sentence of {slug} is no mapping of `says` and `rests`; write both."
                )
            if (
                loose := {id for id, _ in FOUND.findall(sentence["says"])}
                - sentence["rests"].keys()
            ):
                raise BadInput(
                    f"{path}: {slug} shows {', '.join(sorted(loose))}; write under `rests` "
                    f"what it must come to."
                )
        by_hand = " ".join(
            [
                entry["proposes"],
                entry["easy"],
                entry["hard"],
                *(sentence["says"] for sentence in sentences),
            ]
        )
        if (words := len(by_hand.split())) > WORDS:
            raise BadInput(
                f"{path}: what is said of {slug} has {words} words; a first screen holds "
                f"{WORDS}, so say less."
            )
    return {slug: Paper(**entry) for slug, entry in given.items()}


def say(sentences: list[dict], results: dict, above: str = "") -> str:
    """Sentences with their numbers filled in, as HTML; in the place of one that no longer holds,
    which claim changed."""
    parts = []
    for sentence in sentences:
        changed = [id for id, word in sentence["rests"].items() if verdict(id, results) != word]
        if changed:
            list = " and ".join(
                f'<a href="{above}claims.html#{html.escape(id)}">{html.escape(id)}</a>'
                for id in changed
            )
            parts.append(
                f'<span class="vp-stale">What stood here waits for new words, since {list} '
                f"came out otherwise.</span>"
            )
        else:
            parts.append(fill(sentence["says"], results, above))
    return " ".join(parts)


def verdict(id: str, results: dict) -> str | None:
    """What was found of a claim; None where there is no such claim."""
    return results["claims"].get(id, {}).get("verdict")


def fill(text: str, results: dict, above: str) -> str:
    """A text as HTML with {claim id} as what was found, a link to the claim; {claim id:%} in per
    cent, {claim id:-} with the other sign, {claim id:printed} as the paper prints it.

    Raises:
        BadInput: no such claim, or it has no estimate.
    """

    def found(match: re.Match) -> str:
        id, how = match[1], match[2] or ""
        if how == ":printed":
            return rich(papers.claim(id).printed)
        value = results["claims"].get(id, {}).get("estimate")
        if value is None:
            raise BadInput(
                f"{match[0]} of summaries.yaml or stories.yaml has no estimate; name one that was "
                f"judged, or drop it."
            )
        value = -value if "-" in how else value
        shown = (
            number(value * 100, 0.1)
            if "%" in how
            else number(value, 0 if abs(value) < 1 else 10.0 ** -max(0, 2 - digits(value)))
        ).replace("-", "−")
        return f'<a class="vp-found" href="{above}claims.html#{id}">{shown}</a>'

    return FOUND.sub(found, html.escape(text, quote=False))


def digits(value: float) -> int:
    """How many digits stand before the point."""
    return math.floor(math.log10(abs(value))) + 1 if value else 1


def about(paper: Paper) -> str:
    """Authors, year, venue and the version at hand, as HTML."""
    where = html.escape(paper.venue)
    return (
        f"{html.escape(paper.authors)} ({paper.year}). <a "
        f'href="{html.escape(paper.link)}">{where}</a>. '
        f"Audited here: {html.escape(paper.audited)}."
    )


def version(results: dict, root: Path, paper: str) -> str:
    """Whose paper it is and which version of it is audited, as a line."""
    entries = told(root)
    return f'<p class="vp-how vp-about">{about(entries[paper])}</p>' if paper in entries else ""


def cards(results: dict, root: Path) -> str:
    """A card for each paper; one that summaries.yaml does not have has a plain card."""
    entries = told(root)
    return "\n".join(card(slug, entries.get(slug), results) for slug in papers.papers())


def card(slug: str, paper: Paper | None, results: dict) -> str:
    """What a paper proposes, what holds, what does not, what was only seen in small, and its claims
    as a bar; of a paper without words of its own the subject and the bar."""
    entry, chapter = papers.papers()[slug], chapter_of(slug, paper, results)
    drawing = pictograms.draw(entry["drawing"]) if "drawing" in entry else ""
    said = (
        f"<p>{html.escape(entry['subject'])}</p>"
        if paper is None
        else sayings(slug, paper, results)
    )
    return (
        f'<section class="vp-card" aria-labelledby="card-{slug}">{drawing}'
        f'<h3 id="card-{slug}"><a href="{chapter}">{html.escape(entry["title"])}</a></h3>'
        f"{said}{claims.bar(slug, results)}"
        f'<p class="vp-ways"><a href="{chapter}">Chapter</a> · '
        f'<a href="{claims.list_address(paper=entry["short"])}">All its claims</a> · '
        f'<a href="numbers-{slug}.html">Its printed numbers</a></p></section>'
    )


def chapter_of(slug: str, paper: Paper | None, results: dict) -> str:
    """The address of the page that stands for a paper: its first chapter, else the first page that
    shows something of it, else the list of artifacts."""
    shown = (
        entry["notebook"]
        for id, entry in results["artifacts"].items()
        if papers.paper_of([id]) == slug
    )
    for name in (*(paper.chapters[:1] if paper else ()), *shown):
        if name in results["titles"]:
            return f"notebooks/{name}.html"
    return "status.html"


def sayings(slug: str, paper: Paper, results: dict) -> str:
    """What is said of a paper by hand, with its numbers filled in, as HTML."""
    lines = [
        ("Holds", paper.holds),
        ("Does not", paper.fails),
        ("Only seen at small scale", paper.small),
    ]
    photographs = overview.beside_base(slug)
    said = f"<dt>On photographs, ViT-Tiny</dt><dd>{photographs}</dd>" if photographs else ""
    said += "".join(
        f"<dt>{name}</dt><dd>{say(sentences, results)}</dd>" for name, sentences in lines
    )
    return (
        f'<p class="vp-how">{about(paper)}</p><p>{html.escape(paper.proposes)}</p><dl>{said}</dl>'
    )


def minutes(results: dict, root: Path) -> str:
    """How long the notebooks of this site took: their processor time on two cores, from what
    papermill wrote."""
    seconds = 0.0
    for path in (root / "build" / "executed" / results["profile"]).rglob("*.ipynb"):
        seconds += (
            json.loads(path.read_text(encoding="utf-8"))["metadata"]
            .get("papermill", {})
            .get("duration")
            or 0
        )
    whole = max(1, math.ceil(seconds / 2 / 60))
    return f"{whole} minute{'s' if whole > 1 else ''}"


MAKERS = {"cards": cards, "version": version, "minutes": minutes}
