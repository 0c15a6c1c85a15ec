"""Claims on pages: all of them with filters, those of an artifact in a compact table, the core ones
of a chapter."""

import html
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlencode

from visprompt import papers
from visprompt.words import ALIKE, NOT_JUDGED, NOT_RUN, SIGHTINGS, VERDICTS, WEIGHTS

from ..pages.judging import condition, found_text, rich, sentence
from . import parties, replies, what_changed
from .tables import badge, css, link, printed_name, table

# What stands side by side in a bar: first what can judge a paper, worst in the middle, then what a
# trend saw, then the rest.
IN_A_BAR = (
    VERDICTS[0],
    VERDICTS[2],
    VERDICTS[1],
    SIGHTINGS[0],
    SIGHTINGS[2],
    ALIKE,
    SIGHTINGS[1],
    NOT_JUDGED,
    NOT_RUN,
)
WORD = re.compile(r"[A-Za-z]{3,}")
# Of the reasons why a claim is asked as it is, those that follow from the form of the question:
# "above 0", "exactly 19", "0.60 ± 0.005". The glossary says them once.
FORMS = re.compile(
    r"Only the (?:sign|order) is judged: the sizes? (?:belongs?|depends?) [^.;]*\. ?"
    r"|Half a unit of the last printed digit\. ?"
    r"|(?:A count|A place|A rank)(?: (?:from|of) printed cells)? is exact\. ?"
)

OPEN = 5  # claims of an artifact that stand open, the weightiest


def is_value(claim: papers.Claim) -> bool:
    """Whether what is printed is a value or two, "80.45 against 76.03", and no statement."""
    return claim.printed[:1].isdigit() and len(WORD.findall(claim.printed)) < 6


def statement(claim: papers.Claim) -> str:
    """What is claimed, as HTML: the paper's sentence, or what its value asserts."""
    return rich(sentence(asserted(claim)))


def asserted(claim: papers.Claim) -> str:
    """What is claimed, without a full stop."""
    return claim.says or claim.printed or claim.metric


def printed(claim: papers.Claim) -> str:
    """The printed value as HTML; where the paper prints a sentence, what was asked of the
    estimate."""
    return rich(claim.printed) if is_value(claim) else f"required: {condition(claim)}"


def details(claim: papers.Claim, found: dict, results: dict, above: str) -> str:
    """What folds out below a claim: where it stands, what was asked of which estimate, why, and how
    it was found."""
    where = link(claim.artifact, printed_name(papers.artifact(claim.artifact)), results, above)
    if found["notebook"]:
        source = f'<a href="{above}records/{html.escape(claim.artifact)}.html">runs</a>'
    else:
        source = (
            f'<a href="{above}numbers-{claim.artifact.split(".")[0]}.html">audit</a>'
            if found["records"]
            else ""
        )
    text = f": {rich(claim.printed)}" if claim.says and not is_value(claim) else ""
    why = rich(FORMS.sub("", claim.why).strip())
    asked = f"{rich(sentence(claim.metric).rstrip('.'))}: {condition(claim)}. {why}".strip()
    on, note = html.escape(found["images"]), rich(found["note"])
    lines = [
        f"Printed in {html.escape(claim.where)}{text}; {where}.",
        f"Tested: {asked}",
        f"Found: {found_text(claim, found) or 'no estimate'}. {on} {note}".strip(),
        *filter(None, [parties.told(found)]),
        *replies.told(claim.id),
        f'<a class="vp-address" '
        f'href="{above}claims.html#{html.escape(claim.id)}">{html.escape(claim.id)}</a> {source}',
    ]
    told = "\n".join(lines)
    return f"<p>{told}</p>"


def by_whom(found: dict) -> str:
    """The word of a claim's evidence; of `replicated` with those who did it."""
    names = html.escape(", ".join(found["parties"]))
    return badge(found["evidence"]) + (f" by {names}" if found["evidence"] == "replicated" else "")


def folded(claim: papers.Claim, found: dict, results: dict, above: str) -> str:
    """A claim that unfolds."""
    said = f'<span class="vp-clamp">{statement(claim)}</span>{replies.mark(claim.id)}'
    return f"<details><summary>{said}</summary>{details(claim, found, results, above)}</details>"


def compact(ids: Iterable[str], results: dict, above: str = "../") -> str:
    """Some claims as a table of four columns, details folded; beyond OPEN of them, and on printed
    digits, all is folded."""
    rows, digits = [], []
    for claim in sorted(map(papers.claim, ids), key=lambda claim: WEIGHTS.index(claim.weight)):
        found = results["claims"][claim.id]
        value = f'<span class="vp-clamp">{printed(claim)}</span>'
        row = [
            folded(claim, found, results, above),
            value,
            found_text(claim, found),
            badge(found["verdict"]),
        ]
        (digits if claim.weight == WEIGHTS[-1] else rows).append(row)
    head, kind = (
        ["What the paper says", "Printed, or required", "Ours", "Verdict"],
        "vp-claims vp-cards",
    )
    shown = table(head, rows[:OPEN], kind=kind) if rows else ""
    for more, what in ((rows[OPEN:], ""), (digits, "on printed digits")):
        if more:
            summary = ", ".join(
                filter(None, [f"{len(more)} more" if rows else f"{len(more)}", what])
            )
            shown += (
                f"<details><summary>{summary}</summary>{table(head, more, kind=kind)}</details>"
            )
    return shown


def explorer(results: dict, root: Path, paper: str | None = None) -> str:
    """Every claim of one paper, or of all, with filters; the id of a claim is its address."""
    rows = []
    for claim in papers.claims(paper):
        found = results["claims"][claim.id]
        short = html.escape(papers.papers()[claim.artifact.split(".")[0]]["short"])
        rows.append(
            [
                short,
                folded(claim, found, results, "").replace(
                    "<details>", f'<details id="{html.escape(claim.id)}">', 1
                ),
                printed(claim),
                found_text(claim, found),
                badge(found["verdict"]),
                by_whom(found) if found["evidence"] else "",
                badge(claim.weight),
            ]
        )
    for id, (version, row) in what_changed.gone({one.id for one in papers.claims()}, root).items():
        slug = id.split(".")[0]
        if paper in (None, slug):
            short = html.escape(papers.papers().get(slug, {}).get("short", slug))
            said = what_changed.gone_html(id, version, row)
            first = f'<span id="{html.escape(id)}">{short}</span>'
            rows.append([first, said, "", "", f"then: {html.escape(row['verdict'])}", "", ""])
    head = ["Paper", "Claim", "Printed, or required", "Ours", "Verdict", "Evidence", "Weight"]
    choices = (
        ("Paper", "Verdict", "Evidence", "Weight")
        if paper is None
        else ("Verdict", "Evidence", "Weight")
    )
    shown = table(
        head,
        rows,
        filterable=True,
        choices=choices,
        kind="vp-claims vp-cards",
        widths=(9, 37, 13, 13, 11, 9, 8),
        address=paper is None,
    )
    # site.js sets these formulas when they come into view
    return shown.replace('class="math notranslate nohighlight"', 'class="vp-math"')


def list_address(above: str = "", **wanted: str) -> str:
    """The address of the claims explorer with some filters set: paper (its short name), verdict,
    evidence, weight."""
    return f"{above}claims.html?{urlencode(wanted)}"


def bar(paper: str, results: dict, above: str = "") -> str:
    """A paper's claims as one bar, split by verdict and evidence; every piece leads to its list."""
    short, count = papers.papers()[paper]["short"], {}
    for claim in papers.claims(paper):
        found = results["claims"][claim.id]
        key = (found["verdict"], found["evidence"] or "")
        count[key] = count.get(key, 0) + 1
    order = sorted(count, key=lambda key: (IN_A_BAR.index(key[0]), key[1]))
    parts, told = [], []
    for verdict, evidence in order:
        n, words = (
            count[verdict, evidence],
            {"Paper": short, "Verdict": verdict} | ({"Evidence": evidence} if evidence else {}),
        )
        target = html.escape(
            list_address(above, **{name.lower(): word for name, word in words.items()})
        )
        name = html.escape(
            f"{n} {verdict}" + (f", {evidence}" if evidence and verdict in VERDICTS else "")
        )
        parts.append(
            f'<a class="vp-part {css(verdict)}" style="flex: {n}" href="{target}" title="{name}">'
            f'<span class="vp-count">{n if n > 2 else ""}</span><span '
            f'class="visually-hidden">{name}</span></a>'
        )
        told.append(f'<a href="{target}">{name}</a>')
    return (
        f'<div class="vp-bar vp-large">{"".join(parts)}</div><p '
        f'class="vp-legend">{" · ".join(told)}</p>'
    )


MAKERS = {"claims": explorer, "claims-of": explorer}
