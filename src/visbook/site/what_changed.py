"""What changed since the last release: verdicts and estimates of two `claims.csv`, with the reason,
and the claims that are gone, which keep their address.

The claims.csv of each earlier release lies in `book/releases/`, named after its version.
"""

import csv
import html
import io
from pathlib import Path

from visprompt import paths
from visprompt.errors import BadInput

from ..pages.judging import number
from .number_pages import claims_csv

DECIDE = ("evidence", "records", "estimate", "note")  # columns that say why
WORDS = {"records": "the runs", "note": "how it was judged"}
RULE = "the rule by which it is judged"


def older(root: Path | None = None) -> dict[str, Path]:
    """Version -> the claims.csv of that release, oldest first.

    Raises:
        BadInput: a file's name is no version.
    """
    files = (root or paths.ROOT).glob("book/releases/*.csv")
    try:
        found = sorted(files, key=lambda path: [*map(int, path.stem.split("."))])
    except ValueError:
        raise BadInput("book/releases holds a file whose name is no version such as 1.2.0.csv.")
    return {path.stem: path for path in found}


def rows_of(path: Path) -> dict[str, dict[str, str]]:
    """The rows of a claims.csv by their ids.

    Raises:
        BadInput: the file is none of a release's.
    """
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except (OSError, KeyError, ValueError) as error:
        raise BadInput(f"{path} is no claims.csv of a release ({error}).") from None


def parsed(text: str) -> dict[str, dict[str, str]]:
    """The rows of a claims.csv by their ids, from its text."""
    return {row["id"]: row for row in csv.DictReader(io.StringIO(text)) if row["verdict"]}


def reason(before: dict, now: dict) -> str:
    """Which columns of a claim differ, those first that explain a verdict."""
    names = [name for name in now if name != "verdict" and before.get(name, "") != now[name]]
    known = [name for name in DECIDE if name in names]
    return ", ".join(WORDS.get(name, name) for name in known or names[:3]) or RULE


def estimate(row: dict) -> str:
    """The estimate of a claim for readers; "-" where there is none."""
    value = row.get("estimate", "")
    return number(float(value)) if value else "-"


def text(old: dict, new: dict) -> list[str]:
    """Which claims have other verdicts or other estimates than before, and why, as Markdown."""
    both = [id for id in new if id in old]
    told = [id for id in both if new[id]["verdict"] != old[id]["verdict"]]
    moved = [id for id in both if id not in told and estimate(new[id]) != estimate(old[id])]
    lines = [f"{len(told)} of {len(new)} claims have another verdict, and {len(moved)} more "]
    lines[0] += "another estimate."
    for title, ids, shown in (
        ("Verdicts", told, lambda row: row["verdict"]),
        ("Estimates", moved, estimate),
    ):
        if ids:
            lines += ["", f"**{title}**", "", "| claim | before | now | what changed |"]
            lines.append("|---|---|---|---|")
        for id in ids:
            pair = f"{shown(old[id])} | {shown(new[id])}"
            lines.append(f"| `{id}` | {pair} | {reason(old[id], new[id])} |")
    for title, ids in (("New claims", {*new} - {*old}), ("Claims that are gone", {*old} - {*new})):
        if ids:
            lines += ["", f"**{title}**", "", *(f"- `{id}`" for id in sorted(ids))]
    return lines


def section(results: dict, root: Path) -> str:
    """What changed since the newest earlier release, as Markdown."""
    found = older(root)
    if not found:
        return "No earlier release is kept here yet, so there is nothing to compare with."
    version, path = [*found.items()][-1]
    files = ", ".join(
        f'<a href="downloads/claims-{name}.csv" download>{name}</a>' for name in reversed(found)
    )
    lines = text(rows_of(path), parsed(claims_csv(results)))
    return "\n".join(
        [f"Since version {version}: {lines[0]}", *lines[1:], "", f"Claims of {files}."]
    )


def gone(known: set[str], root: Path | None = None) -> dict[str, tuple[str, dict]]:
    """Claims of earlier releases that are none of `known`, with the last release that had each."""
    found = {}
    for version, path in older(root).items():
        found |= {id: (version, row) for id, row in rows_of(path).items() if id not in known}
    return found


def gone_html(id: str, version: str, row: dict) -> str:
    """What is told of a claim that is gone, as HTML."""
    said = html.escape(row.get("says") or row.get("printed") or row.get("metric") or id)
    told = f"of version {html.escape(version)}, no claim of this one"
    return f'{said} <span class="vp-how">({told})</span>'


MAKERS = {"what-changed": section}
