"""What CONTRIBUTING.md shows can be run as it stands there."""

import re
import shlex
import textwrap

import pytest
from bs4 import BeautifulSoup
from sites import ROOT

from visbook.chapters.chapter import Chapter
from visbook.pages import page as page_module
from visbook.studies import statistics
from visprompt.__main__ import main, parse

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
for place, name in {"<slug>": "vpt-deep", "<name>": "benchmark", "<page>": "spt"}.items():
    TEXT = TEXT.replace(place, name)
WORDS = [word.replace("\n", " ") for word in re.findall(r"`([^`]+)`", TEXT)]
COMMANDS = [shlex.split(words)[1:] for words in WORDS if words.startswith("visprompt ")]
MADE = [shlex.split(words)[1:] for words in WORDS if words.startswith("make ")]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_is_one(words):
    parse(words)


def test_the_list_of_outdated_records_is_shown(capsys):
    assert ["runs", "--outdated"] in COMMANDS and main(["runs", "--outdated"]) == 0
    assert capsys.readouterr().out


def test_what_make_is_asked_for_is_there():
    targets = re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert len(MADE) > 5 and {target for target, *_ in MADE} <= set(targets)
    named = re.findall(r"tests/\w+\.py", TEXT)
    assert len(named) > 5 and all((ROOT / name).is_file() for name in named)


def test_the_snippet_of_a_study_shows_a_table_of_its_numbers(monkeypatch):
    """On kept runs, as a page has them."""
    (snippet,) = re.findall(r"(?m)(?:^    .*\n)+", TEXT)
    shown = []
    monkeypatch.setattr(page_module, "display", lambda html: shown.append(html.data))
    chapter = Chapter.opened("spt", {"profile": "quick"}, ["benchmark"])
    exec(
        textwrap.dedent(snippet),
        {"chapter": chapter, "page": chapter.page, "statistics": statistics},
    )
    (figure,) = shown
    head, *rows = BeautifulSoup(figure, "html.parser").find_all("tr")
    assert len(rows) > 5 and len(head.find_all("th")) < 9
    for row in rows:
        name, *cells, _seeds = (cell.get_text() for cell in row.find_all("td"))
        assert "(" not in name and all(re.fullmatch(r"–|\d+\.\d ± \d+\.\d", cell) for cell in cells)
