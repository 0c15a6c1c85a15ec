"""What the papers print, held against itself: numbers recomputed from printed cells, and sentences
compared.

The rules are data (`data_manifests/papers/<paper>/audit.yaml` and `names.yaml`); what they find is
found here.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, replace

import pandas as pd

from visprompt import papers, paths
from visprompt.errors import BadInput, CannotWrite, choose
from visprompt.records import Record, fingerprint_file, recorded, remember, short_hash

from .cells import cells_of, numbers, table
from .claims import opposed
from .counts import printed_counts
from .findings import ARITHMETIC, KINDS, WORDING, Finding, slug
from .quoted import quotations
from .rules import arithmetic, mean_findings, rules

__all__ = [
    "ARITHMETIC",
    "KINDS",
    "WORDING",
    "Finding",
    "audit",
    "audit_records",
    "opposed",
    "printed_means",
    "wrong_means",
]
COUNTED = re.compile("param|gflops")  # columns of counts


def audit(paper: str | None = None) -> pd.DataFrame:
    """All findings of one paper, or of all: a row each, with the fields of `Finding`.

    Raises:
        BadInput: unknown paper, or a rule that leads nowhere.
    """
    table.cache_clear()  # the files may have changed
    wanted = papers.papers() if paper is None else [choose("paper", paper, papers.papers())]
    found = [finding for slug in wanted for finding in arithmetic(slug)]
    found += [finding for finding in across(fingerprint()) if finding.paper in wanted]
    twice = [id for id, count in Counter(finding.id for finding in found).items() if count > 1]
    if twice:
        raise BadInput(f"finding {twice[0]!r} is made twice; rename one of its rules.")
    readings = {id: text for slug in wanted for id, text in rules(slug).get("readings", {}).items()}
    for id in readings:
        choose("finding in readings:", id, [finding.id for finding in found])
    found = [
        replace(f, reading=" ".join(readings[f.id].split())) if f.id in readings else f
        for f in found
    ]
    for id in [id for paper in wanted for id in rules(paper).get("undecided", ())]:
        choose(
            "finding in undecided:",
            id,
            [finding.id for finding in found if finding.verdict == "disagrees"],
        )
        found = [replace(f, verdict="inconclusive", marks=()) if f.id == id else f for f in found]
    found = decided(found)
    return pd.DataFrame(
        [asdict(finding) for finding in found], columns=list(Finding.__dataclass_fields__)
    )


@remember
def across(files: str) -> list[Finding]:
    """The findings that are made of all papers at once, whichever is asked for: of the files of
    this fingerprint."""
    return [*quotations(), *architecture()]


def fingerprint() -> str:
    """Which files the papers' numbers and rules are."""
    folder = paths.MANIFESTS / "papers"
    return short_hash(
        {
            str(path.relative_to(folder)): fingerprint_file(path)
            for path in sorted(folder.rglob("*.*"))
        }
    )


def printed_means(artifact: str) -> list[Finding]:
    """Every printed mean of a table that a rule of its paper's `audit.yaml` recomputes, with its
    verdict."""
    given = rules(papers.artifact(artifact)["paper"]).get("means", ())
    return [
        f
        for rule in given
        if rule["table"] == artifact
        for f in mean_findings(artifact.split(".")[0], rule)
    ]


def wrong_means(artifact: str) -> list[Finding]:
    """The printed means of a table that neither rounding, cutting off nor another fair reading
    explains."""
    explained = rules(papers.artifact(artifact)["paper"]).get("undecided", ())
    return [
        found
        for found in printed_means(artifact)
        if found.verdict == "disagrees" and found.id not in explained
    ]


def decided(found: list[Finding]) -> list[Finding]:
    """Findings with the cells to mark: of two that differ, the one that no other finding supports,
    else both."""
    sound = {cell for f in found if f.verdict == "agrees" and f.marks is None for cell in f.cells}
    return [
        f
        if f.marks is not None
        else replace(f, marks=tuple(c for c in f.cells if c not in sound) or f.cells)
        for f in found
    ]


def audit_records() -> list[Record]:
    """The record of each paper's audit, made where there is none; the data are the files of
    `data_manifests/papers`.

    `values["findings"]` holds the fields of `Finding`. Where records cannot be written, the id is
    empty.
    """
    data = fingerprint()
    return [audit_record(slug, data) for slug in papers.papers()]


def audit_record(paper: str, data: str) -> Record:
    """The record of one paper's audit."""
    settings, found = {"paper": paper}, {}

    def compute() -> dict:
        found["findings"] = json.loads(audit(paper).to_json(orient="records"))
        return found

    try:
        return recorded("audit", settings, compute, data=data)
    except CannotWrite:  # a folder that can only be read is enough to look
        return Record("", "", "audit", settings, data, "", "", found)


def architecture() -> Iterable[Finding]:
    """Every printed count of parameters and of operations, from `visprompt.counts`."""
    for row in printed_counts().itertuples():
        undecided, unknown = row.agrees is None or pd.isna(row.agrees), pd.isna(row.computed)
        kind = "operations" if row.unit == "GFLOPs" else "parameters"
        yield Finding(
            f"{row.id}.{kind}",
            row.artifact.split(".")[0],
            "" if row.artifact.endswith("prose") else row.artifact,
            row.where,
            kind,
            f"{row.method}, {row.unit}, from the architecture",
            f"{row.printed:g}",
            "" if unknown else f"{row.computed:.4g}",
            "inconclusive" if undecided else "agrees" if row.agrees else "disagrees",
            row.reading,
            estimate=None if unknown else float(row.computed),
            cells=tuple(cells_with(row)),
        )


def cells_with(count) -> Iterable[tuple[str, int, str]]:
    """The cells of its table that print a count: in a row that names the method, in a column of
    counts."""
    if count.artifact.endswith("prose") or ".text-" in count.id:
        return
    frame = cells_of(count.artifact)
    counted = [column for column in frame.columns if COUNTED.search(column)]
    for number, row in enumerate(frame.to_dict("records")):
        first = list(row.values())[:2]
        if count.method not in first or slug(first[0]) not in count.id:
            continue
        for column in counted:
            if any(
                abs(shown.value - count.printed) < 1e-9 for shown, _ in numbers(row[column])[:1]
            ):
                yield count.artifact, number, column
