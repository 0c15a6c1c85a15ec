"""What every sentence, caption and equation of a paper was held against: how many, and which
differ."""

import html
import zipfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from visprompt import papers
from visprompt.paths import MANIFESTS

from ..auditing.sentences import (
    DIFFERING,
    HELD,
    REASONS,
    UNRULED,
    Sentence,
    read_sentences,
    second_reading,
)
from ..pages.judging import rich
from .number_pages import anchor
from .tables import code, table


def read(paper: str) -> list[Sentence]:
    """A paper's table of sentences; empty where there is none yet."""
    there = (MANIFESTS / "papers" / paper / "sentences.csv").exists()
    return read_sentences(paper) if there else []


def coverage(results: dict, root: Path) -> str:
    """For each paper how many of its sentences were held against something, and how they came
    out."""
    rows, why = [], Counter()
    for slug, paper in papers.papers().items():
        every = read(slug)
        found = Counter(row.outcome for row in every)
        held = sum(found[word] for word in HELD)
        if found:
            share = f"{held} of {found.total()} ({100 * held / found.total():.0f} %)"
            counts = (str(found[word]) for word in (*HELD, *REASONS))
            rows.append([html.escape(paper["short"]), share, *counts])
        why.update(
            row.finding if row.finding in UNRULED else ""
            for row in every
            if row.outcome == "differs"
        )
    told = "; ".join(f"{why[word]} times {text}" for word, text in UNRULED.items())
    return (
        f"{table(['Paper', 'Compared with something', *HELD, *REASONS], rows)}\n\n"
        f"Of {why.total()} sentences that differ, {why['']} have a finding or a claim that a "
        f"program recomputes. For the others there is no number to compute: {told}."
    )


def second(results: dict, root: Path) -> str:
    """How often a second reading, without the table, came to the same outcome and to the
    opposite."""
    pairs = [(row.outcome, outcome) for row, outcome in second_reading("any")]
    same = sum(one == other for one, other in pairs)
    differing, held = (
        Counter(
            "differs" if outcome in DIFFERING else outcome for _, outcome in second_reading(one)
        )
        for one in ("differs", "holds")
    )
    later = [(row.outcome, outcome) for row, outcome in second_reading("later")]
    again = sum(one == other for one, other in later)
    opposite = sum({one in DIFFERING, other in DIFFERING} == {True, False} for one, other in later)
    return (
        f"How reliable is this? We read {len(pairs)} random sentences of all five texts a second "
        f"time without looking at the table; {same} had the same outcome. Of {differing.total()} "
        f"sentences that differ, {differing['differs']} also differed in the second reading and "
        f"{differing['holds']} held. Of {held.total()} that hold, {held['holds']} held again and "
        f"{held['differs']} differed. Of {len(later)} more, drawn from SPT, iVPT and DA-VPT, "
        f"{again} had the same outcome, and {opposite} differed in one reading alone. A sentence "
        f"that differs and that no rule judges is therefore a question to the paper, not a verdict."
    )


def words(results: dict, root: Path) -> str:
    """What each outcome means."""
    return "\n".join(f"{word}\n: {text}\n" for word, text in {**HELD, **REASONS}.items())


def sentences(results: dict, root: Path, paper: str) -> str:
    """The sentences of a paper that differ from what they were held against, those that no finding
    judges first."""
    every = read(paper)
    if not every:
        return "The sentences of this paper have not been read one by one."
    found = [row for row in every if row.outcome in DIFFERING]
    found.sort(
        key=lambda row: (DIFFERING.index(row.outcome), row.finding not in UNRULED, row.number)
    )
    held = sum(row.outcome in HELD for row in every)
    count = Counter(row.outcome for row in found)
    told = (
        f"Of {len(every)} sentences, captions and equations, {held} could be compared with another "
        f"place in the paper or with the architecture. {count['differs']} differ as they are "
        f"written; some of these repeat one statement. The paper itself corrects "
        f"{count['mended']} more, and {count['lost']} differ because our text lost a sign or a "
        f"word. Those that no rule above judges come first. They are questions to the paper "
        f'(<a href="numbers.html#sentence-by-sentence">how reliable they are</a>). '
        f"Numbers refer to other sentences. All rows, with sections, are in "
        f'<a href="downloads/everything.zip" download>everything.zip</a>.'
    )
    findings = {finding["id"] for finding in results["findings"]}
    rows = [
        [
            f'{row.number}<br><span class="vp-how">'
            f"{html.escape(row.section.partition(' $')[0])}</span>",
            f'{rich(row.says)}<br><span class="vp-how">{rich(row.why)}</span>',
            rich(row.against),
            row.outcome,
            judged(row.finding, findings, results),
        ]
        for row in found
    ]
    head = ["No., section", "What it says, in our words, and what differs", "Compared with"]
    shown = table(
        [*head, "Outcome", "Finding"],
        rows,
        filterable=True,
        choices=("Outcome",),
        kind="vp-sortable",
        widths=(17, 40, 17, 10, 16),
    )
    return (
        f"{told}\n\n<details><summary>These {len(found)} sentences</summary>\n{shown}\n</details>"
    )


def judged(id: str, findings: set[str], results: dict) -> str:
    """A link to the finding or claim of this id."""
    if id in findings:
        return f'<a href="#{anchor(id)}">{code(id)}</a>'
    if id in results["claims"]:
        return f'<a href="claims.html#{id}">{code(id)}</a>'
    return code(id) if id and id not in UNRULED else f"no rule: {id}" if id else ""


def downloads(folder: Path) -> None:
    """Add the sentences of all papers to everything.zip, as sentences.csv."""
    rows = [{"paper": slug, **asdict(row)} for slug in papers.papers() for row in read(slug)]
    with zipfile.ZipFile(folder / "everything.zip", "a", zipfile.ZIP_DEFLATED) as whole:
        whole.writestr("sentences.csv", pd.DataFrame(rows).to_csv(index=False))


MAKERS = {
    "second-reading": second,
    "sentences": sentences,
    "sentence-coverage": coverage,
    "sentence-outcomes": words,
}
