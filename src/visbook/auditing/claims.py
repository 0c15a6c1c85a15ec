"""Claims and findings that speak of the same cells: their verdicts may not be opposite."""

import re
from collections.abc import Iterable, Iterator, Mapping

from visprompt import papers

from .findings import Finding, slug

COUNTS = ("parameters", "operations")
# ends of the ids of claims that count a table's wrong means
MEANS = ("printed-means", "printed-averages")
OPPOSITE = {"agrees", "disagrees"}


def about(claim: papers.Claim, found: Iterable[Finding]) -> list[Finding]:
    """The findings about the cells of a claim: those that name it, its table's means, or its
    printed count."""
    mine = [f for f in found if f.claim == claim.id]
    there = [f for f in found if f.artifact == claim.artifact]
    if claim.id.endswith(MEANS):
        return mine + [f for f in there if f.kind == "mean"]
    words = set(slug(claim.id.split(".")[-1]).split("-"))
    if not words & {*COUNTS} or claim.direction != "equal":
        return mine
    counts = [
        f
        for f in there
        if f.kind in COUNTS and float(f.printed) in (claim.published, claim.published / 1000)
    ]
    if len(counts) > 1:  # the same number in several rows
        counts = [
            f for f in counts if words <= set(re.split(r"[.-]", f.id.removeprefix(f.artifact)))
        ]
    return mine + counts


def opposed(found: Iterable[Finding], answers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Pairs (claim, finding) about the same cells with opposite verdicts; `answers` maps claims to
    verdicts.

    A claim on a table's means disagrees as soon as one of them does.
    """
    found = list(found)
    for claim in papers.claims():
        answer, same = answers.get(claim.id), about(claim, found)
        if (
            claim.id.endswith(MEANS)
            and answer == "disagrees"
            and any(f.verdict == "disagrees" for f in same)
        ):
            continue
        yield from ((claim.id, f.id) for f in same if {answer, f.verdict} == OPPOSITE)
