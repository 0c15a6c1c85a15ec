"""Every notebook on the pretended card: from the kept records, and from none at a small size."""

from dataclasses import replace
from pathlib import Path

import jupytext
import matplotlib.pyplot as plt
import pytest
from pretended_card import PretendedCard

import visprompt
from visprompt import records
from visprompt.data import tasks

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.py"))


def executed(name: str, given: dict) -> PretendedCard:
    """The card after a notebook's cells were run on it, in this process."""
    cells = [
        c for c in jupytext.read(ROOT / "notebooks" / f"{name}.py").cells if c.cell_type == "code"
    ]
    variables = {"__name__": "__main__"}
    with PretendedCard() as card:
        for number, cell in enumerate(cells):
            exec(compile(cell.source, f"{name}, cell {number}", "exec"), variables)
            if "parameters" in cell.metadata.get("tags", []):
                assert "device" in variables
                variables |= {"device": "cuda", **given}
    plt.close("all")
    return card


def few(load):
    """Tasks with so few images that a fit is a matter of steps."""

    def loaded(*args, **kwargs):
        task = load(*args, **kwargs)
        cut = {
            part: tuple(x[:40] for x in getattr(task, part)) for part in ("train", "val", "test")
        }
        return replace(task, **cut)

    return loaded


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    (folder / "book").symlink_to(ROOT / "book")
    return folder


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_page_of_kept_records_is_made_on_a_card(name, kept, monkeypatch):
    monkeypatch.setattr(records.store, "ROOT", kept)
    monkeypatch.setattr(visprompt, "load_task", few(tasks.load_task))
    executed(name, {})
