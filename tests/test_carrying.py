"""Records that outlive a change of form: a sample is run again, and the others are carried if all
of it is equal."""

import importlib.util
import shutil
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import visprompt as vp
from visprompt import records
from visprompt.records import carrying, code_objects, keeping, source, store, watch

FIRST = """
N = 3

def double(x):
    return 2 * x

def half(x):
    return x / 2

def value(n):
    return {"x": double(n) + N} if n % 2 else {"x": half(n) + N}
"""
SPLIT = FIRST.replace("return 2 * x", "return twice(x)") + "\n\ndef twice(x):\n    return 2 * x\n"
OTHER = FIRST.replace("2 * x", "2 * x + 1")


@pytest.fixture
def tree(tmp_path, monkeypatch, stores):
    """A function that puts a text in the place of the package's one module; what runs is filed as
    from a commit."""
    monkeypatch.setattr(source, "PACKAGES", (tmp_path / "src" / "visprompt",))
    for module in (watch, code_objects):
        monkeypatch.setattr(module, "ROOTS", (f"{tmp_path}/src/visprompt/",))
    monkeypatch.setattr(source, "is_users", lambda file: False)
    monkeypatch.setattr(store, "commit", lambda: "0123456789ab")
    monkeypatch.setattr(keeping, "is_known", lambda commit: True)
    path = tmp_path / "src" / "visprompt" / "measure" / "toy.py"
    path.parent.mkdir(parents=True)

    def written(text):
        path.write_text(text)
        source.forget()
        code_objects.compiled.cache_clear()
        store.code_stands.cache_clear()
        spec = importlib.util.spec_from_file_location("visprompt.measure.toy", path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return lambda n: records.recorded("toy", {"n": n}, partial(module.value, n))

    yield written
    monkeypatch.undo()
    source.forget()
    code_objects.compiled.cache_clear()
    store.code_stands.cache_clear()


def kept() -> dict[int, store.Record]:
    return {r.settings["n"]: r for r in map(store.read_record, store.files(store.stores()[1]))}


def current() -> set[int]:
    return {n for n, record in kept().items() if store.is_current(record)}


def keep_all(run, numbers=range(6)):
    for n in numbers:
        keeping.keep_record(run(n))
    for path in store.files(store.stores()[0]):
        path.unlink()


def test_a_change_of_form_is_carried_after_an_equal_sample(tree):
    keep_all(tree(FIRST))
    before = kept()
    run = tree(SPLIT)
    assert current() == {0, 2, 4}  # an even number never doubles
    run(1)
    found = carrying.carry(carrying.again(), seed=7)
    assert (found.carried, found.sample, found.differ) == ({"toy": 2}, {"toy": 1}, {})
    assert current() == set(range(6))
    for n in (3, 5):
        record = kept()[n]
        assert record.carried | {"date": ""} == {
            "from": before[n].code,
            "commit": "0123456789ab",
            "sample": 1,
            "seed": 7,
            "referred": 0,
            "date": "",
        }
        assert (
            record.values == before[n].values
            and record.key == before[n].key
            and record.commit == before[n].commit
        )
        assert "measure.toy:twice" in store.units_of(record)  # what it would run today
    assert not kept()[1].carried and not kept()[0].carried  # one ran, and one was never outdated


def test_a_carried_record_is_outdated_by_what_it_would_run_today_and_carried_again(tree):
    keep_all(tree(FIRST))
    tree(SPLIT)(1)
    carrying.carry(carrying.again())
    first = kept()[3].carried["from"]
    run = tree(SPLIT.replace("return 2 * x", "return x * 2"))
    assert current() == {0, 2, 4}
    run(5)
    assert carrying.carry(carrying.again()).carried == {"toy": 2}
    assert current() == set(range(6)) and kept()[3].carried["from"] == first


def test_nothing_is_carried_after_a_change_that_does_not_keep_values(tree):
    keep_all(tree(FIRST))
    before = kept()
    run = tree(OTHER)
    run(1)
    found = carrying.carry(carrying.again())
    assert (
        not found.carried
        and len(found.differ["toy"]) == 1
        and "x was 5 and is 6" in found.differ["toy"][0]
    )
    assert kept() == before and current() == {0, 2, 4}


def other_machine_made(numbers):
    """Kept records as another processor would have left them: other last digits."""
    for n in numbers:
        record = kept()[n]
        values = {"x": record.values["x"] + 1e-6}
        path = store.stores()[1] / store.place(record.kind, record.settings, record.key)
        store.write_whole(path, store.as_text(store.with_id(replace(record, values=values))))


@pytest.mark.parametrize("kind", ["equal", "other code", "other values", "other machine"])
def test_a_record_of_another_machine_is_held_against_the_older_code_here(tree, tmp_path, kind):
    run = tree(FIRST if kind != "other code" else FIRST.replace("2 * x", "x + x"))
    run(1)
    reference = tmp_path / "reference"
    shutil.copytree(store.stores()[0], reference)
    if kind in ("other values", "other machine"):
        path = reference / store.place(
            "toy", {"n": 1}, store.read_record(next(store.files(reference))).key
        )
        there = store.read_record(path)
        change = (
            {"values": {"x": 7}} if kind == "other values" else {"hardware": {"cpu": "another"}}
        )
        path.write_text(store.as_text(store.with_id(replace(there, **change))))
    shutil.rmtree(store.stores()[0])
    keep_all(tree(FIRST))
    other_machine_made([1, 3])
    tree(SPLIT)(1)
    found = carrying.carry(carrying.again(), 0, reference)
    if kind == "equal":
        assert (found.carried, found.referred) == ({"toy": 3}, {"toy": 1}) and current() == set(
            range(6)
        )
        # as the other machine left it
        assert kept()[1].carried["referred"] == 1 and kept()[1].values["x"] == 5 + 1e-6
    else:
        assert not found.carried and found.differ["toy"] and current() == {0, 2, 4}


def test_times_are_never_carried(tree, monkeypatch):
    keep_all(tree(FIRST))
    tree(SPLIT)(1)
    monkeypatch.setattr(carrying, "TIMED", {"toy"})
    with pytest.raises(vp.BadInput, match="no outdated kept record was run again"):
        carrying.carry(carrying.again())


def test_one_that_differs_stops_all_of_its_kind(tree):
    keep_all(tree(FIRST))
    run = tree(FIRST.replace("return 2 * x", "return 2 * x + (x == 5)"))
    for n in (1, 3, 5):
        run(n)
    found = carrying.carry(carrying.again())
    assert not found.carried and len(found.differ["toy"]) == 1


def test_nothing_is_carried_of_what_was_not_run_again_or_by_no_commit(tree, monkeypatch):
    keep_all(tree(FIRST))
    run = tree(SPLIT)
    with pytest.raises(vp.BadInput, match="visprompt carry"):
        carrying.carry(carrying.again())
    monkeypatch.setattr(store, "commit", lambda: "0123456789ab+changes")
    run(1)
    with pytest.raises(vp.BadInput, match="not made from a committed tree"):
        carrying.carry(carrying.again())


def test_what_runs_newly_goes_with_what_was_changed():
    """A helper of one method is not entered for another, though both share a changed function; one
    of all runs is."""
    shared, mine, other = {"loop:fit": "1"}, {"methods.a:f": "1"}, {"methods.b:f": "1"}
    new_loop = {"loop:fit": "2", "loop:step": "1"}
    same = [
        (shared | mine, new_loop | {"methods.a:f": "2", "methods.a:help": "1"}),
        (shared | other, new_loop | other),
    ]
    assert set(gained(shared | mine, same)) == {"loop:step", "methods.a:help"}
    assert set(gained(shared | other, same)) == {"loop:step"}


def gained(units, same):
    return carrying.translated(units, same).keys() - units.keys()


@pytest.mark.parametrize("seed", range(3))
def test_a_sample_has_every_stratum_and_is_the_same_for_a_seed(seed):
    every = [toy(n) for n in range(200)]

    def strata(record):
        return [record.kind, record.settings["method"], record.settings["task"]]

    found = carrying.drawn(every, 20, seed, strata)
    assert {part for r in found for part in strata(r)} == {
        part for r in every for part in strata(r)
    }
    assert len(found) == 20 and found == carrying.drawn(every, 20, seed, strata) != carrying.drawn(
        every, 20, seed + 9, strata
    )


def toy(n):
    settings = {"method": f"m{n % 7}", "task": f"t{n % 5}", "n": n}
    return store.Record(f"{n:012x}", f"{n:012x}", f"k{n % 3}", settings, "", "", "", {})


def test_a_record_that_was_not_carried_has_no_word_of_it_in_its_file():
    record = toy(1)
    assert "carried" not in store.as_text(record) and "carried" in store.as_text(
        replace(record, carried={"sample": 3})
    )
    assert store.with_id(record).id != store.with_id(replace(record, carried={"sample": 3})).id


def test_test_images_are_taken_up_from_a_run_of_the_same_accuracy_alone():
    bits = store.test_images.packed(np.array([True, False]))
    old = replace(toy(1), kind="tune", values={"test": 50.0, "loss": [1.0]})
    assert carrying.with_images(
        old, {"test": 50.0, "loss": [2.0], "right": bits}
    ).right.tolist() == [True, False]
    assert carrying.with_images(old, {"test": 100.0, "right": bits}) is old
    assert carrying.with_images(old, {"test": 50.0}) is old
    with pytest.raises(vp.BadInput, match="so it stays"):
        carrying.keep_images(old, replace(old, values={"test": 100.0, "right": bits}))
