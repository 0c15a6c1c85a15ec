"""`make card`: its parts on the pretended card, what each leaves, and that one that fails stops no
other. No test asserts a time."""

import json
import signal
import tarfile
from functools import partial

import pytest
import torch
from pretended_card import PretendedCard

from visbook.studies import card
from visbook.timing import ap_tables, card_fits, card_run
from visprompt.data.tasks import load_task
from visprompt.training.activations import SHARED
from visprompt.training.recipe import Recipe

MICRO = "vit_micro_patch4_24"


@pytest.fixture
def pictures(tmp_path):
    card_run.write_pictures(tmp_path, (12, 4, 8), 32)
    return tmp_path


def here(jobs, function, workers, seconds):
    """Stands for processes side by side, which know no pretended card."""
    return {name: function(*given) for name, given in jobs.items()}, {}


def test_a_run_is_timed_by_part_on_a_card(pictures):
    load = partial(load_task, card_run.NAME, pictures, image_size=24)
    recipe = Recipe(epochs=3, batch_size=8, precision="bf16", learning_rate=1e-3)
    with PretendedCard():
        found = card_run.run_by_part(load, MICRO, recipe, "cuda")
    parts = ("decode", "map", "build", "prepare", "train", "validate", "test", "fit")
    assert all(found[part] > 0 for part in parts) and found["steps an epoch"] == 2
    inside = sum(found[part] for part in ("prepare", "train", "validate", "test"))
    assert inside <= found["fit"] and found["whole"] > found["epoch"] * (card_run.WHOLE - 1)
    SHARED.kept.clear()


def test_methods_agree_with_the_processor(stores, monkeypatch):
    monkeypatch.setattr(card_fits, "side_by_side", here)
    monkeypatch.setattr(card_fits, "OTHERS", {})
    monkeypatch.setattr(card_fits, "IMAGES", 40)
    with PretendedCard():
        record = card_fits.agreement("cuda", 1, 9.0, ["vpt-deep"], compiles=False)
    fits = record.values["fits"]
    assert [*fits[f"{MICRO} vpt-deep"]] == ["processor", "float32", "bf16"]
    far = card_fits.far(fits)
    assert far["float32"] == 0 < far["bf16"]
    SHARED.kept.clear()


def test_processes_that_have_no_time_are_said():
    found, failed = card_fits.side_by_side({"a": (1,), "b": (2,)}, abs, 1, 0.0)
    assert not found and failed == dict.fromkeys("ab", "no time was left")


def test_a_part_that_fails_leaves_its_error_and_the_next_goes_on(stores, tmp_path, monkeypatch):
    def fails(setup):
        raise RuntimeError("no kernel image")
        yield

    def works(setup):
        job = partial(ap_tables.speeds_in_turns, MICRO, {"ap": {}}, batch_size=2, repeats=1)
        yield from card.each(setup, [("ap", job), ("none", lambda: 1 / 0)])

    monkeypatch.setattr(card, "MAKERS", {"run": fails, "ap-tables": works})
    done = card.main(["--parts", "run", "ap-tables=60", "--device", "cpu", "--out", str(tmp_path)])
    run, tables = (json.loads((tmp_path / f"{n}.json").read_text()) for n in ("run", "ap-tables"))
    assert done == 1 and "no kernel image" in run["error"] and not run["records"]
    assert tables["told"] == ["none: ZeroDivisionError: division by zero"] and not tables["error"]
    with tarfile.open(tmp_path / "records.tgz") as archive:
        assert [name.split("/")[0] for name in archive.getnames()] == ["code", "turns"]


def test_what_has_no_time_left_is_said():
    setup = card.Setup("cpu", None, 1, end=0.0)
    assert [*card.each(setup, [("a row", lambda: 1 / 0)])] == []
    assert setup.told == ["a row: no time was left"]


def test_a_card_is_first_asked_for_the_rows_that_tell_most(monkeypatch):
    asked = []
    monkeypatch.setattr(card, "each", lambda setup, jobs: asked.extend(jobs) or ())
    monkeypatch.setattr(card.bench, "MODELS", {"cuda": []})
    monkeypatch.setattr(card.bench, "machine", lambda device: "a card")
    list(card.of_bench(card.Setup("cuda", None, 1)))
    labels = [label for label, _ in asked]
    assert labels[0] == f"bf16-compiled, {card.bench.BASE}"
    assert card.SMALL in labels[len(card.FIRST)] and len(labels) == len({*labels})


def test_the_runs_on_photographs_are_those_with_kept_records():
    kept = card_fits.kept_fits("gtsrb")
    assert {"vpt-deep", "ap", "spt-deep"} <= {*kept} and len(kept) == 18
    assert all(r.settings["seed"] == 0 and not r.hardware["gpu"] for r in kept.values())


def test_loaders_are_timed_by_threads(pictures):
    found = card_run.loaders(pictures, 24, [1, 2], 6)
    assert [*found] == ["1", "2"] and all(part["cropped"] > 0 for part in found.values())


def test_a_profile_counts_what_ran():
    profile = card_run.Profile("cpu")
    profile.start()
    torch.ones(8, 8) @ torch.ones(8, 8)
    profile.stop()
    assert profile.found["busy"] > 0 and any("mm" in row[0] for row in profile.found["kernels"])


def test_a_way_that_fails_has_its_error(monkeypatch):
    monkeypatch.setattr(card_run, "one_way", lambda *given: 1 / 0)
    found = card_run.steps_by_way(MICRO, "cpu", {"bf16": {}}, 1)
    assert found == {"bf16": "ZeroDivisionError: division by zero"}


def test_a_part_whose_time_is_over_leaves_what_it_has(stores, tmp_path, monkeypatch):
    def slow(setup):
        job = partial(ap_tables.speeds_in_turns, MICRO, {"ap": {}}, batch_size=2, repeats=1)
        over = partial(signal.raise_signal, signal.SIGALRM)
        yield from card.each(setup, [("ap", job), ("slow", over)])

    before = signal.getsignal(signal.SIGALRM)
    monkeypatch.setattr(card, "MAKERS", {"run": slow})
    card.main(["--parts", "run=300", "--device", "cpu", "--out", str(tmp_path)])
    found = json.loads((tmp_path / "run.json").read_text())
    assert len(found["records"]) == 1 and found["told"] == ["slow: OutOfTime: its time is over"]
    assert signal.getsignal(signal.SIGALRM) == before
