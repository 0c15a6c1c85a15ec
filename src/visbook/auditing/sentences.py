"""Every sentence, caption and equation of a paper's text, numbered, and what each was held against.

The texts are not part of this project. `data_manifests/papers/*/sentences.csv` has a row for each
sentence: its number, section and kind, and eight digits of the hash of its letters and digits, by
which whoever has the text can find it.
"""

import argparse
import csv
import hashlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from visprompt import papers
from visprompt.errors import BadInput, choose
from visprompt.paths import MANIFESTS

KINDS = ("sentence", "caption", "equation")
HELD = {
    "holds": "It agrees with what it was held against.",
    "differs": "As it is written it contradicts what it was held against; where something else "
    "was likely meant, its row says what.",
    "mended": "It differs, and a later line or a footnote of the paper mends it.",
    "lost": "It differs for a sign or a word that the text at hand lost.",
}
DIFFERING = ("differs", "mended", "lost")
REASONS = {
    "background": "It speaks of other work, or says why the question matters.",
    "term": "It defines a word, a symbol or a step that nothing else in the paper repeats.",
    "choice": "It states a choice of an experiment that is printed nowhere else.",
    "result": "It states a result, a cause or a view that only an experiment could show.",
    "unreadable": "The text at hand has lost too much of it.",
}
# Why no rule of `audit.yaml` judges a sentence that differs, in place of its finding.
UNRULED = {
    "name": "symbols, indices, names or citations differ, and no number follows from them",
    "scope": "it speaks of more than the place that it rests on, or of something else",
}
ABBREVIATIONS = re.compile(
    r"\b(?:Fig|Figs|Tab|Tabs|Sec|Secs|Eq|Eqs|Eqn|App|Ref|Refs|Thm|No|vs|cf|e\.g|i\.e|al|resp|etc"
    r"|w\.r\.t|i\.i\.d|s\.t|a\.k\.a|Dr|[A-Z])\.$"
)
LETTERS = re.compile(r"[\W_]")  # all but them
HEADING = re.compile(  # marked, in a line of its own behind its number, or one of three words
    r"#+\s|(?:\d{3,4} )*(?:[A-Z]|\d)(?:\.\d+)*\.?\s+[A-Z][^.:$]{2,75}$"
    r"|(?:\d{3,4} )*(?:References|Abstract|Acknowledge?ments?)$",
    re.I,
)


@dataclass(frozen=True)
class Sentence:
    """A row of `sentences.csv`."""

    number: int
    section: str
    kind: str  # one of KINDS
    mark: str  # eight hexadecimal digits
    says: str = ""  # in our words, where it was held against something
    against: str = ""  # what it was held against, such as "table-2" or "31" for another sentence
    outcome: str = ""  # one of HELD, or of REASONS where it cannot be held
    finding: str = ""  # the audited statement or claim that judges it, or one of UNRULED
    why: str = ""  # of one that differs: what differs


def numbered(text: str) -> Iterator[tuple[Sentence, str]]:
    """The sentences of a paper's text, in order, each with its words; references are left out."""
    section, number, reading = "", 0, True
    for paragraph in re.split(r"\n\s*\n", text):
        paragraph = "\n".join(line for line in paragraph.splitlines() if "\t" not in line).strip()
        if not paragraph:
            continue
        if HEADING.match(paragraph):
            first = re.sub(r"<[^>]+>|[#*]", "", paragraph.splitlines()[0]).strip()
            section = re.sub(r"^(\d{3,4} )+", "", first)[:60]
            reading = not re.match(r"(?i)(\d+\.?\s*)?(references|acknowledg)", section)
            paragraph = "\n".join(paragraph.splitlines()[1:])
        caption = re.match(r"\W*(Figure|Table|Fig\.|Tab\.)\s*\w+[.:]", paragraph)
        for words, equation in pieces(paragraph) if reading else ():
            number += 1
            kind = "equation" if equation else "caption" if caption else "sentence"
            yield Sentence(number, section, kind, mark(words)), words


def pieces(paragraph: str) -> Iterator[tuple[str, bool]]:
    """The sentences and set-off equations of a paragraph, each with whether it is an equation."""
    for part in re.split(r"(\$\$.+?\$\$)", paragraph, flags=re.S):
        if part.startswith("$$"):
            yield " ".join(part.split()), True
            continue
        sentence = ""
        for word in part.split():
            sentence = f"{sentence} {word}".strip()
            if re.search(r"[.!?][)\"”*]*$", word) and not ABBREVIATIONS.search(sentence):
                if re.search(r"[A-Za-z]{2}", sentence):
                    yield sentence, False
                sentence = ""
        if re.search(r"[A-Za-z]{2}", sentence):
            yield sentence, False


def mark(words: str) -> str:
    """Eight digits by which a sentence is found in a text, however it is broken and spaced."""
    return hashlib.sha256(LETTERS.sub("", words).lower().encode()).hexdigest()[:8]


def read_sentences(paper: str) -> list[Sentence]:
    """The rows of a paper's `sentences.csv`.

    Raises:
        BadInput: a row has another kind or outcome, a held one says nothing, or one is missing.
    """
    path = MANIFESTS / "papers" / paper / "sentences.csv"
    with path.open(newline="", encoding="utf-8") as file:
        rows = [Sentence(**{**row, "number": int(row["number"])}) for row in csv.DictReader(file)]
    for row, number in zip(rows, range(1, len(rows) + 1), strict=True):
        choose("kind of a sentence", row.kind, KINDS)
        choose("outcome of a sentence", row.outcome, [*HELD, *REASONS])
        held, differs = row.outcome in HELD, row.outcome in DIFFERING
        told = bool(row.says and row.against)
        ruled = row.finding not in UNRULED if row.outcome != "differs" else bool(row.finding)
        if row.number != number or held != told or differs != bool(row.why) or not ruled:
            raise BadInput(
                f"row {row.number} of {paper}/{path.name}: rows count on from 1; one that was held "
                f"against something has `says` and `against`, and one that differs has `why` and "
                f"`finding`: an audited statement, a claim, or one of {', '.join(UNRULED)}."
            )
    return rows


def second_reading(drawn: str) -> list[tuple[Sentence, str]]:
    """The sentences that were drawn at random and read a second time without the table, each with
    the outcome of that reading.

    Args:
        drawn: "any", of all sentences; or "differs" or "holds", of those with this outcome.
    """
    tables = {}
    with (MANIFESTS / "papers" / "second_reading.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["drawn"] == drawn]
    for row in rows:
        tables.setdefault(row["paper"], read_sentences(row["paper"]))
    return [(tables[row["paper"]][int(row["number"]) - 1], row["outcome"]) for row in rows]


def found_in(paper: str, text: str) -> Iterator[tuple[Sentence, str]]:
    """The rows of a paper's table, each with its words in a text of the paper.

    Raises:
        BadInput: the text has other sentences.
    """
    rows, there = read_sentences(paper), list(numbered(text))
    for row, (own, words) in zip(rows, there):
        if row.mark != own.mark:
            raise BadInput(f"sentence {row.number} is another one in this text of {paper}: {words}")
        yield row, words
    if len(rows) != len(there):
        raise BadInput(f"this text of {paper} has {len(there)} sentences, its table {len(rows)}.")


def misquoted(paper: str, text: str) -> Iterator[tuple[str, str]]:
    """What claims quote that is not in a text of the paper, letter by letter: ids and words.

    Line numbers, tags, addresses of links, spaces and signs do not count; brackets and "…" set
    apart what is ours.
    """
    plain = re.sub(r"<[^>]+>|\(#[^)]*\)|(?<![\d.])\b(?:\d{3,4} )+(?=[A-Za-z])", "", text)
    there = [LETTERS.sub("", one).lower() for one in (text, plain)]
    for claim in papers.claims(paper):
        for quote in re.findall("“([^”]*)”", claim.printed):
            for part in re.split(r"…|\[[^\]]*\]", quote):
                if not any(LETTERS.sub("", part).lower() in one for one in there):
                    yield claim.id, part.strip()


def main() -> None:
    """Print a paper's sentences from its text, each with what the table says of it, and what claims
    quote that is not there."""
    parser = argparse.ArgumentParser(prog="python -m visbook.auditing.sentences")
    parser.add_argument("paper", help="slug of a paper")
    parser.add_argument("text", type=Path, help="its text, as Markdown")
    told = parser.parse_args()
    text = told.text.read_text(encoding="utf-8")
    for row, words in found_in(told.paper, text):
        print(f"{row.number}\t{row.outcome}\t{row.against}\t{words}")
    for id, words in misquoted(told.paper, text):
        print(f"{id}: not in this text: {words}", file=sys.stderr)


if __name__ == "__main__":
    main()
