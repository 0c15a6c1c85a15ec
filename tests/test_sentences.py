"""The tables of sentences: numbered as a text is read, whole, and refused where a row says less
than it must."""

import csv
from collections import Counter
from dataclasses import asdict, fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visbook.auditing import sentences
from visbook.auditing.sentences import DIFFERING, HELD, Sentence, numbered, read_sentences
from visbook.site import sentence_pages
from visprompt import papers
from visprompt.errors import BadInput

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
    known = {*verdicts.index} | {claim.id for claim in papers.claims()}
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
    again = [outcome in DIFFERING for _, outcome in sentences.second_reading("differs")]
    assert len(again) == 30 and f"sentences that differ, {sum(again)} also differed" in told
    held = [outcome == "holds" for _, outcome in sentences.second_reading("holds")]
    assert len(held) == 30 and f"that hold, {sum(held)} held again" in told


def write(tmp_path, monkeypatch, **changes):
    row = asdict(Sentence(1, "1", "sentence", "0" * 8, "says", "2", "differs", "", "why"))
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


def test_the_page_counts_what_the_table_has():
    for paper in papers.papers():
        rows = read_sentences(paper)
        shown = sentence_pages.sentences({"findings": [], "claims": {}}, None, paper)
        count = Counter(row.outcome for row in rows)
        differing = sum(count[word] for word in DIFFERING)
        assert f"{sum(count[word] for word in HELD)} could be compared" in shown
        assert (
            f"These {differing} sentences" in shown
            and f"{count['differs']} differ as they" in shown
            and shown.count("<tr>") == differing + 1
        )
