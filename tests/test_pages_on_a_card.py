"""Notebooks on the pretended card: from the kept records, from half of them, and from none at a
small size."""

import os
from dataclasses import replace
from pathlib import Path

import jupytext
import matplotlib.pyplot as plt
import pytest
from pretended_card import PretendedCard
from sites import drawn

import visprompt
from visbook.studies import lab
from visbook.theory import shallow_training
from visprompt import records
from visprompt.data import tasks

ROOT = Path(__file__).parents[1]
# one_cell fetches, and has a test of its own; batch does runs of the paper profile alone
APART = {"one_cell", "batch"}
NOTEBOOKS = sorted({path.stem for path in (ROOT / "notebooks").glob("*.py")} - APART)


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


# other pages for every commit; with VISPROMPT_PAGES=1 all of them, some 15 minutes of a processor
EVERY = bool(os.environ.get("VISPROMPT_PAGES"))


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    (folder / "book").symlink_to(ROOT / "book")
    return folder


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    return tmp_path_factory.mktemp("empty")


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """Every other kept fit, as in a sweep that goes on, and all else that is kept."""
    folder = tmp_path_factory.mktemp("half") / "book" / "records"
    for kind in (ROOT / "book" / "records").iterdir():
        if kind.name != "tune":
            folder.mkdir(parents=True, exist_ok=True)
            (folder / kind.name).symlink_to(kind)
            continue
        for path in sorted(kind.rglob("*.json"))[::2]:
            to = folder / "tune" / path.relative_to(kind)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.symlink_to(path)
    return folder.parents[1]


@pytest.mark.parametrize("name", NOTEBOOKS if EVERY else drawn(NOTEBOOKS, 4))
def test_a_page_of_kept_records_is_made_on_a_card(name, kept, monkeypatch):
    monkeypatch.setattr(records.store, "ROOT", kept)
    monkeypatch.setattr(visprompt, "load_task", few(tasks.load_task))
    executed(name, {})


PAGES = {name: (ROOT / "notebooks" / f"{name}.py").read_text("utf-8") for name in NOTEBOOKS}
SWEPT = ["why_different", *(name for name in NOTEBOOKS if "Chapter.opened(" in PAGES[name])]


@pytest.mark.parametrize("name", SWEPT if EVERY else drawn(SWEPT, 1))
def test_a_page_of_half_the_kept_fits_is_made(name, half, monkeypatch):
    monkeypatch.setattr(records.store, "ROOT", half)
    monkeypatch.setattr(visprompt, "load_task", few(tasks.load_task))
    monkeypatch.setattr(lab, "load_task", few(tasks.load_task))
    executed(name, {})


# what a page is narrowed to: its paper's own method on one task, for one epoch
NARROW = {"tasks": ["position"], "seeds": [0], "kept_seeds": [0], "epochs": 1, "search": False}
# their fits ask for networks that have learned, which runs that are cut off have not
LEARNS = {"shallow_vit", "shallow_vit_attention", "shallow_vit_theorem"}
OWN = {"ap": "ap", "davpt": "da-vpt", "ivpt": "ivpt", "spt": "spt-deep", "small": "linear-probe"}


def smallest(name: str) -> dict | None:
    """Parameters of a page of which all runs are made anew; None where none is on a device."""
    if name.startswith(("ap_theory", "first_steps", "methods", "cost", "ap_cost")):
        return None
    if name in LEARNS:
        return None
    if name.startswith("shallow"):
        return {"seeds": [0, 1, 2], "neurons": 4}
    of_ap = {
        "ap": "ap-full",
        "ap_layers": "ap-layers",
        "ap_others": "ap-others",
        "ap_peft": "ap-peft",
    }
    own = OWN.get(name.split("_")[0], "vpt-deep")
    return {**NARROW, "methods": [own], "studies": [of_ap.get(name, "benchmark")]}


def short(run_trials):
    """Trials that are cut off after some steps."""

    def run(trials, **more):
        cut = [(replace(s, max_steps=3, test_size=4), seed) for s, seed in trials]
        return run_trials(cut, **more)

    return run


NARROWED = [name for name in NOTEBOOKS if smallest(name)]


@pytest.mark.parametrize("name", NARROWED if EVERY else drawn(NARROWED, 2))
def test_a_page_without_records_is_made_on_a_card(name, empty, monkeypatch):
    monkeypatch.setattr(records.store, "ROOT", empty)
    monkeypatch.setattr(lab, "load_task", few(tasks.load_task))
    monkeypatch.setattr(shallow_training, "run_trials", short(shallow_training.run_trials))
    executed(name, smallest(name))
