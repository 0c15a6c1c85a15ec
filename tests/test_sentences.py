"""The tables of sentences: numbered as a text is read, whole, and refused where a row says less
than it must."""

import csv
import itertools
import re
from collections import Counter
from dataclasses import asdict, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visbook.auditing import sentences
from visbook.auditing.sentences import (
    DIFFERING,
    HELD,
    UNRULED,
    Sentence,
    numbered,
    read_sentences,
)
from visbook.site import sentence_pages
from visprompt import papers
from visprompt.errors import BadInput
from visprompt.paths import MANIFESTS

TEXT = """# Of prompts

## Abstract

Prompts are few, e.g. ten (Jia et al. 2022). As Fig. 2 shows, they help!

$$ x = y $$

Figure 1. Ten prompts. They are *blue*.

a\tb
1\t2

4.1 Data

Pets has 37 classes

## References

Nobody. A title. 2020.

A Proofs

Then x is y."""


def test_sentences_captions_and_equations_are_told_apart():
    found = [(row.section, row.kind, words) for row, words in numbered(TEXT)]
    assert found == [
        ("Abstract", "sentence", "Prompts are few, e.g. ten (Jia et al. 2022)."),
        ("Abstract", "sentence", "As Fig. 2 shows, they help!"),
        ("Abstract", "equation", "$$ x = y $$"),
        ("Abstract", "caption", "Figure 1."),
        ("Abstract", "caption", "Ten prompts."),
        ("Abstract", "caption", "They are *blue*."),
        ("4.1 Data", "sentence", "Pets has 37 classes"),
        ("A Proofs", "sentence", "Then x is y."),
    ]
    assert [row.number for row, _ in numbered(TEXT)] == list(range(1, 9))


@given(st.lists(st.sampled_from([" ", "\n", "  "]), min_size=3, max_size=3))
def test_a_sentence_is_found_however_it_is_broken(spaces):
    words = ["Prompts", "are", "few.", ""]
    broken = "".join(a + b for a, b in zip(words, [*spaces, ""]))
    assert [row.mark for row, _ in numbered(broken)] == [sentences.mark("Prompts are few.")]


@pytest.mark.parametrize("paper", papers.papers())
def test_every_sentence_of_a_paper_has_an_outcome(paper):
    rows = read_sentences(paper)
    ids = {claim.id for claim in papers.claims(paper)}
    assert len(rows) > 300 and len({row.mark for row in rows}) > 0.9 * len(rows)
    assert sum(row.outcome in HELD for row in rows) > len(rows) / 2
    assert all(len(row.says.split()) <= 32 for row in rows)
    claimed = [row.finding for row in rows if row.finding.split(".")[1:2] not in ([], ["text"])]
    assert sum(id in ids for id in claimed) > 0


def test_every_finding_that_a_row_names_is_there():
    from visbook.auditing import audit

    verdicts = audit().set_index("id").verdict
    known = {*verdicts.index} | {claim.id for claim in papers.claims()} | {*UNRULED}
    named = [row for paper in papers.papers() for row in read_sentences(paper) if row.finding]
    assert {row.finding for row in named} <= known
    for (
        row
    ) in named:  # a finding may mark another place of what differs, but not say that it agrees
        assert row.outcome not in DIFFERING or verdicts.get(row.finding) != "agrees", row.finding


def test_the_page_says_how_often_a_second_reading_agreed():
    told = sentence_pages.second({}, None)
    pairs = sentences.second_reading("any")
    assert len({(row.mark, row.number) for row, _ in pairs}) == len(pairs) == 40
    assert f"{sum(row.outcome == outcome for row, outcome in pairs)} had the same" in told
    later = sentences.second_reading("later")
    assert not {(row.mark, row.number) for row, _ in later} & {(r.mark, r.number) for r, _ in pairs}
    same = sum(row.outcome == outcome for row, outcome in later)
    opposite = sum((row.outcome in DIFFERING) != (outcome in DIFFERING) for row, outcome in later)
    assert len(later) == 40 and f"{same} had the same outcome, and {opposite} differed" in told
    again = [outcome in DIFFERING for _, outcome in sentences.second_reading("differs")]
    assert len(again) == 30 and f"sentences that differ, {sum(again)} also differed" in told
    held = [outcome == "holds" for _, outcome in sentences.second_reading("holds")]
    assert len(held) == 30 and f"hold, {sum(held)} held" in told


def write(tmp_path, monkeypatch, **changes):
    row = asdict(Sentence(1, "1", "sentence", "0" * 8, "says", "2", "differs", "name", "why"))
    folder = tmp_path / "papers" / "own"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "sentences.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Sentence)])
        writer.writeheader()
        writer.writerow(row | changes)
    monkeypatch.setattr(sentences, "MANIFESTS", tmp_path)
    return read_sentences("own")


@pytest.mark.parametrize(
    "changes",
    [
        {"number": 2},
        {"kind": "title"},
        {"outcome": "perhaps"},
        {"says": ""},
        {"against": ""},
        {"why": ""},
        {"finding": ""},
        {"outcome": "mended"},
        {"outcome": "holds"},
        {"outcome": "background"},
    ],
)
def test_a_row_that_says_less_or_more_than_it_must_is_refused(tmp_path, monkeypatch, changes):
    assert len(write(tmp_path, monkeypatch)) == 1
    with pytest.raises(BadInput, match="sentence|row"):
        write(tmp_path, monkeypatch, **changes)


def test_a_text_finds_its_rows_and_another_is_refused(tmp_path, monkeypatch):
    write(tmp_path, monkeypatch, mark=sentences.mark("Prompts are few."))
    [(row, words)] = sentences.found_in("own", "Prompts are few.")
    assert words == "Prompts are few." and row.outcome == "differs"
    for text in ("Prompts are many.", "Prompts are few. They help."):
        with pytest.raises(BadInput, match="this text of own"):
            list(sentences.found_in("own", text))


def test_what_claims_quote_is_looked_for_in_a_text(monkeypatch, tmp_path, capsys):
    claims = papers.claims("spt")
    quoted = [replace(c, printed="“Prompts are … blue [here]”: 2 of 3") for c in claims[:1]]
    monkeypatch.setattr(sentences.papers, "claims", lambda paper: quoted)
    assert not [*sentences.misquoted("spt", "Many prompts\nare 023 024 quite\nblue.")]
    assert [*sentences.misquoted("spt", "Prompts are red.")] == [(claims[0].id, "blue")]
    path = tmp_path / "text.md"
    path.write_text("Prompts are few.")
    write(tmp_path, monkeypatch, mark=sentences.mark("Prompts are few."))
    monkeypatch.setattr("sys.argv", ["sentences", "own", str(path)])
    sentences.main()
    told = capsys.readouterr()
    assert told.out.startswith("1\tdiffers") and told.err == (
        f"{claims[0].id}: not in this text: blue\n"
    )


def test_quotations_of_one_place_do_not_contradict_each_other():
    """Two verbatim pieces of a sentence that share five words go on alike where both go on."""
    compared = 0
    for paper in papers.papers():
        folder = MANIFESTS / "papers" / paper
        with (folder / "prose.csv").open(newline="", encoding="utf-8") as file:
            prose = [words(row["quote"]) for row in csv.DictReader(file)]
        for claim in papers.claims(paper):
            for quote in re.findall("“([^”]*)”", claim.printed):
                for part in re.split(r"…|\[[^\]]*\]", quote):
                    for other in prose:
                        compared += alike(words(part), other, claim.id)
    assert compared > 40


# Each is said in two places, in two ways.
TWICE = {"spt.table-2.wins-over-full", "spt.table-2.largest-gain"}


def words(text: str) -> list[str]:
    return re.findall(r"[\w+%.-]+", text.replace("×", "x"))


def alike(one: list[str], other: list[str], id: str) -> int:
    """1 if both share five words on end; they must then share all up to an end of either."""
    for i, j in itertools.product(range(len(one) - 4), range(len(other) - 4)):
        if one[i : i + 5] == other[j : j + 5]:
            back, on = min(i, j), min(len(one) - i, len(other) - j)
            same = one[i - back : i + on] == other[j - back : j + on]
            assert same or id in TWICE, f"{id}: {one} against {other}"
            return 1
    return 0


def test_the_page_says_which_sentences_that_differ_have_no_rule():
    off = [r for p in papers.papers() for r in read_sentences(p) if r.outcome == "differs"]
    told = sentence_pages.coverage({}, None)
    unruled = Counter(row.finding for row in off if row.finding in UNRULED)
    ruled = len(off) - unruled.total()
    assert f"Of {len(off)} sentences that differ, {ruled} have a finding or a claim" in told
    assert ruled > 2 * unruled.total()
    assert all(f"{unruled[word]} times {text}" in told for word, text in UNRULED.items())


def test_the_page_counts_what_the_table_has():
    for paper in papers.papers():
        rows = read_sentences(paper)
        shown = sentence_pages.sentences({"findings": [], "claims": {}}, None, paper)
        count = Counter(row.outcome for row in rows)
        differing = sum(count[word] for word in DIFFERING)
        assert f"{sum(count[word] for word in HELD)} could be compared" in shown
        assert (
            f"These {differing} sentences" in shown
            and f"{count['differs']} differ as they are written" in shown
            and shown.count("<tr>") == differing + 1
        )
