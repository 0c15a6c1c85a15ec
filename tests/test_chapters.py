"""Chapters: their parameters are checked, narrowed and missing runs do not stop them, real images find their place."""

import pandas as pd
import pytest

from visprompt import chapters
from visprompt.chapters import Chapter, ChapterParameters
from visprompt.errors import BadInput
from visprompt.notebook import Page


@pytest.mark.parametrize(("given", "message"), [
    ({"methods": ["vpt-depe"]}, "Did you mean 'vpt-deep'"),
    ({"studies": ["benchmrk"]}, "Did you mean 'benchmark'"),
    ({"tasks": []}, "parameter tasks is an empty list; leave it out"),
    ({"seeds": []}, "parameter seeds is an empty list"),
    ({"profile": "paper"}, "give -p data_dir FOLDER"),
    ({"profile": "papers"}, "profile"),
])  # fmt: skip
def test_impossible_parameters_say_what_to_write(given, message):
    with pytest.raises(BadInput, match=message):
        ChapterParameters(**given)


def test_profiles_fill_what_is_left_out():
    quick, paper = ChapterParameters(), ChapterParameters(profile="paper", data_dir="data")
    assert (quick.seeds, quick.search, quick.studies) == ([0], False, [])
    assert (paper.seeds, paper.search, paper.studies) == ([0, 1, 2, 3, 4], True, None)


@pytest.mark.parametrize("given", [
    {"tasks": ["position"]}, {"methods": ["vpt-deep"]}, {"backbone": "vit_nano_patch4_24"}, {"search": True},
    {"seeds": [7], "tasks": ["position"]},
])  # fmt: skip
def test_a_narrowed_chapter_runs_its_studies(given):
    assert ChapterParameters(**given).studies is None
    assert ChapterParameters(**given, studies=[]).studies == []  # only shows what is kept


def test_what_is_run_is_shown():
    own = ChapterParameters(seeds=[7])
    assert (own.studies, own.kept_seeds) == ([], [0, 1, 2, 3, 4, 7])  # the quick part with another seed
    assert ChapterParameters(seeds=[7], kept_seeds=[1]).kept_seeds == [1]


def test_tasks_without_studies_leave_their_runs(stores):
    p = ChapterParameters(tasks=["position"], methods=["linear-probe"], epochs=1)
    frame = Chapter(Page("spt", p), p, ["benchmark"], ["vpt-deep"]).rows("benchmark")
    assert list(frame.variant) == ["Linear probe"] and list(frame.task) == ["position"] and list(frame.seed) == [0]


@pytest.fixture
def chapter(stores, monkeypatch):
    """A chapter of the quick profile on one task and two methods, without any run."""
    p = ChapterParameters(tasks=["position"], methods=["linear-probe", "vpt-deep"], studies=[])
    return Chapter(Page("spt", p), p, ["benchmark"], ["vpt-deep"])


def test_a_chapter_without_runs_is_empty_and_judges_nothing(chapter):
    frame = chapter.rows("benchmark", variants=["VPT-Deep"], tasks="benchmark", part="supervised")
    assert not len(frame) and {"variant", "task", "seed", "group"} <= set(frame.columns)
    chapter.judge("spt.table-3.deep-over-vpt-deep", frame, "SPT-Deep", "VPT-Deep")
    assert chapter.page.claims == {}
    chapter.paper_scale("spt.table-3", "Needs data.", "benchmark")
    command = chapter.page.artifacts["spt.table-3"]["not_run"]["command"]
    assert command == 'make notebook NAME=spt PROFILE=paper ARGS="-p data_dir FOLDER -p studies \'[benchmark]\'"'


def test_a_chapter_shows_each_run_once(chapter, stores):
    chapter.p = ChapterParameters(tasks=["position"], methods=["linear-probe"], studies=["benchmark"], seeds=[0], epochs=1)
    chapter.lab = chapters.Lab(chapters.Bench(changes={"epochs": 1}))
    chapter.cast = chapters.studies.cast("quick", tasks=["position"], methods=["linear-probe"])
    frame = chapter.rows("benchmark")
    assert list(frame.variant) == ["Linear probe"] and list(frame.seed) == [0]
    assert "vit_micro_patch4_24; 1 seed a cell" in chapter.how(frame)
    assert chapter.how(frame).startswith("Small backbones and tasks of this project")
    assert not len(chapter.rows("benchmark", part="mae"))


def test_real_images_are_shown_where_records_are_kept(chapter, monkeypatch, capsys):
    chapter.real_images()
    assert "No such run is kept yet" in shown(monkeypatch, chapter)
    monkeypatch.setattr(chapters, "REAL", "vit_micro_patch4_24")
    lab = chapters.Lab(chapters.Bench(changes={"epochs": 1}))
    for seed in (0, 1):
        lab.do(chapters.studies.Run("vit_micro_patch4_24", "position", "linear-probe", seed))
    page = shown(monkeypatch, chapter)
    assert "Linear probe" in page and "not VTAB-1k&#x27;s own" in page and "More of this" in page


def shown(monkeypatch, chapter):
    """The HTML that real_images displays."""
    found = []
    for module in ("visprompt.chapters", "visprompt.notebook"):
        monkeypatch.setattr(f"{module}.display", lambda thing, **_: found.append(getattr(thing, "data", "")))
    chapter.real_images()
    return "".join(found)


def test_a_task_that_no_variant_learned_is_named():
    rows = [("letters", "a", 7.0), ("letters", "a", 7.8), ("position", "a", 30.0), ("letters", "b", 7.8), ("dtd10", "a", 1.0)]
    frame = pd.DataFrame([{"task": t, "backbone": b, "variant": "VPT-Deep", "test": v} for t, b, v in rows])
    assert chapters.near_chance(frame) == ["letters on a"]  # 26 classes: twice chance is 7.69
