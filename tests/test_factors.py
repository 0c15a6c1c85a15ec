"""What one changed factor moves: the list of runs, and what the page says of them."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from visbook.chapters import real, why_different
from visbook.site import compare
from visbook.studies import factors, insights
from visbook.studies.case import Run
from visbook.studies.lab import Lab, LabSettings
from visprompt.paths import ROOT
from visprompt.records import read_record, store
from visprompt.training.protocol import protocol

MICRO = "vit_micro_patch4_24"
FEW = Run(MICRO, "digits", "vpt-deep", settings={"prompt_tokens": 3}, train_size=40)


@pytest.fixture
def lab(stores):
    return Lab(LabSettings(changes={"epochs": 2}))


def test_every_option_changes_the_run_or_its_images_and_nothing_else():
    run, usual = Run(MICRO, "dtd10", "vpt-deep", settings={"prompt_tokens": 10}), protocol("real")
    for name, option in factors.options().items():
        changed, images = option.on(run), option.protocol(usual, ["dtd10"])
        assert (changed, images) != (run, usual) or option.measure, name
        assert replace(changed, settings=run.settings, changes={}) == run
        assert (images.pixels, images.searches) == (usual.pixels, usual.searches)


def test_all_factors_are_run_with_a_seed_before_the_next_seed(lab, monkeypatch):
    monkeypatch.setattr(factors, "baseline", lambda lab: [replace(FEW, task="dtd10"), FEW])
    order = [(run.seed, name) for name, run, _ in factors.jobs(lab, [0, 1])]
    once = [*dict.fromkeys(order)]
    assert [seed for seed, _ in once] == sorted(seed for seed, _ in once)
    assert [name for seed, name in once if seed] == [factors.BASE, *factors.options()]
    assert order.count((0, "last-batch")) == 1  # of one task alone


def test_a_run_with_a_factor_says_so_and_is_no_run_of_the_study(lab, stores):
    of_factor = factors.FactorLab(lab.bench, "dropout", factors.Option(), ["digits"])
    assert of_factor.do(FEW).about["factor"] == "dropout"
    stores[1].mkdir(parents=True)
    (stores[0] / "tune").rename(stores[1] / "tune")
    (path,) = store.files(stores[1], "tune")
    assert read_record(path).settings["method"] == "vpt-deep"
    assert real.kept_rows("tune", backbone=MICRO) == []


def test_following_a_run_on_the_test_images_changes_nothing(lab):
    values = insights.test_by_epoch(FEW, lab).values
    run = lab.do(FEW).values
    assert values["test_by_epoch"][-1] == values["test"] == run["test"]
    assert values["val_by_epoch"] == run["val_by_epoch"] and len(values["test_by_epoch"]) == 2


def record(seed: int, test: float, **values):
    recipe = {"learning_rate": 0.01}
    settings = {"method": "vpt-deep", "seed": seed, "task": "a", "recipe": recipe}
    return SimpleNamespace(settings=settings, values={"test": test, **values})


def test_differences_are_paired_by_seed():
    best = {task: [record(0, 50.0), record(1, 60.0)] for task in "ab"}
    found = {("x", "VPT-Deep", task): [record(1, 58.0), record(0, 49.0)] for task in "ab"}
    one = why_different.of_factor("x", "VPT-Deep", best, found, (1.0, 2))
    assert (one.mean, one.tasks, one.seeds) == (-1.5, 2, 2)
    # each difference is 0.5 from the mean: variance 0.5 on 2 degrees, two tasks of two seeds
    assert one.half == pytest.approx(4.3027 * np.sqrt(0.5 * (1 / 2 + 1 / 2)) / 2, rel=1e-4)
    assert why_different.of_factor("y", "VPT-Deep", best, found, (1.0, 2)) is None


def test_of_a_half_done_search_nothing_is_told_before_seed_0_has_the_chosen_rate(monkeypatch):
    runs = [record(1, 60.0), record(0, 50.0)]
    runs[1].settings["recipe"] = {"learning_rate": 0.05}
    monkeypatch.setattr(real, "at_best_rate", lambda part: ([part[0]], None))
    assert why_different.of_search("test", {"a": runs}, (1.0, 2)) is None
    whole = {"a": [*runs, record(0, 47.0)]}
    assert why_different.of_search("test", whole, (1.0, 2)).mean == 3.0


def test_of_one_seed_the_spread_of_the_baseline_stands_in():
    one = why_different.moved({"a": {0: 3.0}}, (2.0, 4))
    assert one.half == pytest.approx(2.7764 * np.sqrt(2 * 2.0**2), rel=1e-4)
    assert one.told == "+3.0 [−4.9, +10.9]"


def test_the_best_epoch_on_the_test_images_is_above_the_last():
    followed = record(0, 50.0, test_by_epoch=[40.0, 53.0, 50.0])
    assert why_different.points(followed, record(0, 50.0)) == 3.0


def test_what_the_page_says_of_the_head_holds():
    text = (ROOT / "notebooks" / "why_different.py").read_text(encoding="utf-8")
    assert "both methods are more accurate with weight decay on the head, and with the head" in text
    rows = {row.name: row for row in why_different.rows()}
    for name in ("head-decay", "one-rate"):
        assert [one.mean > one.half > 0 for one in rows[name].moved.values()] == [True, True]
    of_head = {"head-start", "head-decay", "raw-features", "one-rate"}
    of_prompts = {"size", "dropout", "drop-path", "decay"}
    largest = [max(rows[name].size for name in names) for names in (of_head, of_prompts)]
    assert largest[0] > largest[1]


def test_the_page_that_compares_names_what_clearly_moves_more_than_a_seed(monkeypatch):
    (seed,) = (row for row in why_different.rows() if row.name == "seed")
    of = lambda name, mean, half: replace(
        seed,
        name=name,
        entry={"changed": name},
        moved={method: why_different.Moved(mean, half, 1, 1) for method in why_different.LOOKS},
    )
    given = [of("much", -9.0, 2.0), of("unclear", 9.0, 9.5), of("little", 0.2, 0.1), seed]
    assert why_different.clear(given) == given[:1] and why_different.clear(given[:3]) == []
    monkeypatch.setattr(why_different, "rows", lambda: given)
    found = compare.moved({}, ROOT)
    assert "−9.0 [−11.0, −7.0]" in found and "unclear" not in found and "little" not in found
    monkeypatch.setattr(why_different, "rows", list)
    assert "No run" in compare.moved({}, ROOT)


def test_what_is_chosen_on_the_test_images_gains_and_has_no_interval():
    rows = {row.name: row for row in why_different.rows()}
    for name in ("test-epoch", "test-rate"):
        assert rows[name].moved
        for one in rows[name].moved.values():
            assert one.mean >= 0 and np.isnan(one.half) and "[" not in one.told


def test_what_the_page_on_recipes_says_of_the_smallest_rate_holds():
    (row,) = (row for row in why_different.rows() if row.name == "smallest")
    assert {*row.moved} == {*why_different.LOOKS} == {"VPT-Deep", "AdaptFormer"}
    assert all(one.mean < 0 < one.mean + one.half for one in row.moved.values())
    text = " ".join((ROOT / "book" / "recipes.md").read_text(encoding="utf-8").split())
    assert (
        "VPT-Deep and AdaptFormer are less accurate with the smallest, but neither clearly" in text
    )


def test_tasks_whose_two_runs_are_one_add_no_spread():
    (row,) = (row for row in why_different.rows() if row.name == "search")
    for method, parts in (("VPT-Deep", 0), ("AdaptFormer", 2)):
        one = row.moved[method]
        of_both = list(zip(one.records[::2], one.records[1::2], strict=True))
        assert sum(a.id != b.id for a, b in of_both) == parts and len(of_both) == one.tasks == 5
        if not parts:
            assert one.mean == 0 and np.isnan(one.half) and "[" not in one.told
            continue
        runs = why_different.tuned([method])
        best = [real.at_best_rate(part)[0] for part in runs.values()]
        usual, free = why_different.deviation(best)
        assert one.half == pytest.approx(
            stats.t.ppf(0.975, free) * usual * math.sqrt(2 * parts) / len(of_both)
        )


def test_rows_are_sorted_by_size_and_what_is_told_comes_last():
    rows = why_different.rows()
    sizes = [row.size for row in rows]
    assert sizes == sorted(sizes, reverse=True) and "why" in rows[-1].entry
    table = why_different.table(rows)
    assert len(table) == len(factors.manifest()["factors"])
    told = table[table["over"].str.startswith("from sources")]
    assert (told["VPT-Deep, points"] == why_different.NOT_MEASURED).all() and len(told) >= 2
    assert table.iloc[:, -1].str.contains("<a href=|^as above").all()
    assert "<" not in why_different.finding(rows)
