"""The pages on the papers' own numbers: findings of the audit, marked tables, quotations, and
everything as files."""

import html
import re
import zipfile
from collections import Counter, defaultdict
from pathlib import Path

import pandas as pd

from visprompt import papers
from visprompt.errors import BadInput
from visprompt.words import WORST_FIRST

from ..auditing import KINDS
from ..auditing.cells import cells_of, numbers
from ..auditing.findings import row_name, table_name
from ..pages.friendly import named
from ..studies.comparable import listed
from .tables import badge, code, link, table

SIGNS = {"agrees": "", "disagrees": "✗", "inconclusive": "?"}
SPELLED = {  # columns of the printed tables whose name and ending would mislead
    "miou_ss": "mIoU, single-scale",
    "miou_ms": "mIoU, multi-scale",
    "pre_training": "pre-training",
    "pretraining": "pre-training",
    "prompt_init": "prompt initialisation",
    "fgvc_params_m": "FGVC params, M",
    "fgvc_mean": "FGVC mean",
    "vtab_params_m": "VTAB params, M",
}
UNITS = {
    "_m": "M",
    "_g": "G",
    "_s_per_epoch": "s per epoch",
    "_image_per_s": "images per s",
    "_gflops": "GFLOPs",
    "_ms": "ms",
    "_min": "min",
    "_mb": "MB",
}
# a table's column as the manifests name it, and no Greek letter with an index
COLUMN = re.compile(
    r"\b(?!(?:alpha|beta|gamma|delta|lambda|sigma|phi|nu|mu|eta)_)[a-z]{3,}(?:_[a-z]{3,})*"
    rf"(?:_[a-z]{{3,}}|{'|'.join(UNITS)})\b"
)
# What weighs most first: what the text says of results, then the tables' arithmetic, then what only
# describes.
RESULTS = ("statement", "bound", "magnitude", "direction", "definition", "mean", "quoted")
WEIGHT = (*RESULTS, *(kind for kind in KINDS if kind not in RESULTS))


def anchor(id: str) -> str:
    """The anchor of a finding's row."""
    return "f-" + re.sub(r"[^a-z0-9]+", "-", id.lower())


def of_paper(results: dict, paper: str) -> list[dict]:
    """The findings of a paper."""
    return [finding for finding in results["findings"] if finding["paper"] == paper]


def findings(results: dict, root: Path, paper: str) -> str:
    """How many findings of each kind there are, and how they came out."""
    found, rows = of_paper(results, paper), []
    for kind in KINDS:
        count = Counter(finding["verdict"] for finding in found if finding["kind"] == kind)
        if count:
            rows.append([kind, str(count.total()), *(str(count[word]) for word in WORST_FIRST)])
    total = Counter(finding["verdict"] for finding in found)
    rows.append(
        ["<strong>all</strong>", str(len(found)), *(str(total[word]) for word in WORST_FIRST)]
    )
    return table(["Kind", "Findings", *map(badge, WORST_FIRST)], rows)


def distance(finding: dict) -> float:
    """How far the printed number is from the recomputed one, relative to the larger of both; 0 for
    texts."""
    shown, again = numbers(finding["printed"]), numbers(finding["computed"])
    if not shown or not again:
        return 0.0
    a, b = shown[0][0].value, again[0][0].value
    return abs(a - b) / max(abs(a), abs(b), 1e-12)


def disagreements(results: dict, root: Path, paper: str) -> str:
    """What disagrees, the weightiest first."""
    found = [finding for finding in of_paper(results, paper) if finding["verdict"] == "disagrees"]
    found.sort(key=lambda finding: (WEIGHT.index(finding["kind"]), -distance(finding)))
    return finding_table(found, results) if found else "Nothing disagrees."


def every(results: dict, root: Path, paper: str) -> str:
    """All other findings of a paper, folded; a link to one of them unfolds it."""
    found = [finding for finding in of_paper(results, paper) if finding["verdict"] != "disagrees"]
    if not found:
        return "There is nothing else to recompute."
    summary = f"{len(found)} findings that agree or cannot be decided"
    return f"<details><summary>{summary}</summary>\n{finding_table(found, results)}\n</details>"


def finding_table(found: list[dict], results: dict) -> str:
    """Findings as rows that can be linked to, filtered and sorted."""
    rows = []
    for finding in found:
        artifact = finding["artifact"]
        where = in_words(finding["where"])
        where = (
            link(artifact, where, results)
            if artifact in results["artifacts"]
            else html.escape(where)
        )
        notes = (finding["quote"], finding["reading"])
        reading = "".join(
            f'<br><span class="vp-how">{html.escape(in_words(note))}</span>'
            for note in notes
            if note
        )
        rows.append(
            [
                f'<span id="{anchor(finding["id"])}">{where}</span><br>{code(finding["id"])}',
                html.escape(finding["kind"]),
                html.escape(in_words(finding["what"])) + reading,
                html.escape(in_words(finding["printed"])),
                html.escape(in_words(finding["computed"])),
                badge(finding["verdict"]),
            ]
        )
    head = ["Where", "Kind", "What, and the likely reading", "Printed", "Recomputed", "Verdict"]
    widths = (22, 10, 32, 13, 13, 10)
    return table(
        head, rows, filterable=True, choices=("Kind", "Verdict"), kind="vp-sortable", widths=widths
    )


def tables(results: dict, root: Path, paper: str) -> str:
    """The tables of a paper as it prints them, cells that were audited marked; lost ones with the
    reason."""
    marked_cells, parts = marks(results), []
    for id, row in papers.artifacts(paper).iterrows():
        if row["kind"] != "table":
            continue
        back = link(id, "its section, with what was run", results)
        parts.append(f"### {table_name(id)}: {html.escape(row['title'])}\n")
        parts.append(f'<p id="n-{id}">{code(id)} · {back}</p>\n')
        try:
            parts.append(marked(id, papers.published(id), marked_cells))
        except BadInput as lost:
            parts.append(html.escape(str(lost).split(": ", 1)[-1]))
    return "\n\n".join(parts)


def marks(results: dict) -> dict[tuple, list[dict]]:
    """(artifact, row, column) -> the findings that mark the cell."""
    found = defaultdict(list)
    for finding in results["findings"]:
        for cell in finding["marks"]:
            found[tuple(cell)].append(finding)
    return found


def marked(id: str, frame: pd.DataFrame, marks: dict, above: str = "") -> str:
    """One table; a cell that was audited says on hovering what was found, and one that is off leads
    there."""
    names = [column for column in frame.columns if column not in ("doubt", "bold")]
    doubts = defaultdict(list)
    for number, text in enumerate(frame["doubt"]):
        if text:
            doubts[text].append(row_name(frame, number))
    rows = []
    for number in range(len(frame)):
        bold = frame.iloc[number].get("bold", "").split("; ")
        cells = [
            (frame.iloc[number][name], marks.get((id, number, name), []), name in bold)
            for name in names
        ]
        rows.append([marked_cell(*cell, above) for cell in cells])
    told = "".join(
        f"<li>{html.escape('all rows' if len(where) == len(frame) else ', '.join(where))}: "
        f"{html.escape(text)}</li>"
        for text, where in doubts.items()
    )
    note = (
        f'<p class="vp-how">Doubtful in the text:</p><ul class="vp-how">{told}</ul>'
        if doubts
        else ""
    )
    return table([head(name) for name in names], rows, kind="vp-sortable") + "\n" + note


def in_words(text: str) -> str:
    """A text with the names of columns and numbers for reading."""
    return named(COLUMN.sub(lambda name: html.unescape(head(name[0])), text))


def head(column: str) -> str:
    """A column's name for reading: its unit behind a comma."""
    if column in SPELLED:
        return SPELLED[column]
    for ending, unit in UNITS.items():
        if column.endswith(ending):
            return html.escape(f"{column.removesuffix(ending).replace('_', ' ')}, {unit}")
    return html.escape(column.replace("_", " "))


def marked_cell(text: str, found: list[dict], bold: bool, above: str = "") -> str:
    """One cell with its marks; `above` leads to the front page."""
    body = f"<strong>{html.escape(text)}</strong>" if bold else html.escape(text)
    if not found:
        return body
    worst = min(found, key=lambda finding: WORST_FIRST.index(finding["verdict"]))
    told = html.escape(
        in_words("; ".join(f"{f['verdict']}: {f['what']}: {f['computed']}" for f in found[:4]))
    )
    # nothing decides which of them is wrong
    pair = worst["verdict"] == "disagrees" and len(worst["marks"]) > 1
    sign = "≠" if pair else SIGNS[worst["verdict"]]
    body = (
        f'<span class="vp-audited vp-audit-{worst["verdict"]}" title="{told}">{body}{sign}</span>'
    )
    if worst["verdict"] == "agrees":
        return body
    return f'<a href="{above}numbers-{worst["paper"]}.html#{anchor(worst["id"])}">{body}</a>'


def quotations(results: dict, root: Path) -> str:
    """Numbers that two papers print for the same thing, side by side."""
    found = [
        f
        for f in results["findings"]
        if f["kind"] == "quoted" and len({cell[0].split(".")[0] for cell in f["cells"]}) > 1
    ]
    short = {slug: html.escape(paper["short"]) for slug, paper in papers.papers().items()}
    rows = []
    for finding in sorted(
        found, key=lambda finding: (WORST_FIRST.index(finding["verdict"]), finding["what"])
    ):
        (here, *_), (there, row, column) = finding["cells"]
        rows.append(
            [
                html.escape(in_words(finding["what"])),
                f"{short[there.split('.')[0]]}, {table_name(there)}",
                html.escape(cells_of(there).iloc[row][column]),
                f"{short[here.split('.')[0]]}, {table_name(here)}",
                html.escape(finding["printed"]),
                badge(finding["verdict"]),
                html.escape(in_words(finding["reading"])),
            ]
        )
    head = ["What", "One paper", "prints", "Another", "prints", "Verdict", "Likely reading"]
    return table(
        head, rows, filterable=True, choices=("One paper", "Another", "Verdict"), kind="vp-sortable"
    )


def quotation_counts(results: dict, root: Path) -> str:
    """Who repeats whose numbers, and how often they are the same."""
    found = [f for f in results["findings"] if f["kind"] == "quoted"]
    short = {slug: html.escape(paper["short"]) for slug, paper in papers.papers().items()}
    count, off = Counter(), Counter()
    for finding in found:
        pair = tuple(short[cell[0].split(".")[0]] for cell in reversed(finding["cells"]))
        count[pair] += 1
        off[pair] += finding["verdict"] == "disagrees"
    rows = [
        [first, second, str(n), str(off[first, second])]
        for (first, second), n in count.most_common()
    ]
    return table(["One table of", "another of", "Numbers in both", "not the same"], rows)


def pages(results: dict, root: Path) -> str:
    """A link to every paper's page of numbers."""
    slugs = papers.papers()
    links = [f"{{doc}}`{slugs[slug]['short']} <numbers-{slug}>`" for slug in slugs]
    return listed(links, most=len(links))


def of_claims(results: dict) -> list[dict]:
    """All that is known of each claim."""
    return [{**vars(claim), **results["claims"][claim.id]} for claim in papers.claims()]


def claims_csv(results: dict) -> str:
    """claims.csv, as text."""
    return pd.DataFrame(of_claims(results)).to_csv(index=False)


def downloads(results: dict, folder: Path) -> None:
    """Everything as files: artifacts.csv, claims.csv, findings.csv, cells.csv, and all four in
    everything.zip."""
    cells = []
    for id, row in papers.artifacts().iterrows():
        try:
            frame = papers.published(id) if row["kind"] == "table" else None
        except BadInput:
            continue  # lost
        for number in range(len(frame) if frame is not None else 0):
            for column in frame.columns.drop(["doubt", "bold"], errors="ignore"):
                cells.append(
                    {
                        "artifact": id,
                        "row": row_name(frame, number),
                        "column": column,
                        "printed": frame.iloc[number][column],
                        "doubt": frame.iloc[number]["doubt"],
                    }
                )
    of_artifacts = [
        {
            "id": id,
            **row,
            "evidence": results["artifacts"][id]["evidence"],
            "notebook": results["artifacts"][id]["notebook"],
        }
        for id, row in papers.artifacts().iterrows()
    ]
    findings = [
        {name: value for name, value in found.items() if name != "marks"}
        for found in results["findings"]
    ]
    everything = {
        "artifacts": of_artifacts,
        "claims": of_claims(results),
        "findings": findings,
        "cells": cells,
    }
    with zipfile.ZipFile(folder / "everything.zip", "w", zipfile.ZIP_DEFLATED) as whole:
        for name, rows in everything.items():
            pd.DataFrame(rows).to_csv(folder / f"{name}.csv", index=False)
            whole.write(folder / f"{name}.csv", f"{name}.csv")


MAKERS = {
    "numbers-of": pages,
    "findings": findings,
    "disagreements": disagreements,
    "every-finding": every,
    "tables": tables,
    "quotations": quotations,
    "quotation-counts": quotation_counts,
}
