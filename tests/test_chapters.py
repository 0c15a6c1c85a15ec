"""Chapters: their parameters are checked, narrowed and missing runs do not stop them, real images
find their place."""

import base64
import html
import itertools
from dataclasses import asdict, replace
from types import SimpleNamespace

import nbformat
import numpy as np
import pandas as pd
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from PIL import Image

from visbook.chapters import (
    attention_viewer,
    davpt,
    ivpt,
    ivpt_parts,
    photographs_first,
    real,
    real_findings,
    small_world,
    spt,
    spt_starts,
)
from visbook.chapters import chapter as chapters
from visbook.chapters import small_and_real as two_legs
from visbook.chapters.chapter import Chapter
from visbook.chapters.parameters import ChapterParameters
from visbook.pages.page import Page
from visbook.site import rerun_box
from visbook.studies import comparable, grids, plan, statistics
from visbook.studies.case import Run
from visprompt import records
from visprompt.errors import BadInput
from visprompt.training.recipe import Recipe


@pytest.mark.refused
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"methods": ["vpt-depe"]}, "Did you mean 'vpt-deep'"),
        ({"studies": ["benchmrk"]}, "Did you mean 'benchmark'"),
        ({"tasks": []}, "parameter tasks is an empty list; leave it out"),
        ({"seeds": []}, "parameter seeds is an empty list"),
        ({"profile": "papers"}, "profile"),
    ],
)
def test_impossible_parameters_say_what_to_write(given, message):
    with pytest.raises(BadInput, match=message):
        ChapterParameters(**given)


def test_profiles_fill_what_is_left_out():
    quick, paper = ChapterParameters(), ChapterParameters(profile="paper", data_dir="data")
    assert (quick.seeds, quick.search, quick.studies) == ([0], False, [])
    assert (paper.seeds, paper.search, paper.studies) == ([0, 1, 2, 3, 4], True, None)


@pytest.mark.parametrize(
    "given",
    [
        {"tasks": ["position"]},
        {"methods": ["vpt-deep"]},
        {"backbone": "vit_nano_patch4_24"},
        {"search": True},
        {"seeds": [7], "tasks": ["position"]},
    ],
)
def test_a_narrowed_chapter_runs_its_studies(given):
    assert ChapterParameters(**given).studies is None
    assert ChapterParameters(**given, studies=[]).studies == []  # only shows what is kept


def test_what_is_run_is_shown():
    own = ChapterParameters(seeds=[7])
    # the quick part with another seed
    assert (own.studies, own.kept_seeds) == ([], [0, 1, 2, 3, 4, 7])
    assert ChapterParameters(seeds=[7], kept_seeds=[1]).kept_seeds == [1]


@pytest.mark.refused
def test_a_study_that_a_page_does_not_show_is_refused():
    p = ChapterParameters(studies=["spt-starts"])
    with pytest.raises(BadInput, match="study of this page.*spt-starts.*benchmark"):
        Chapter(Page("spt", p), p, ["benchmark"], [])


def test_tasks_without_studies_leave_their_runs(stores):
    p = ChapterParameters(tasks=["position"], methods=["linear-probe"], epochs=1)
    frame = Chapter(Page("spt", p), p, ["benchmark"], ["vpt-deep"]).rows("benchmark")
    assert (
        list(frame.variant) == ["Linear probe"]
        and list(frame.task) == ["position"]
        and list(frame.seed) == [0]
    )


@pytest.fixture
def chapter(stores, monkeypatch):
    """A chapter of the quick profile on one task and two methods, without any run."""
    p = ChapterParameters(tasks=["position"], methods=["linear-probe", "vpt-deep"], studies=[])
    return Chapter(Page("spt", p), p, ["benchmark"], ["vpt-deep"])


def test_a_chapter_without_runs_is_empty_and_judges_nothing(chapter):
    frame = chapter.rows("benchmark", variants=["VPT-Deep"], tasks="benchmark", part="supervised")
    assert not len(frame) and {"variant", "task", "seed", "group"} <= set(frame.columns)
    chapter.judge("spt.table-3.deep-over-vpt-deep", frame, "SPT-Deep", "VPT-Deep", on="fine")
    assert chapter.page.claims == {}
    chapter.end("spt.table-3", "Needs data.")
    command = chapter.page.artifacts["spt.table-3"]["not_run"]["command"]
    assert (
        command == plan.command("spt.table-3")
        and "visprompt study spt.table-3 --profile paper" in command
    )


def test_what_is_made_of_no_run_says_so(chapter, monkeypatch):
    frame, of_nothing = chapter.rows("benchmark"), lambda rows: pytest.fail("it was made")
    assert chapter.how(frame) == "Not run."
    show = lambda: chapter.show("spt.table-3", of_nothing, frame, "A table.")
    page = shown(monkeypatch, chapter, lambda: [show(), show()])
    assert page.count("not run") == 1 and plan.command("spt.table-3", "quick") in page
    page = shown(monkeypatch, chapter, lambda: chapter.present(of_nothing, frame, "A table."))
    assert "not run" in page and "A table. This would run it: visprompt study benchmark" in page


def test_a_chapter_shows_each_run_once(chapter, stores):
    chapter.p = ChapterParameters(
        tasks=["position"], methods=["linear-probe"], studies=["benchmark"], seeds=[0], epochs=1
    )
    chapter.lab = chapters.Lab(chapters.LabSettings(changes={"epochs": 1}))
    chapter.scope = chapters.grids.scope_of("quick", tasks=["position"], methods=["linear-probe"])
    frame = chapter.rows("benchmark")
    assert list(frame.variant) == ["Linear probe"] and list(frame.seed) == [0]
    assert chapter.how(frame).startswith("vit_micro_patch4_24; 1 seed per cell")
    assert not len(chapter.rows("benchmark", part="mae"))


def test_real_images_are_shown_where_records_are_kept(chapter, monkeypatch, stores):
    real.real_images(chapter)
    assert "No such run is kept yet" in shown(monkeypatch, chapter)
    monkeypatch.setattr(real, "REAL", "vit_micro_patch4_24")
    lab = chapters.Lab(chapters.LabSettings(changes={"epochs": 1}))
    for seed in (0, 1):
        lab.do(Run("vit_micro_patch4_24", "position", "linear-probe", seed))
    # one's own runs are not kept ones
    assert "No such run is kept yet" in shown(monkeypatch, chapter)
    stores[1].mkdir(parents=True)
    (stores[0] / "tune").rename(stores[1] / "tune")
    page = shown(monkeypatch, chapter)
    assert (
        "Linear probe" in page
        and "not VTAB-1k&#x27;s own" in page
        and "To run more of this" in page
    )
    assert "position (800 training images, resizing: none)" in page and "VTAB-style" not in page


def test_runs_on_real_images_are_averaged_over_nothing_but_seeds(chapter, monkeypatch, stores):
    """85.4 ± 3.0 was made of one run with 100 images and one with 200."""
    monkeypatch.setattr(real, "REAL", "vit_micro_patch4_24")
    base = {
        "method": "vpt-deep",
        "method_settings": {"prompt_tokens": 2},
        "backbone": "vit_micro_patch4_24",
        "task": "dtd10",
        "normalisation": {"mean": [0.5] * 3, "std": [0.5] * 3},
        "train_size": 100,
        "resize": "direct",
        "image_size": 112,
        "seed": 0,
        "recipe": {"learning_rate": 0.01, "batch_size": 32, "epochs": 4},
    }
    other = {
        "train_size": 200,
        "image_size": 224,
        "resize": "crop",
        "normalisation": {"mean": [0.4] * 3, "std": [0.5] * 3},
        "recipe": {**base["recipe"], "batch_size": 64},
        "method_settings": {"prompt_tokens": 3},
        "prepared_on": "letters",
    }
    keep(stores, base, 80.0)
    keep(stores, {**base, "seed": 1}, 84.0)
    # worse on validation
    keep(stores, {**base, "recipe": {**base["recipe"], "learning_rate": 0.05}}, 99.0, val=10.0)
    for name, value in other.items():
        keep(stores, {**base, name: value}, 20.0)
    keep(stores, base, 20.0, data="other images")
    keep(stores, base, 20.0, weights="other weights")
    shown = []
    monkeypatch.setattr(
        chapter.page, "present", lambda table, **told: shown.append((table, told["how"]))
    )
    real.real_images(chapter)
    ((table, how),) = shown
    assert ", 4 epochs;" in how and "epochs" not in table  # what all rows have is said once
    accuracies = table["test accuracy, %"].astype(str).tolist()
    assert sorted(accuracies) == ["20.0"] * 9 + ["82.0 ± 2.8"]
    assert table.seeds.sum() == 11 and table["training images"].tolist().count(200) == 1
    # what the rows differ in is shown
    assert {"batch", "settings", "data", "weights", "pixels"} <= set(table.columns)


@pytest.mark.parametrize("order", [(0.05, 0.01), (0.01, 0.05)])
def test_of_equal_rates_the_one_with_all_seeds_is_shown(order):
    """Two rates of a linear probe had one validation accuracy, and the page showed the one that was
    not taken further."""
    seeds = {0.05: [0], 0.01: [0, 1, 2]}
    part = [
        SimpleNamespace(
            settings={"method": "vpt-deep", "seed": seed, "recipe": {"learning_rate": rate}},
            values={"val": 73.0},
        )
        for rate in order
        for seed in seeds[rate]
    ]
    best, tried = real.at_best_rate(sorted(part, key=lambda record: record.settings["seed"]))
    assert [record.settings["seed"] for record in best] == [0, 1, 2] and tried == [0.01, 0.05]


def keep(stores, settings, test, val=50.0, data="images", weights="weights"):
    """A kept record of a run."""
    key = records.key_of("tune", settings, data, weights)
    record = records.store.new_record(
        "tune", key, settings, {"test": test, "val": val}, 0.0, data=data, weights=weights
    )
    records.write_whole(
        stores[1] / records.store.place("tune", settings, key), records.store.as_text(record)
    )


def shown(monkeypatch, chapter, call=None):
    """The HTML that a call displays, real_images unless told."""
    found = []
    for module in ("visbook.chapters.chapter", "visbook.chapters.real", "visbook.pages.page"):
        monkeypatch.setattr(
            f"{module}.display", lambda thing, **_: found.append(getattr(thing, "data", ""))
        )
    (call or (lambda: real.real_images(chapter)))()
    return "".join(found)


def runs_of(tests):
    """Rows for `two_legs`: {variant: {task: a test accuracy for every seed}}."""
    rows = [
        {
            "backbone": "b",
            "task": task,
            "train_size": 100,
            "seed": seed,
            "variant": variant,
            "test": test,
            "record": None,
        }
        for variant, tasks in tests.items()
        for task, values in tasks.items()
        for seed, test in enumerate(values)
    ]
    return pd.DataFrame(rows)


UP = {
    "SPT-Deep": {"x": [60, 61, 62], "y": [70, 71, 72]},
    "VPT-Deep": {"x": [50, 50.5, 53], "y": [60, 61.5, 62]},
}
DOWN = {"SPT-Deep": UP["VPT-Deep"], "VPT-Deep": UP["SPT-Deep"]}
# above with one seed, below with others
MIXED = {"SPT-Deep": {"x": [60, 45, 52]}, "VPT-Deep": {"x": [50, 50.5, 53]}}


def drawn_chapter(rows: pd.DataFrame) -> SimpleNamespace:
    """A chapter with these rows on embedded tasks, of which every list of tasks has all."""
    tasks = dict.fromkeys(("ap", "vtab", "benchmark"), sorted({*rows.task}))
    scope = SimpleNamespace(tasks=tasks)
    return SimpleNamespace(rows=lambda study, part: rows, scope=scope)


@pytest.mark.parametrize(
    ("drawn_runs", "photographs", "said"),
    [
        (UP, UP, "both: seen here"),
        (DOWN, DOWN, "both: not seen here"),
        (UP, DOWN, "photographs: not seen here; embedded tasks: seen here"),
        (UP, MIXED, "photographs: open; embedded tasks: seen here"),
        (MIXED, UP, "photographs: seen here; embedded tasks: open"),
        ({"VPT-Deep": UP["VPT-Deep"]}, UP, "photographs: seen here"),
        (  # one seed has no interval
            UP,
            {"SPT-Deep": {"x": [60]}, "VPT-Deep": {"x": [50]}},
            "photographs: open; embedded tasks: seen here",
        ),
    ],
)
def test_two_legs_agree_differ_or_leave_it_open(monkeypatch, drawn_runs, photographs, said):
    monkeypatch.setattr(real, "photographs", lambda: runs_of(photographs))
    (leg,) = two_legs.legs(drawn_chapter(runs_of(drawn_runs)), ["spt"])
    assert (leg.better, leg.worse, leg.said) == ("SPT-Deep", "VPT-Deep", said)
    assert two_legs.table([leg])["the paper's direction"].tolist() == [said]
    assert "inf" not in two_legs.told(leg.photographs)
    two_legs.figure([leg])


def test_a_claim_takes_photographs_first_where_they_can_answer_it(stores, monkeypatch):
    known = {task: values for task, values in zip(("dtd10", "cifar100"), UP["SPT-Deep"].values())}
    below = {"VPT-Deep": {"dtd10": [50, 50.5, 53], "cifar100": [60, 61.5, 62]}}
    frame = runs_of({"SPT-Deep": known, **below})
    frame = frame.assign(record=[Kept(task, real.REAL) for task in frame.task])
    monkeypatch.setattr(real, "photographs", lambda: frame)
    chapter = Chapter(Page("spt", ChapterParameters()), ChapterParameters(), ["benchmark"], [])
    plain = chapter.scope.backbones["supervised"]
    drawn_runs = frame_of(chapter.scope.tasks["vtab"], [plain])
    claim, pair = "spt.table-s4.deep-over-vpt-deep", ("SPT-Deep", "VPT-Deep")
    shown(monkeypatch, chapter, lambda: chapter.judge(claim, drawn_runs, *pair, on="vtab"))
    found = chapter.page.claims[claim]
    photographs = statistics.gain(frame, *pair)
    assert (found["estimate"], found["verdict"]) == (photographs.mean, "seen here")
    assert "On embedded tasks +1.0" in found["note"] and "Real images: " in found["images"]
    # of fine-grained tasks and of another pre-training no photographs are kept
    asked = [("fine", ()), ("vtab", ["mae"]), ("vtab", ["supervised", "mae"])]
    assert not any(photographs_first.answer(chapter, drawn_runs, pair, *how) for how in asked)
    other = frame_of(["position"], [chapter.scope.backbones["mae"]])
    assert photographs_first.answer(chapter, other, pair, "vtab") is None


@pytest.mark.parametrize("runs", [UP, DOWN, MIXED])
def test_a_claim_and_every_table_of_its_pair_say_the_same(stores, monkeypatch, runs):
    """Each paper's pairs, in the table of the two legs and as claims on the page of the paper."""
    real_runs = {
        name: dict(zip(("dtd10", "gtsrb"), tests.values())) for name, tests in runs.items()
    }
    for paper, (_, pairs) in two_legs.COMPARED.items():
        p = ChapterParameters()
        chapter = Chapter(Page("spt", p), p, ["benchmark"], [])
        for pair in itertools.chain(*pairs.values()):
            frame = runs_of(dict(zip(pair, real_runs.values())))
            frame = frame.assign(record=[Kept(task, real.REAL) for task in frame.task])
            monkeypatch.setattr(real, "photographs", lambda frame=frame: frame)
            chapter.__dict__.pop("photographs", None)
            found = two_legs.legs(drawn_chapter(frame.iloc[:0]), [paper])
            leg = next(leg for leg in found if leg.better == pair[0])
            drawn_runs = frame_of(
                chapter.scope.tasks["vtab"], [chapter.scope.backbones["supervised"]], pair
            )
            claim = "spt.table-s2.over-first"  # any that asks for above 0, of one data set
            judge = lambda: chapter.judge(claim, drawn_runs, *pair, on="vtab")  # noqa: B023
            shown(monkeypatch, chapter, judge)
            verdict = chapter.page.claims[claim]["verdict"]
            assert leg.said == f"photographs: {verdict}"


def test_methods_on_photographs_stand_beside_vpt_deep_on_the_tasks_both_have(monkeypatch, chapter):
    """A task that one of the two lacks says nothing of it; of one task there is no interval for
    other tasks."""
    tests = {
        "VPT-Deep": {"dtd10": [50, 51, 52], "gtsrb": [60, 60, 60], "cifar100": [40, 41, 40]},
        "AP": {
            "dtd10": [60, 61, 62],
            "gtsrb": [64, 64, 64],
            "cifar100": [41, 42, 41],
            "ucmerced": [1, 1, 1],
        },
        "DA-VPT": {"gtsrb": [49, 50, 51]},
        "VP": {"ucmerced": [9, 9, 9]},
        "E2VPT": {
            "dtd10": [None, 71, 72]
        },  # without seed 0, and 20 above with each seed that both have
    }
    frame = runs_of(tests).dropna(subset="test")
    of_task = {"dtd10": 0.1, "gtsrb": 0.1, "cifar100": 0.5, "ucmerced": 0.02}
    frame["record"] = [
        SimpleNamespace(settings={"method": "vp", "recipe": {"learning_rate": of_task[task]}})
        for task in frame.task
    ]
    frame["tried"] = [[0.02, 0.1, 0.5]] * len(frame)
    monkeypatch.setattr(real, "photographs", lambda: frame)
    monkeypatch.setattr(real_findings, "MANY", 3)  # five are too many to follow by hand
    shown = []
    monkeypatch.setattr(chapter.page, "present", lambda thing, **told: shown.append((thing, told)))
    real_findings.show_methods(chapter, "methods")
    (figure, told), (accuracies, _), (leads, _) = shown
    rows = accuracies.merge(leads, on="method", validate="1:1").set_index("method")
    beyond = "interval over tasks as well"
    # as the study lists them
    assert rows.index.tolist() == ["VP", "AP", "VPT-Deep", "E2VPT", "DA-VPT"]
    assert (
        rows.loc["AP", "above VPT-Deep, on these tasks"]
        == "+5.0 [+4.3, +5.7]; above 0 on 3 of 3 tasks"
    )
    # squares of AP's seeds 2, 0 and 2/3, of VPT-Deep's the same, over six degrees of freedom each;
    # for other tasks mean of 10, 4 and 1, by hand: 4.303 * 4.583 / sqrt(3)
    assert rows.loc["AP", beyond] == "[−6.4, +16.4]"
    assert rows[beyond].drop("AP").tolist() == ["–"] * 4 and rows.loc["VP", "gtsrb"] == "–"
    assert (
        rows.loc["VP", "above VPT-Deep, on these tasks"] == "–"
        and rows.loc["VP", "ucmerced"] == "9.0 ± 0.0"
    )
    assert "Above VPT-Deep: AP and E2VPT. Below it: DA-VPT." in told["caption"] and len(
        told["records"]
    ) == len(frame)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [
        "AP",
        "E²VPT",
        "DA-VPT",
    ]
    marks = {line.get_label(): line.get_xdata() for line in figure.axes[0].lines}
    assert [*marks["DTD (ten classes)"]] == [10, 20] and [*marks["GTSRB"]] == [
        4,
        -10,
    ]  # seeds are paired
    assert rows[real_findings.CHOSEN].tolist() == [
        "1 / 0 / 0",
        "1 / 2 / 1",
        "0 / 2 / 1",
        "0 / 1 / 0",
        "0 / 1 / 0",
    ]
    assert statistics.names_of_fallen(frame) == []
    falls = runs_of({"AP": {"dtd10": [60, 31, 29]}, "VP": {"dtd10": [20, 20, 20]}})
    assert statistics.names_of_fallen(falls) == ["AP on dtd10, seed 2: 29.0 %"]
    frame = frame[frame.variant != "VPT-Deep"]
    real_findings.show_methods(chapter, "methods")
    assert len(shown) == 3  # nothing to stand beside


def test_precisions_are_paired_at_one_rate(monkeypatch, chapter):
    """A run at another rate is no partner."""

    def photographs(precision):
        rate, tests = (0.1, [70, 71, 72]) if precision == "bf16" else (0.1, [71, 71, 71])
        frame = pd.concat(
            [runs_of({"VPT-Deep": {"x": tests}}), runs_of({"AP": {"x": tests}})], ignore_index=True
        )
        frame["record"] = [
            SimpleNamespace(
                id=str(i),
                settings={
                    "method": "vpt-deep",
                    "recipe": {"learning_rate": rate + i // 3 * (precision == "bf16")},
                },
            )
            for i in range(len(frame))
        ]
        return frame

    monkeypatch.setattr(real, "photographs", photographs)
    tables = []
    monkeypatch.setattr(chapter.page, "present", lambda table, **more: tables.append((table, more)))
    real_findings.show_precisions(chapter)
    ((table, more),) = tables
    assert (
        table.method.tolist() == ["VPT-Deep"]
        and table.seeds.tolist() == [3]
        and len(more["records"]) == 6
    )
    assert table["bf16 − float32, points"].item().startswith("+0.0 [−2.5, +2.5]")


@pytest.mark.parametrize(
    ("gained", "signs"),
    [(2, (1, 1, 1)), (-1, (-1, -1, -1)), (-6, (-1, -1, -1))],  # supervised it loses 3
    ids=["gains", "loses less", "loses more"],
)
def test_gaining_even_more_asks_for_a_gain(monkeypatch, gained, signs):
    tests = {"x": [50.0, 50.2, 50.4], "y": [60.0, 60.2, 60.4]}
    above = lambda by: {task: [test + by for test in tests[task]] for task in tests}
    here = runs_of({"DA-VPT+": above(gained), "VPT-Deep": tests})
    there = runs_of({"DA-VPT+": above(-3), "VPT-Deep": tests})
    there.loc[there.variant == "DA-VPT+", "test"] += [0.1, -0.1, 0, 0, 0.1, -0.1]
    monkeypatch.setattr(davpt, "methods_on", lambda *_: here)
    page, found = SimpleNamespace(), []
    page.judge = lambda claim, *values, **_: found.append(values)
    chapter = SimpleNamespace(page=page, answers=lambda claim, rows, *_: rows, without=lambda _: "")
    davpt.judge_even_more(chapter, "mae", there)
    ((mean, low, high),) = found
    assert mean == pytest.approx(min(gained, gained + 3)) and low <= mean <= high
    assert tuple(np.sign([mean, low, high])) == signs


def test_what_is_compared_is_a_variant_of_both_studies():
    studies = chapters.grids.studies()
    for study, pairs in two_legs.COMPARED.values():
        for name in (study, "real"):
            asked = itertools.chain(*pairs.values())
            assert {one for pair in asked for one in pair} <= set(studies[name]["variants"])


def test_kept_photographs_are_one_setting_of_a_method_on_a_task():
    """Else a mean would run over what differs in more than the seed."""
    frame = real.photographs()
    assert not frame.duplicated(["variant", "task", "seed"]).any()
    kept = real.kept_rows("tune", backbone=real.REAL)
    cells = {(record.settings["method"], record.settings["task"]) for record in kept}
    assert {
        (row.record.settings["method"], row.task) for row in frame.itertuples()
    } == cells  # none is lost
    # as the page says
    assert set(frame.task) == set(frame.task[frame.variant == real_findings.BASE])


def test_a_seed_of_photographs_waits_until_no_run_of_it_is_missing():
    """Else methods that stand side by side would be means over different seeds."""
    kept = real.kept_rows("tune", backbone=real.REAL)
    seed = max(record.settings["seed"] for record in kept)
    best = [record for part in real.alike(kept) for record in real.at_best_rate(part)[0]]
    last = [record for record in best if record.settings["seed"] == seed]
    for lost in (
        next(r for r in last if r.settings["method"] == "vp"),
        next(r for r in last if r.settings["method_settings"].get("block") == 7),
    ):
        whole = real.of_whole_seeds([record for record in kept if record is not lost])
        assert whole == [record for record in kept if record.settings["seed"] < seed]
    more = [replace(best[0], settings=best[0].settings | {"seed": seed + 1})]
    assert real.of_whole_seeds([*kept, *more]) == kept and real.of_whole_seeds([]) == []


def photographs_by_block(tasks, blocks):
    """Rows as `real.photographs` gives them: AP at these blocks, and the linear probe."""
    same = {"backbone": real.REAL, "train_size": 100, "val": 50.0, "record": None}
    rows = [
        {
            **same,
            "task": task,
            "seed": seed,
            "variant": variant,
            "block": block,
            "test": 50.0 - (block or 0) * (1 + seed / 8),
        }
        for task in tasks
        for seed in range(3)
        for variant, block in [
            ("Linear probe", None),
            *((f"ap, block {block}", block) for block in blocks),
        ]
    ]
    return pd.DataFrame(rows)


def test_ap_by_block_on_photographs_is_shown_where_every_block_is_kept(monkeypatch, chapter):
    frame = pd.concat(
        [photographs_by_block(["dtd10"], range(12)), photographs_by_block(["gtsrb"], range(5))]
    )
    monkeypatch.setattr(real, "photographs", lambda every_block: frame)
    shown, lines = [], []
    monkeypatch.setattr(real_findings, "display", lambda thing: lines.append(thing.data))
    monkeypatch.setattr(
        chapter.page, "present", lambda figure, **told: shown.append((figure, told))
    )
    real_findings.show_blocks(chapter, "blocks")
    assert "not kept for gtsrb;" in lines.pop()
    ((figure, told),) = shown
    assert (
        len(figure.axes) == 1
        and "DTD (ten classes) −9.0 (seeds −10.0 to −8.0)" in told["how"]
        and "3 seeds" in told["how"]
    )
    assert len(told["records"]) == 13 * 3
    frame = photographs_by_block(["gtsrb"], range(5))
    real_findings.show_blocks(chapter, "blocks")
    assert "not kept for dtd10 and gtsrb;" in lines.pop() and len(shown) == 1


def test_of_ap_at_single_blocks_its_place_alone_is_a_run_of_the_study():
    kept = [
        SimpleNamespace(settings={"method_settings": given})
        for given in ({}, {"block": None}, {"block": real.PLACE}, {"block": 7})
    ]
    assert real.of_variants(kept) == kept[:3]


def test_a_task_that_no_variant_learned_is_named():
    rows = [
        ("letters", "a", 7.0),
        ("letters", "a", 7.8),
        ("position", "a", 30.0),
        ("letters", "b", 7.8),
        ("dtd10", "a", 1.0),
    ]
    frame = pd.DataFrame(
        [{"task": t, "backbone": b, "variant": "VPT-Deep", "test": v} for t, b, v in rows]
    )
    # 26 classes: twice chance is 7.69
    assert chapters.comparable.near_chance(frame) == [("letters", "a")]


def frame_of(
    tasks, backbones=("vit_micro_patch4_24",), variants=("SPT-Deep", "VPT-Deep"), seeds=(0, 1, 2)
):
    """Runs of variants on tasks, the first variant a point above the next."""
    rows = [
        {
            "backbone": backbone,
            "task": task,
            "variant": variant,
            "seed": seed,
            "train_size": 8,
            "test": 50.0 - place,
            "group": chapters.group_of(task),
            "record": Kept(task, backbone),
        }
        for backbone in backbones
        for task in tasks
        for place, variant in enumerate(variants)
        for seed in seeds
    ]
    return pd.DataFrame(rows)


class Kept:
    """Stands for a record that is current."""

    id, fingerprints, about = "0" * 12, {"code": {}}, {}

    def __init__(self, task, backbone):
        self.settings = {"task": task, "backbone": backbone}


@pytest.mark.parametrize(
    ("profile", "tasks", "on", "why"),
    [
        ("quick", ["flowers"], "fine", None),
        ("quick", ["flowers", "holidays"], "fine", None),
        ("quick", ["holidays"], "fine", "was run here on flowers"),
        ("quick", ["dtd10"], "vtab", "was run here on position, letters and texture"),
        ("quick", ["position", "letters"], "vtab", "was run here on texture"),
        ("quick", ["position", "letters", "texture", "holidays"], "vtab", None),
        ("paper", ["holidays"], "fine", "about cub_200_2011, nabirds, oxford_flowers and 2 more"),
        (
            "paper",
            chapters.grids.scope_of("paper").tasks["vtab"][:18],
            "vtab",
            "was run here on smallnorb_elevation",
        ),
        ("paper", chapters.grids.scope_of("paper").tasks["vtab"], "vtab", None),
    ],
)
def test_a_claim_is_judged_only_on_the_data_it_speaks_of(
    profile, tasks, on, why, stores, monkeypatch, tmp_path
):
    for task in tasks:
        (tmp_path / task).mkdir()
    p = ChapterParameters(
        profile=profile,
        tasks=tasks,
        data_dir=str(tmp_path),
        methods=["vpt-deep"],
        studies=["benchmark"],
    )
    chapter = Chapter(Page("spt", p), p, ["benchmark"], [])
    claim = "spt.table-s2.over-first"  # speaks of one data set
    frame = frame_of(tasks)
    page = shown(
        monkeypatch, chapter, lambda: chapter.judge(claim, frame, "SPT-Deep", "VPT-Deep", on=on)
    )
    if why is None:
        judged = chapter.page.claims[claim]
        assert judged["estimate"] == 1.0 and "not judged" not in page
        wanted = chapter.scope.tasks[on]
        assert f"{len(wanted)} task" in judged["note"]  # a foreign task has no say
    else:
        assert (
            chapter.page.claims[claim]["verdict"] == "not judged" and why in page and claim in page
        )


def test_a_mean_over_pretrainings_is_judged_when_all_are_there(chapter, monkeypatch):
    names = chapter.scope.backbones
    claim, parts = "spt.table-s2.over-uniform", ["supervised", "mae"]  # speaks of one data set

    def judge(frame):
        return shown(
            monkeypatch,
            chapter,
            lambda: chapter.judge(claim, frame, "SPT-Deep", "VPT-Deep", on="ablation", parts=parts),
        )

    assert (
        "not judged" in judge(frame_of(["position"]))
        and chapter.page.claims[claim]["estimate"] is None
    )
    chapter.scope = chapters.replace(chapter.scope, backbones={"supervised": names["supervised"]})
    assert "no backbone is mae here" in judge(frame_of(["position"]))
    chapter.scope = chapters.replace(chapter.scope, backbones=names)
    assert "not judged" not in judge(frame_of(["position"], [names[part] for part in parts]))
    assert chapter.page.claims[claim]["estimate"] == 1.0


def test_a_page_names_the_data_it_had(chapter):
    frame = frame_of(["dtd10"], ["vit_tiny_patch16_224"])
    for record in frame.record:
        record.settings = {"task": "dtd10", "train_size": 400, "resize": "direct"}
    told = chapter.how(frame)
    assert (
        "vit_tiny_patch16_224 on dtd10 (400 training images, resizing: direct)" in told
        and "Small" not in told
    )
    assert "Small" not in chapter.how(
        frame_of(["position"], ["vit_tiny_patch16_224"]).drop(columns="record")
    )


def test_a_misspelt_task_of_a_chapter_is_refused(stores, tmp_path):
    p = ChapterParameters(tasks=["positon"])
    with pytest.raises(BadInput, match="unknown task .*'positon'. Did you mean 'position'"):
        Chapter(Page("spt", p), p, ["benchmark"], [])


@pytest.mark.parametrize(
    ("name", "method", "own", "why"),
    [
        ("davpt", "da-vpt-plus", ["benchmark", "davpt-weights"], "guided_tokens must be 1 to 10"),
    ],
)
def test_the_command_that_a_page_prints_runs_in_the_paper_profile(
    name, method, own, why, stores, tmp_path, monkeypatch
):
    """On a folder of ten classes: what is looked up and cannot be run there is left out, and
    said."""
    folder, generator = tmp_path / "ten", np.random.default_rng(0)
    (folder / "images").mkdir(parents=True)
    for split in ("train800.txt", "val200.txt", "test.txt"):
        names = [f"images/{split}{label}.png" for label in range(10)]
        for name_of_image in names:
            Image.fromarray(generator.integers(0, 256, (24, 24, 3), np.uint8)).save(
                folder / name_of_image
            )
        (folder / split).write_text(
            "".join(f"{image} {label}\n" for label, image in enumerate(names))
        )
    p = ChapterParameters(
        profile="paper",
        data_dir=str(tmp_path),
        backbone="vit_micro_patch4_24",
        tasks=["ten"],
        studies=["benchmark"],
        methods=[method],
        seeds=[0],
        search=False,
        epochs=1,
    )
    chapter = Chapter(Page(name, p), p, own, [])
    frames = chapter.frames
    assert list(frames["benchmark"].task) == ["ten"] and list(frames["benchmark"].group) == [
        "other"
    ]
    assert why in shown(monkeypatch, chapter, chapter.show_left_out)
    chapter.judge(
        f"{name}.table-3.highest",
        chapter.rows("benchmark", tasks="fine"),
        "DA-VPT+",
        "VPT-Deep",
        on="fine",
    )
    assert chapter.page.claims == {}
    p = chapters.replace(p, studies=own[1:])
    with pytest.raises(BadInput, match=f"runs failed.*{why}"):
        Chapter(Page(name, p), p, own, []).frames  # noqa: B018


def test_a_page_of_no_paper_runs_nothing_of_the_papers_unasked(stores, monkeypatch):
    monkeypatch.setattr(
        chapters,
        "read_parameters",
        lambda settings, namespace: settings(profile="paper", **namespace),
    )
    asked = {}

    def pretended(name, scope, lab, *, seeds, **more):
        asked[name] = seeds
        frame = pd.DataFrame()
        frame.attrs["left_out"] = {}
        return frame

    monkeypatch.setattr(grids, "study", pretended)
    assert (
        not len(
            chapters.Chapter.opened("small_world", {}, ["tasks"], no_paper=True).frames["tasks"]
        )
        and not asked
    )
    named = {"studies": ["tasks"], "seeds": [3]}
    assert not len(
        chapters.Chapter.opened("small_world", named, ["tasks"], no_paper=True).frames["tasks"]
    )
    assert asked == {"tasks": [3]}


def test_a_network_without_labels_is_said_to_be_over_both_bars_one_or_none():
    logs = {
        name: {"probe_accuracy": probe, "few_labels_accuracy": few, "scratch_accuracy": 0.01}
        for name, probe, few in (
            ("a", 0.045, 0.11),
            ("b", 0.044, 0.12),
            ("c", 0.3, 0.1),
            ("d", 0.04, 0.02),
        )  # 5 / 112 = 0.0446
    }
    logs["labels"] = {"probe_accuracy": 0.9}
    told = "Above both thresholds: a; above one: b and c; above none: d."
    assert small_world.bars(logs) == told
    logs, scope = small_world.logs(), grids.scope_of("quick").backbones
    said = small_world.bars(logs)  # this and the epochs are said in prose, too
    assert said.startswith("Above both thresholds") and ";" not in said
    assert all(scope[part] in said for part in ("mae", "mocov3", "larger-mae", "smaller-mae"))
    nano, micro, mini = (
        logs[scope[part]]["recipe"]["mae_epochs"] for part in ("smaller-mae", "mae", "larger-mae")
    )
    assert nano == 3 * micro == 3 * mini


CELLS = st.tuples(
    st.sampled_from("xy"), st.sampled_from(["letters", "position"]), st.integers(0, 2)
)


@drawn(st.lists(CELLS, max_size=12))
def test_means_side_by_side_are_over_the_same_tasks(cells):
    frame = pd.DataFrame(cells, columns=["variant", "task", "seed"])
    found, every = comparable.comparable(frame, ["variant"]), set(frame.task)
    groups = {key: set(rows.task) for key, rows in frame.groupby(["variant", "seed"])}
    assert {key: set(rows.task) for key, rows in found.groupby(["variant", "seed"])} == {
        key: tasks for key, tasks in groups.items() if tasks == every
    }


def test_a_size_that_lacks_a_task_is_no_point_of_the_curve(chapter, monkeypatch):
    parts = ["smaller", "supervised", "larger"]
    names = [chapter.scope.backbones[part] for part in parts]
    cells = [(v, b, t) for v in spt_starts.PAIR for b in names for t in ("letters", "position")]
    cells.remove(("SPT-Deep", names[0], "letters"))
    frame = pd.DataFrame(
        [(*cell, 0, 50.0) for cell in cells],
        columns=["variant", "backbone", "task", "seed", "test"],
    )
    drawings = []
    monkeypatch.setattr(chapter, "show", lambda artifact, figure, *rest: drawings.append(figure))
    monkeypatch.setattr(chapter, "judge_least", lambda *rest: None)
    spt_starts.size_plot(chapter, "spt.figure-s1", frame, parts, "c", "scaling")
    lines = {
        bars.get_label(): len(bars.lines[0].get_xdata()) for bars in drawings[0].axes[0].containers
    }
    assert lines == {"VPT-Deep": 3, "SPT-Deep": 2}


def test_a_probe_stands_beside_the_starts_only_with_all_their_tasks(chapter):
    backbone, starts = chapter.scope.backbones["supervised"], ["random", "random, frozen"]
    cells = [(v, backbone, t, 0, 50.0) for v in starts for t in ("letters", "position")]
    cells += [
        (spt_starts.PROBE, backbone, "letters", 0, 30.0),
        (spt_starts.PROBE, backbone, "letters", 1, 30.0),
    ]
    frame = pd.DataFrame(cells, columns=["variant", "backbone", "task", "seed", "test"])
    shown = spt_starts.starts_table(chapter, frame).set_index("initialisation")[
        "supervised, frozen"
    ]
    assert shown["random sample"] == "50.0"
    assert spt_starts.probe_table(chapter, frame).supervised[0] == "–"


def test_a_panel_without_a_run_says_so(chapter):
    record = SimpleNamespace(values={"cka": [[1.0, 0.0], [0.0, 1.0]]})
    rows = [("VPT-Deep", chapter.scope.backbones["supervised"], 0, record)]
    there, lacking = spt.cka_figure(
        chapter, pd.DataFrame(rows, columns=["variant", "backbone", "seed", "record"])
    ).axes[:2]
    assert there.axison and not lacking.axison and "not run" in lacking.get_title()


def test_the_viewers_bytes_are_the_maps(chapter):
    # images, blocks, class token and 12 prompts
    weights = np.random.default_rng(0).dirichlet(np.ones(4), size=(2, 3, 13))
    values = {
        "class": weights[:, :, 0].tolist(),
        "prompts": weights[:, :, 1:].reshape(2, 3, -1).tolist(),
    }
    values |= {"labels": [5, 1], "entropy": [0, 0, 0], "cluster": [0, 1, 2, 3, 4, 11]}
    packed = attention_viewer.packed(SimpleNamespace(values=values))
    assert packed["prompts"] == [*range(10), 11] and packed["own"] == [11, 1]
    levels = np.frombuffer(base64.b64decode(packed["levels"]), np.uint8).reshape(packed["shape"])
    shown = levels / 255 * np.array(packed["most"])[..., None]
    assert np.abs(shown - weights[:, :, [0, *range(1, 11), 12]]).max() < 2e-3


def test_parameters_stand_in_a_box_at_the_end_with_the_commands():
    cells = [nbformat.v4.new_markdown_cell("# A page")]
    for tag, source in (
        ("parameters", 'profile = "quick"'),
        ("injected-parameters", "seeds = [0]"),
    ):
        cells.append(nbformat.v4.new_code_cell(source, metadata={"tags": [tag]}))
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"papermill": {"duration": 41.7}})
    found = {"artifacts": {"ap.table-1": {"notebook": "ap"}, "ap.figure-1": {"notebook": "ap"}}}
    rerun_box.with_box(notebook, "ap", found, [(3600.0, "a CPU"), (7200.0, "a CPU")])
    title, box = notebook.cells
    assert box.cell_type == "markdown" and title.source == "# A page"
    for words in (
        "NAME=ap",
        "42 seconds",
        "2 records",
        "3.0 hours to make, on a CPU",
        'ARTIFACTS="ap.table-1"',
    ):
        assert words in html.unescape(box.source)
    assert box.source.index("profile =") < box.source.index("made with <code>seeds = [0]")
    bare = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# A page")])
    rerun_box.with_box(bare, "ap", {"artifacts": {}}, [])
    assert (
        "papers' scale" not in bare.cells[1].source and "records behind" not in bare.cells[1].source
    )


def test_runs_are_alike_where_an_older_record_lacks_a_field_of_the_recipe():
    newer = asdict(Recipe(learning_rate=0.1))
    older = {name: value for name, value in newer.items() if name != "clip"}
    recipes = (newer, older, older | {"learning_rate": 0.5}, newer | {"clip": 10.0})
    kept = [
        SimpleNamespace(
            settings={"task": "dtd10", "method": "lora", "seed": seed, "recipe": recipe},
            data="0" * 12,
            weights="1" * 12,
        )
        for seed, recipe in enumerate(recipes)
    ]
    groups = [[record.settings["seed"] for record in part] for part in real.alike(kept)]
    assert groups == [[0, 1, 2], [3]]


def test_a_figure_of_tokens_is_drawn_from_whatever_ran():
    """A quick book from nothing recorded may run one of the two lines alone, or none."""
    frame = pd.DataFrame(
        {"N": [5, 20], "k": [0, 0], "seed": 0, "task": "shapes", "test": [50.0, 60.0]}
    )
    titles = [[ax.get_title() for ax in ivpt_parts.tokens_figure(frame[:n]).axes] for n in (2, 0)]
    assert titles == [["Highest at N = 20", ""], ["", ""]]


def test_a_gain_is_told_of_what_has_a_run_beside_its_base():
    """In a sweep that is half done a variant may share no task and seed with its base."""
    rows = [
        ("iVPT", "x", 0, 62.0),
        ("base", "x", 0, 60.0),
        ("CDC", "y", 1, 70.0),
        ("base", "y", 0, 50.0),
    ]
    frame = pd.DataFrame(rows, columns=["variant", "task", "seed", "test"]).assign(
        backbone="vit", train_size=None, record=list("abcd")
    )
    assert ivpt.gains_told(frame, "base", ["iVPT", "CDC", "EXPRESS"]).startswith("iVPT +2.0 [")
    assert ";" not in ivpt.gains_told(frame, "base", ["iVPT", "CDC", "EXPRESS"])
    ticks = ivpt.gain_figure(frame, "base", ["iVPT", "CDC", "EXPRESS"]).axes[0].get_xticklabels()
    assert [tick.get_text() for tick in ticks] == ["iVPT"]
    assert ivpt.gain_figure(frame, "base", ["CDC"]) is None
