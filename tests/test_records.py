"""Records: found again by what decided them, written whole, damaged and edited ones refused."""

import errno
import io
import json
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd
import pytest

import visprompt as vp
from visbook.pages.page import with_sample
from visbook.site import record_pages
from visbook.studies import case, from_record, keepable, matching, renewing
from visbook.studies import lab as labs
from visbook.studies.case import Run
from visbook.studies.lab import Lab, LabSettings
from visprompt import records
from visprompt.__main__ import main
from visprompt.errors import BadInput, CannotWrite
from visprompt.records import index, keeping, listing, lists, merging, source, store
from visprompt.training.loop import run_settings

NANO = "vit_nano_patch4_24"


def make(value=1.0, calls=None, **changes):
    def compute():
        if calls is not None:
            calls.append(1)
        return {"value": value}

    return records.recorded("kind", {"a": 1, **changes}, compute)


def as_another_machine(monkeypatch, folder, value, **changes):
    """A run whose record lies in another machine's folder."""
    with monkeypatch.context() as patch:
        patch.setattr(store, "stores", lambda: [folder, folder / "none"])
        patch.setattr(store, "hardware", lambda: {"cpu": "another"})
        return make(value, **changes)


def test_another_machines_records_are_added_and_those_that_differ_are_refused(
    stores, tmp_path, monkeypatch, capsys
):
    other = tmp_path / "other"
    mine = [make(1.0), make(2.0, a=2)]
    theirs = [
        as_another_machine(monkeypatch, other, value, a=a)
        for a, value in ((1, 1.0), (2, 2.5), (3, 3.0))
    ]
    (other / "kind" / "damaged.json").write_text("{")
    found = merging.merge(other)
    assert (found.added, found.there, len(found.refused)) == (1, 1, 2)
    (line,) = [line for line in found.refused if "damaged" not in line]
    assert all(
        part in line
        for part in (mine[1].id, theirs[1].id, "has 2.0", "has 2.5", "(another,", "value:")
    )
    assert "\n" not in line
    # none of which runs again
    assert [make(0.0, a=a).values["value"] for a in (1, 2, 3)] == [1.0, 2.0, 3.0]
    assert main(["merge", str(other)]) == 2
    told = capsys.readouterr()
    assert (
        "0 records are added, 2 were here already" in told.out
        and "2 records are refused" in told.err
    )
    assert (
        main(["merge", str(tmp_path / "nowhere")]) == 2
        and "holds no record" in capsys.readouterr().err
    )


def test_an_outdated_record_gives_way_to_another_machines_current_one(
    stores, tmp_path, monkeypatch
):
    mine = make(1.0)
    as_another_machine(monkeypatch, tmp_path / "other", 2.0)
    monkeypatch.setattr(store, "is_current", lambda record: record.values["value"] == 2.0)
    assert merging.merge(tmp_path / "other").added == 1
    assert store.find("kind", {"a": 1}, mine.key).values["value"] == 2.0


@pytest.mark.refused
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("settings", None),
        ("settings", []),
        ("settings", "ap"),
        ("kind", None),
        ("kind", 3),
        ("key", ""),
        ("data", None),
        ("weights", 1),
        ("code", None),
        ("code", "../../code"),
        ("values", None),
        ("status", None),
        ("hardware", None),
        ("hardware", "a CPU"),
        ("versions", []),
        ("about", None),
        ("seconds", "3"),
        ("date", None),
    ],
)
@pytest.mark.parametrize("known", [False, True])
def test_another_machines_record_with_a_field_of_another_type_is_refused(
    stores, tmp_path, monkeypatch, capsys, field, value, known
):
    other = tmp_path / "other"
    theirs = as_another_machine(monkeypatch, other, 2.0)
    if known:
        make(1.0)
    (path,) = store.files(other)
    path.write_text(store.as_text(store.with_id(replace(theirs, **{field: value}))))
    (line,) = merging.merge(other).refused
    assert "\n" not in line and path.name in line and (field in line or "damaged" in line)
    assert main(["merge", str(other)]) == 2 and "Traceback" not in capsys.readouterr().err
    assert len(list(store.files(stores[0]))) == known  # nothing came here


def test_measurements_are_no_disagreement():
    one = {"test": 80.0, "loss": [1.0, 2.0], "fit_seconds": 3.0, "peak": {"memory_mb": 2}}
    assert merging.difference(one, {**one, "fit_seconds": 9.0, "peak": {"memory_mb": 3}}) is None
    assert merging.difference(one, {**one, "loss": [1.0, 2.5]}) == ("loss[1]", 2.0, 2.5)
    assert merging.difference(one, {"test": 80.0}) == ("loss", [1.0, 2.0], None)


def test_of_two_machines_at_one_run_the_second_takes_the_firsts_record(
    stores, tmp_path, monkeypatch, capsys
):
    theirs = as_another_machine(monkeypatch, tmp_path / "other", 2.0)

    def compute():  # meanwhile the other machine writes into the shared folder
        merging.merge(tmp_path / "other")
        return {"value": 1.0}

    monkeypatch.setattr(records, "made_with", lambda *_: True)
    assert records.recorded("kind", {"a": 1}, compute).id == theirs.id
    assert "has 2.0 and" in (told := capsys.readouterr().err) and theirs.id in told


def test_a_shared_folder_without_locks_that_shows_files_late_loses_no_run(stores, monkeypatch):
    """The writes of a second machine stay unseen while one writes; the last record of a run stands,
    whole."""
    first = make(1.0)
    with monkeypatch.context() as patch:
        patch.setattr(
            "fcntl.flock",
            lambda *_: (_ for _ in ()).throw(OSError(errno.ENOLCK, "No locks available")),
        )
        patch.setattr(store, "find", lambda *_: None)
        patch.setattr("pathlib.Path.exists", lambda path: False)
        second = make(2.0)
    assert first.key == second.key and second.values["value"] == 2.0
    assert store.read_record(path_of(second, stores[0])) == second == make(3.0)


def test_of_two_runs_that_end_in_one_moment_one_record_stands(stores):
    """Four processes file the same runs in the same moments: all are told of the same record."""
    code = """
import sys, time
from pathlib import Path
from visprompt import records
from visprompt.records import store
start, number = float(sys.argv[1]), int(sys.argv[2])
store.stores = lambda: [Path(sys.argv[3])]
for turn in range(20):
    done = store.new_record("kind", f"{turn:012d}", {"what": "race"}, {"value": number}, 0.0)
    time.sleep(max(0, start + turn * 0.05 - time.time()))
    print((store.write_record(done) or done).id)
"""
    words = [sys.executable, "-c", code, str(time.time() + 6)]
    racers = [
        subprocess.Popen([*words, str(i), str(stores[0])], stdout=subprocess.PIPE, text=True)
        for i in range(4)
    ]
    told = [racer.communicate()[0].split() for racer in racers]
    assert {len(ids) for ids in told} == {20} and len(set(map(tuple, told))) == 1
    assert {record.id for record in store.all_records(of=[stores[0]])} == set(told[0])


def path_of(record, folder):
    return folder / store.place(record.kind, record.settings, record.key)


def outdated(record):
    """The record as if other code had made it."""
    old = replace(record, code=store.write_code({"training.loop:fit": "0123456789ab"}))
    return replace(old, id=store.digest(asdict(old)))


def keep_as(record, stores):
    path = path_of(record, stores[1])
    store.write_whole(path, store.as_text(record))
    units = store.read_code(stores[0] / "code" / f"{record.code}.json")
    store.write_whole(stores[1] / "code" / f"{record.code}.json", store.code_text(units))
    return path


@pytest.fixture
def lab(stores):
    return Lab(LabSettings(changes={"epochs": 1}))


SMALL = Run(NANO, "position", "linear-probe", train_size=40)


def test_a_record_is_found_again_and_not_computed_twice(stores):
    calls = []
    first, second = make(calls=calls), make(calls=calls)
    assert first == second and len(calls) == 1
    assert make(calls=calls, a=2).id != first.id and len(calls) == 2
    assert (
        first.hardware["cores"] == os.cpu_count()
        and first.versions["torch"]
        and first.status == "done"
    )


def test_kept_records_are_found(stores):
    record = make()
    keep_as(record, stores)
    path_of(record, stores[0]).unlink()
    calls = []
    assert make(calls=calls) == record and not calls
    assert records.find_record(record.id) == record


def test_weights_decide_and_random_ones_are_known_by_their_seed(lab):
    """A random and a pretrained start are two runs, whatever file is newer, and the look-up finds
    each."""
    trained, drawn = lab.do(SMALL), lab.do(replace(SMALL, scratch=True))
    assert (
        drawn.weights == "random, seed 0"
        and len(trained.weights) == 12
        and trained.key != drawn.key
    )
    for run, record in ((SMALL, trained), (replace(SMALL, scratch=True), drawn)):
        for other in (trained, drawn):  # the file's time decides nothing
            os.utime(path_of(other, records.stores()[0]))
        assert lab.do(run, compute=False) == record == Lab(lab.bench).do(run)


def test_an_older_record_is_shown_and_said_to_be_older_but_not_taken_for_a_run(lab, stores):
    new = lab.do(SMALL)
    old = outdated(new)
    path_of(new, stores[0]).unlink()
    keep_as(old, stores)
    assert not records.is_current(old) and records.is_current(new)
    assert lab.do(SMALL, compute=False) == old
    assert {k: v for k, v in lab.do(SMALL).values.items() if k != "fit_seconds"} == {
        k: v for k, v in new.values.items() if k != "fit_seconds"
    }
    assert lab.do(SMALL, compute=False) != old  # the current one wins, in whatever store


def test_looking_up_draws_no_images_and_builds_no_model(lab, monkeypatch):
    record = lab.do(SMALL)
    for module, name in ((labs, "load_task"), (case, "build_method")):
        monkeypatch.setattr(
            module, name, lambda *args, **more: pytest.fail("not needed to find a record")
        )
    fresh = Lab(lab.bench)
    assert fresh.resolve(SMALL).find() == record == Lab(lab.bench).do(SMALL)


def test_a_record_found_by_settings_is_the_one_that_tune_finds(lab):
    for run in (
        SMALL,
        replace(
            SMALL,
            method="vpt-deep",
            settings={"prompt_tokens": 3},
            rate=0.01,
            prepared_on="texture",
        ),
    ):
        assert vp.tune(**lab.prepare(run)) == lab.resolve(run).find() is not None


@dataclass(frozen=True)
class Chosen:
    rank: int = 3
    name: str = "a"


def test_a_field_at_its_default_does_not_decide_the_key():
    assert records.key_of("k", {"s": Chosen()}) == records.key_of("k", {"s": {}})
    assert records.key_of("k", {"s": Chosen(rank=4)}) == records.key_of("k", {"s": {"rank": 4}})
    assert records.spread({"s": Chosen(4)}) == ({"s": {"rank": 4, "name": "a"}}, {"s": {"rank": 4}})


@pytest.mark.refused
@pytest.mark.parametrize(
    "change",
    [
        {"values": {"value": 2.0}},
        {"values": {"value": None}},
        {"values": {}},
        {"status": "failed"},
        {"settings": {"a": 3}},
        {"kind": "other"},
        {"code": ""},
        {"weights": "x"},
        {"id": "0" * 12},
        {"commit": "abc"},
        {"seconds": 1e9},
    ],
)
def test_an_edited_record_is_refused(stores, change):
    record = make()
    path = path_of(record, stores[0])
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    for read in (make, lambda: store.read_record(path), lambda: records.all_records("kind")):
        with pytest.raises(BadInput, match="damaged.*Delete that file"):
            read()
    path.unlink()
    assert make().values == {"value": 1.0}


@pytest.mark.refused
@pytest.mark.parametrize("value", [150, -1, float("nan"), "60", None, True])
def test_an_accuracy_that_cannot_be_is_refused_though_its_id_is_right(stores, value):
    wrong = store.new_record("tune", "k" * 12, {"method": "ap", "task": "t"}, {"test": value}, 0.0)
    path = stores[0] / "tune" / "x.json"
    store.write_whole(path, json.dumps(asdict(wrong)))
    if value is not True:
        with pytest.raises(BadInput, match="damaged"):
            store.read_record(path)


@pytest.mark.refused
@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "null", '{"id": "x"}', "\x00\x01", '{"id": ' + "[" * 2000]
)
def test_a_damaged_record_is_named_with_the_remedy(stores, text):
    path = path_of(make(), stores[0])
    path.write_text(text)
    with pytest.raises(BadInput, match=f"{path.stem}.*damaged.*Delete that file") as told:
        make()
    assert "\n" not in str(told.value)


def test_a_pipe_in_a_records_place_does_not_hang(stores):
    path = path_of(make(), stores[0])
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(BadInput, match="damaged"):
        store.read_record(path)


def test_a_list_of_code_that_was_edited_makes_no_record_current(lab, stores):
    record = lab.do(SMALL)
    path = stores[0] / "code" / f"{record.code}.json"
    units = json.loads(path.read_text())
    units.pop("training.loop:fit")
    path.write_text(json.dumps(units))
    store.code_stands.cache_clear()
    assert not records.is_current(record)


def full(*args):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_leaves_nothing_half_written(stores, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(store.os, "fsync", full)
        with pytest.raises(CannotWrite, match="No space left on device.*finished runs are kept"):
            make()
    assert [p.name for p in stores[0].rglob("*") if p.is_file()] == []
    assert make().values == {"value": 1.0}


def test_a_full_disk_stops_a_study_at_once(stores, monkeypatch):
    done = []
    monkeypatch.setattr(store.os, "fsync", full)
    with pytest.raises(CannotWrite):
        records.run_all([(str(i), lambda i=i: make(calls=done, i=i)) for i in range(12)], "test")
    assert len(done) == 1


def test_a_failed_run_leaves_its_failure_and_the_others_go_on(stores):
    def fail():
        raise FloatingPointError("the loss is nan")

    jobs = [("bad", lambda: records.recorded("kind", {"b": 1}, fail)), ("good", make)]
    with pytest.raises(
        BadInput, match="1 of 2 runs failed.*bad: FloatingPointError: the loss is nan"
    ):
        records.run_all(jobs, "test")
    (failed,) = stores[0].rglob("failed/kind/*.json")
    assert json.loads(failed.read_text())["error"] == "FloatingPointError: the loss is nan"
    assert make(calls=(calls := [])).values == {"value": 1.0} and not calls
    records.recorded("kind", {"b": 1}, lambda: {"value": 2})
    assert not list(stores[0].rglob("failed/kind/*.json"))


def test_a_failure_on_bad_input_goes_when_the_run_succeeds(lab, stores, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(
            case, "build_method", lambda *args, **more: (_ for _ in ()).throw(BadInput("mend me"))
        )
        with pytest.raises(BadInput, match="mend me"):
            lab.do(SMALL)
    assert len(list(stores[0].rglob("failed/tune/*.json"))) == 1
    lab.do(SMALL)
    assert not list(stores[0].rglob("failed/tune/*.json"))
    with pytest.raises(BadInput):  # of another machine, which would not find the data
        labs.Lab(replace(lab.bench, data_dir="nowhere", device="cuda")).do(
            replace(SMALL, task="nosuch")
        )
    assert len(list(stores[0].rglob("failed/tune/*.json"))) == 1
    with pytest.raises(BadInput):
        lab.do(replace(SMALL, task="nosuch"))
    # one run, whatever machine it failed on
    assert len(list(stores[0].rglob("failed/tune/*.json"))) == 1


def test_a_record_in_the_place_of_another_is_refused(stores):
    kept, other = make(), records.recorded("kind", {"a": 2}, lambda: {"value": 2.0})
    path_of(kept, stores[0]).write_bytes(path_of(other, stores[0]).read_bytes())
    with pytest.raises(BadInput, match="its name belongs to another run"):
        make()


def test_nan_is_no_record(stores):
    with pytest.raises(ValueError, match="not JSON compliant"):
        make(float("nan"))
    assert not list(store.files(stores[0]))


def test_the_same_run_again_replaces_its_record(stores):
    first = make()
    second = records.recorded("kind", {"a": 1}, lambda: {"value": 3.0}, run="again")
    assert second.values == {"value": 3.0} and second.key == first.key
    assert list(store.files(stores[0])) == [path_of(second, stores[0])]


KILLED = """
import sys; from visprompt import records
records.store.hardware = dict  # torch would take longer to load than all else takes
for i in range(int(sys.argv[1])):
    records.recorded("k", {"i": i}, lambda: {"x": "y" * 200_000})
    print(i, flush=True)
"""


def test_killed_runs_leave_whole_records_and_the_next_one_carries_on(tmp_path, stores):
    """Processes that write records are killed at random moments; what they left is whole, and the
    next goes on."""
    chance, environment = random.Random(0), {**os.environ, "VISPROMPT_ROOT": str(tmp_path)}
    told = -1
    for _ in range(4):
        run = subprocess.Popen(
            [sys.executable, "-c", KILLED, "60"], env=environment, stdout=subprocess.PIPE, text=True
        )
        told = max(told, int(run.stdout.readline() or -1))
        time.sleep(chance.random() / 10)
        run.send_signal(signal.SIGKILL)
        told = max([told, *map(int, run.stdout.read().split())])
        run.wait()
        left = list(store.files(stores[0]))
        assert all(store.read_record(path).values["x"] for path in left) and len(left) >= told + 1
    done = subprocess.run(
        [sys.executable, "-c", KILLED, "60"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0 and len(list(store.files(stores[0]))) == 60
    store.sweep_parts(stores[0], age=-1)
    assert not list(stores[0].rglob("*.part"))


# Keeping


@pytest.fixture
def committed(monkeypatch):
    """As if this were a clean checkout of a commit that the repository has."""
    monkeypatch.setattr(store, "commit", lambda: "c" * 12)
    monkeypatch.setattr(keeping, "is_known", lambda commit, known={}: commit == "c" * 12)


def test_only_whole_records_of_a_committed_tree_are_kept(stores, monkeypatch, committed):
    good = make()
    monkeypatch.setattr(store, "commit", lambda: "c" * 12 + "+changes")
    make(a=2)
    monkeypatch.setattr(store, "commit", lambda: "d" * 12)  # a commit that is nowhere
    make(a=3)
    path = path_of(make(a=4), stores[0])
    path.write_text(path.read_text()[:-40])
    places, refused = keeping.keep()
    assert len(places) == 1 and sum(refused.values()) == 3 and refused["damaged"] == 1
    assert [store.read_record(p) for p in store.files(stores[1])] == [good] and records.is_current(
        good
    )
    path.unlink()
    path_of(good, stores[0]).unlink()
    (stores[0] / "code" / f"{good.code}.json").unlink()
    assert records.is_current(records.find_record(good.id))  # its list of code was kept too


def test_keeping_is_whole_or_not_at_all_and_mends_itself(stores, monkeypatch, committed):
    for number in range(6):
        make(a=number)
    monkeypatch.setattr(store.os, "replace", lambda *args: full())
    with pytest.raises(CannotWrite):
        keeping.keep()
    assert not list(stores[1].rglob("*.json"))
    monkeypatch.undo()
    monkeypatch.setattr(store, "ROOT", stores[0].parents[1])
    monkeypatch.setattr(keeping, "is_known", lambda commit, known={}: True)
    first, second = keeping.keep(), keeping.keep()
    assert first == second and len(first[0]) == 6 and first[1] == Counter()
    half = next(store.files(stores[1]))
    half.write_text(half.read_text()[:50])
    with pytest.raises(BadInput, match="damaged"):
        keeping.keep()


def test_keeping_an_unknown_kind_is_refused(stores, committed):
    make()
    with pytest.raises(BadInput, match="no record of kind 'nosuch'.*there are: kind"):
        keeping.keep("nosuch")


def test_a_newer_run_takes_the_place_of_the_kept_one(lab, stores, committed):
    new = lab.do(SMALL)
    path = keep_as(outdated(new), stores)
    keeping.keep("tune")
    assert store.read_record(path) == new and list(store.files(stores[1], "tune")) == [path]


# Renewing


@pytest.fixture
def kept_old(lab, stores, committed):
    """Kept records of older code: from scratch, prepared on another task, and plain ones; and what
    they were."""
    runs = [
        replace(SMALL, scratch=True),
        replace(SMALL, method="vpt-deep", prepared_on="texture", rate=0.01),
        SMALL,
        replace(SMALL, seed=1),
    ]
    made = [lab.do(run) for run in runs]
    for record in made:
        keep_as(outdated(record), stores)
        path_of(record, stores[0]).unlink()
    return made


def accuracies(folder):
    return {
        r.key: (r.values["test"], r.weights, r.data)
        for r in map(store.read_record, store.files(folder, "tune"))
    }


def test_outdated_kept_records_are_run_again_with_their_own_weights(kept_old, stores):
    """A record from scratch stays one from scratch, and one prepared on another task too."""
    assert not any(
        records.is_current(r) for r in map(store.read_record, store.files(stores[1], "tune"))
    )
    assert renewing.renew("tune") == 4 and renewing.renew("tune") == 0
    assert accuracies(stores[1]) == {r.key: (r.values["test"], r.weights, r.data) for r in kept_old}
    assert all(
        records.is_current(r) for r in map(store.read_record, store.files(stores[1], "tune"))
    )


def with_accuracy(record, percent):
    """Values of a record that says another accuracy, and not of which images."""
    return {
        name: value for name, value in record.values.items() if name != store.test_images.NAME
    } | {"test": percent}


def without_images(stores, change=lambda values: values):
    """Kept records as they were before they said which test images were named right."""
    for path in list(store.files(stores[1], "tune")):
        record = store.read_record(path)
        values = change(
            {name: value for name, value in record.values.items() if name != store.test_images.NAME}
        )
        path.write_text(store.as_text(store.with_id(replace(record, values=values))))


def test_the_test_images_of_kept_records_are_fetched_by_running_them_again(lab, stores, committed):
    for seed in (0, 1):
        keeping.keep_record(lab.do(replace(SMALL, seed=seed)))
        path_of(lab.do(replace(SMALL, seed=seed)), stores[0]).unlink()
    before = accuracies(stores[1])
    without_images(stores)
    assert renewing.renew("tune", lacking_images=True, method="no-such") == 0
    assert (
        renewing.renew("tune", lacking_images=True) == 2
        and renewing.renew("tune", lacking_images=True) == 0
    )
    assert accuracies(stores[1]) == before
    assert all(len(store.read_record(path).right) for path in store.files(stores[1], "tune"))


def test_a_record_of_another_processor_takes_up_the_images_alone_and_only_at_the_same_accuracy(
    lab, stores, committed
):
    keeping.keep_record(made := lab.do(SMALL))
    path_of(made, stores[0]).unlink()
    without_images(stores, lambda values: values | {"loss": [x + 1e-6 for x in values["loss"]]})
    assert renewing.renew("tune", lacking_images=True) == 1
    (kept,) = map(store.read_record, store.files(stores[1], "tune"))
    assert (
        kept.values["loss"] == [x + 1e-6 for x in made.values["loss"]]
        and (kept.right == made.right).all()
    )
    without_images(stores, lambda values: values | {"test": 99.0})
    with pytest.raises(vp.BadInput, match="test was 99.0 and is .* so it stays"):
        renewing.renew("tune", lacking_images=True)


def test_a_merge_adds_test_images_and_takes_none_away(stores, tmp_path):
    bits = store.test_images.packed(np.array([True, False]))
    plain = store.with_id(store.Record("", "a" * 12, "tune", {}, "", "", "b" * 12, {"test": 50.0}))
    full = store.with_id(replace(plain, values={"test": 50.0, "right": bits}))

    def write(folder, record):
        store.write_whole(folder / store.place("tune", {}, "a" * 12), store.as_text(record))

    for mine, other, added in ((plain, full, 1), (full, plain, 0)):
        write(stores[0], mine)
        write(tmp_path / "other", other)
        assert merging.merge(tmp_path / "other").added == added
        (there,) = map(store.read_record, store.files(stores[0]))
        assert there.right.tolist() == [True, False]


def test_a_record_at_another_image_size_is_run_again_at_its_own(stores):
    settings = {
        "backbone": "vit_tiny_patch16_224",
        "image_size": 112,
        "normalisation": {"mean": (0.5,) * 3, "std": (0.5,) * 3},
    }
    record = store.Record("0" * 12, "0" * 12, "tune", settings, "", "random, seed 0", "", {})
    assert from_record.backbone_of(record, {}).image_size == 112


def test_nothing_is_removed_before_its_successor_is_written(kept_old, stores, monkeypatch):
    before = accuracies(stores[1])
    monkeypatch.setattr(store.os, "fsync", full)
    with pytest.raises(CannotWrite):
        renewing.renew("tune")
    assert accuracies(stores[1]) == before


def test_the_command_runs_a_sample_again_and_carries_the_others(kept_old, stores, capsys):
    before = accuracies(stores[1])
    assert main(["carry", "1", "--seed", "3", "--dry-run"]) == 0
    said = capsys.readouterr().out
    sample = len(list(store.files(stores[0], "tune")))
    assert 2 <= sample < 4, "both methods and both starts, and not all"
    assert f"a sample of {sample} is run, seed 3; nothing is carried yet" in said
    assert not any(records.is_current(r) for r in kept_tunes(stores))
    assert main(["carry", "1", "--seed", "3"]) == 0
    assert (
        f"tune: {sample} run again (seed 3), equal, {4 - sample} carried" in capsys.readouterr().out
    )
    assert accuracies(stores[1]) == before and all(map(records.is_current, kept_tunes(stores)))
    marks = [record.carried for record in kept_tunes(stores) if record.carried]
    assert [mark["sample"] for mark in marks] == [sample] * (4 - sample)
    below = with_sample(kept_tunes(stores))
    assert below.startswith(f"; {4 - sample} carried to newer code (sample run again: {sample} at")


def test_the_command_carries_nothing_when_one_of_the_sample_came_out_otherwise(
    kept_old, stores, capsys
):
    for path in list(store.files(stores[1], "tune")):
        record = store.read_record(path)
        other = replace(record, values=with_accuracy(record, 99.0))
        path.write_text(store.as_text(store.with_id(other)))
    assert main(["carry", "1"]) == 2
    assert "came out otherwise; renew their kinds" in capsys.readouterr().err
    assert not any(records.is_current(r) for r in kept_tunes(stores))


def kept_tunes(stores):
    return [store.read_record(path) for path in store.files(stores[1], "tune")]


def test_two_parts_side_by_side_leave_none_and_one_part_twice_does_no_harm(kept_old, stores):
    assert renewing.renew("tune", "1/2") + renewing.renew("tune", "2/2") == 4
    assert renewing.renew("tune", "1/2") == 0
    assert all(
        records.is_current(r) for r in map(store.read_record, store.files(stores[1], "tune"))
    )


def renew_there(root, part):
    store.ROOT = root
    keeping.is_known = lambda commit, known={}: True
    store.commit = lambda: "c" * 12
    renewing.renew("tune", part)


def test_two_processes_may_renew_one_part(kept_old, stores, tmp_path):
    context = multiprocessing.get_context("fork")
    both = [context.Process(target=renew_there, args=(tmp_path, "1/1")) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    assert all(
        records.is_current(r) for r in map(store.read_record, store.files(stores[1], "tune"))
    )


def test_weights_that_are_not_here_are_asked_for(kept_old, stores):
    path = next(p for p in store.files(stores[1], "tune") if "random" not in p.read_text())
    record = store.read_record(path)
    other = replace(record, weights="0123456789ab")
    store.write_whole(path, store.as_text(replace(other, id=store.digest(asdict(other)))))
    with pytest.raises(BadInput, match=f"1 could not be.*--weights {NANO}=FILE"):
        renewing.renew("tune")


@pytest.mark.refused
@pytest.mark.parametrize("wrong", [("plots",), ("tune", "3/2"), ("tune", "half"), ("tune", "0/0")])
def test_renewing_what_is_none_is_refused(wrong, stores):
    with pytest.raises(BadInput, match="kind|1/2"):
        renewing.renew(*wrong)


def test_verifying_compares_and_says_when_the_threads_differ(lab, stores, committed):
    record = lab.do(SMALL)
    other = replace(
        record, values=with_accuracy(record, 12.5), hardware={**record.hardware, "threads": 9}
    )
    other = replace(other, id=store.digest(asdict(other)))
    keep_as(other, stores)
    (row,) = renewing.verify(3)
    assert row["kept"] == 12.5 and row["now"] == record.values["test"]
    assert (
        row["difference"] == pytest.approx(row["now"] - 12.5) and "threads 9, here" in row["note"]
    )


# What is kept


def told(kind="tune", /, task="position", method="lora", profile="quick", counts=None, **settings):
    """A record of this machine that says what one of a study would."""
    data = "embedded" if counts is None else "a folder"
    about = {"profile": profile, "recipe": profile, "data": data} | (
        {} if counts is None else {"split": {"counts": counts}}
    )
    settings = {
        "method": method,
        "task": task,
        "seed": 0,
        "train_size": counts[0] if counts else 800,
    } | settings
    return records.recorded(
        kind, settings, lambda: {"test": 50.0, "val": 50.0}, weights="0123456789ab", about=about
    )


def refusals(**asked):
    places, refused = keepable.keep(**asked)
    return len(places), "; ".join(refused)


def test_keep_takes_the_projects_own_tasks_alone(stores, committed):
    for task, counts in (
        ("position", None),
        ("scenes_shape", None),
        ("cub_200_2011", [5394, 600, 5794]),
    ):
        told(
            "segment" if task.startswith("scenes") else "tune",
            task,
            profile="paper",
            train_size=counts[0] if counts else 400,
            counts=counts,
        )
    told(task="holidays", counts=[60, 10, 20])
    told("drawings", "family")
    assert refusals() == (
        3,
        "'family' is no task of the project's manifests (--any-data keeps it); 'holidays' "
        "is no task of "
        "the project's manifests (--any-data keeps it)",
    )
    assert refusals(any_data=True) == (5, "")


@pytest.mark.parametrize(
    ("task", "counts", "why"),
    [
        (
            "cub_200_2011",
            [60, 10, 20],
            "cub_200_2011 has 60/10/20 images, its manifest says 5394/600/5794 "
            "(--any-data keeps it)",
        ),
        (
            "gtsrb",
            [800, 200, 1720],
            "gtsrb has 800/200/1720 images, its manifest says 39209/-/12630 (--any-data keeps it)",
        ),
        ("gtsrb", [39209, 0, 12630], ""),
        ("sun397_full", [15888, 0, 19850], ""),  # as a paper prints it
        ("sun397_full", [15880, 3970, 19850], ""),  # as the released lists have it
        (
            "sun397_full",
            [15870, 3970, 19850],
            "sun397_full has 15870/3970/19850 images, its manifest says 15888/-/19850 or "
            "15880/3970/19850 (--any-data keeps it)",
        ),
        ("gtsrb", [35289, 3920, 12630], ""),  # val was held out of train
        (
            "position",
            [60, 10, 20],
            "position has 60/10/20 images, its manifest says up to 6400 to train on "
            "(--any-data keeps it)",
        ),
    ],
)
def test_a_data_set_is_kept_with_its_manifests_numbers_of_images_alone(
    stores, committed, task, counts, why
):
    told(task=task, profile="paper", counts=counts)
    assert refusals() == (int(not why), why)


def test_photograph_sets_of_profile_real_are_kept_as_they_are_kept_already(stores, committed):
    told(task="ucmerced", profile="real", counts=[800, 200, 630])
    assert refusals() == (1, "")
    told(task="ucmerced", profile="real", counts=[60, 10, 20], method="bias")
    told(task="cub_200_2011", profile="real", counts=[60, 10, 20])
    told(task="ucmerced", profile="quick", counts=[800, 200, 630], method="vpt-deep")
    count, why = refusals()
    assert count == 1 and "ucmerced has 60/10/20 images, the kept runs have 800/200/630" in why
    assert (
        "cub_200_2011 has 60/10/20 images, its manifest says 5394/600/5794" in why
        and "'ucmerced' is no task" in why
    )


def test_all_that_the_project_keeps_may_be_kept():
    manifests, kept = keepable.Manifests(), store.stores()[1]
    every = [store.read_record(path) for path in store.files(kept)]
    assert len(every) > 3000 and {record.kind for record in every} <= keepable.KINDS
    assert not [
        record.id
        for record in every
        if keepable.of_other_kind(record) or manifests.other_data(record)
    ]


def test_a_kind_that_the_book_does_not_ask_for_is_kept_by_its_name_alone(stores, committed):
    make(), told()
    assert refusals() == (1, "no part of the book asks for kind 'kind' (--kind kind keeps it)")
    assert refusals(kind="kind") == (1, "")


def test_kinds_that_code_writes_are_those_that_may_be_kept():
    files = [
        *source.NOTEBOOKS.glob("*.py"),
        *(p for package in source.PACKAGES for p in package.rglob("*.py")),
    ]
    words = [
        re.findall(r'(?:recorded|measured)\(\s*"([\w-]+)"', path.read_text(encoding="utf-8"))
        for path in files
    ]
    assert {word for found in words for word in found} == keepable.KINDS


def test_keep_narrowed_and_tried(lab, stores, committed, capsys):
    told(), told(task="letters"), told(method="bias"), told("cost")
    assert (
        main(["keep", "--kind", "tune", "--method", "lora", "--task", "position", "--dry-run"]) == 0
    )
    said = capsys.readouterr()
    assert (
        said.out.count("\n") == 1
        and "tune/lora/position" in said.out
        and "1 records would be kept" in said.err
    )
    assert not list(store.files(stores[1]))
    assert (
        main(["keep", "--method", "lora"]) == 0 and "3 records are kept" in capsys.readouterr().out
    )
    assert (
        main(["keep", "--method", "bias", "--task", "letters"]) == 2
        and "no record of this machine fits" in capsys.readouterr().err
    )
    for words, there in (
        (["--method", "lorra"], "'lora'"),
        (["--task", "nosuch"], "letters"),
        (["--study", "benchmrk"], "benchmark"),
    ):
        assert main(["keep", *words]) == 2
        error = capsys.readouterr().err
        assert there in error and error.count("\n") == 1


def test_keep_takes_the_runs_of_a_study(stores, committed):
    lab = Lab(LabSettings())
    run = Run("vit_micro_patch4_24", "position", "bias")
    about = {"weights": lab.backbone(run.backbone).fingerprint, "about": lab.resolve(run).about}
    settings = run_settings(
        **{
            name: lab.prepare(run)[name]
            for name in ("model", "task", "recipe", "seed", "prepared_on")
        }
    )

    def as_run(**changes):
        return records.recorded(
            "tune", settings | changes, lambda: {"test": 1.0, "val": 1.0}, **about
        )

    # and one of its search
    (as_run(), as_run(seed=1), as_run(recipe=replace(settings["recipe"], learning_rate=0.9)))
    (
        as_run(train_size=80),
        as_run(recipe=replace(settings["recipe"], epochs=1)),
        as_run(method="lora"),
    )
    assert refusals(study="benchmark") == (3, "") and refusals(study="sizes") == (0, "")


# The list


@pytest.fixture
def listed(stores, monkeypatch):
    """Records of two methods and kinds, and an index that believes in files of this very moment."""
    monkeypatch.setattr(index, "YOUNG", 0)
    monkeypatch.setitem(index.SEEN, "tree", index.state_of_sources())
    (
        told(),
        told(seed=1),
        told(task="letters", method="linear-probe", recipe={"head_rate": 0.5, "epochs": 3}),
        told("cost", seed=None),
    )
    return stores


def opened(monkeypatch):
    """The records that are read from now on."""
    seen, read = [], store.read_record
    monkeypatch.setattr(store, "read_record", lambda path: seen.append(path) or read(path))
    return seen


def test_records_are_listed_filtered_and_counted(lab, stores):
    new, plain = lab.do(SMALL), lab.do(replace(SMALL, seed=2))
    keep_as(outdated(plain), stores)
    frame = listing.table("tune")
    assert list(frame.columns)[: len(listing.COLUMNS)] == list(listing.COLUMNS) and len(frame) == 3
    assert listing.counts(frame) == {"tune": {"every": 3, "current": 2, "carried": 0, "other": 0}}
    assert list(listing.table(outdated=True).store) == ["kept"]
    assert set(listing.table("tune", task="position").id) >= {new.id}
    assert frame.rate.iloc[0] == new.settings["recipe"]["head_rate"]
    for name, value in (
        ("seed", 2),
        ("profile", "quick"),
        ("recipe", "quick"),
        ("store", "kept"),
        ("backbone", NANO),
    ):
        assert len(vp.runs("tune", **{name: value})) == len(frame[frame[name] == value]) > 0
    assert list(vp.runs(version="torch=" + index.minor(new.versions["torch"])).id) == list(
        vp.runs().id
    )


def test_a_csv_has_every_setting_and_the_screen_few(listed, capsys):
    assert main(["runs", "--format", "csv"]) == 0
    frame = pd.read_csv(io.StringIO(capsys.readouterr().out))
    own = [name for name in frame if name.startswith("settings.")]
    assert (
        own
        == ["settings.recipe.epochs", "settings.recipe.head_rate", "settings.train_size"]
        == sorted(own)
    )
    assert list(frame.columns[: len(listing.COLUMNS)]) == list(listing.COLUMNS)
    assert frame["settings.recipe.epochs"].dropna().tolist() == [3] and list(
        vp.runs().columns
    ) == list(frame.columns)
    assert main(["runs"]) == 0
    assert "settings" not in capsys.readouterr().out


@pytest.mark.refused
def test_keep_of_a_kind_that_is_none_is_one_line(listed, capsys):
    assert main(["keep", "--kind", "/etc/passwd", "--method", "lora"]) == 2
    told = capsys.readouterr().err
    assert "unknown kind '/etc/passwd'" in told and told.count("\n") == 1


@pytest.mark.refused
@pytest.mark.parametrize(
    ("words", "there"),
    [
        (["--kind", "tunes"], "Did you mean 'tune'? Allowed: cost, tune."),
        (["--kind", "/etc/passwd"], "unknown kind '/etc/passwd'"),
        (["--method", "lorra"], "Allowed: linear-probe, lora."),
        (["--task", "nosuch"], "Allowed: letters, position."),
        (["--backbone", "x"], "no record here has a backbone"),
        (["--seed", "7"], "Allowed: 0, 1."),
        (["--profile", "papers"], "Allowed: quick."),
        (["--recipe", "spt"], "Allowed: quick."),
        (["--store", "there"], "Allowed: here."),
        (["--version", "torch=1.0"], "torch="),
        (["--paper", "app"], "Did you mean 'ap'"),
        (["--study", "benchmrk"], "Did you mean 'benchmark'"),
    ],
)
def test_an_unknown_value_of_a_filter_names_what_there_is(listed, capsys, words, there):
    assert main(["runs", *words]) == 2
    error = capsys.readouterr().err
    assert there in error and error.count("\n") == 1


def test_a_paper_and_a_study_have_their_runs(monkeypatch):
    every = [entry for entry in index.entries("tune") if entry["store"] == "kept"]
    asked = {
        "benchmark": matching.of_study("benchmark"),
        "real": matching.of_study("real"),
        "spt": matching.of_paper("spt"),
    }
    found = {name: [entry for entry in every if fits(entry)] for name, fits in asked.items()}
    assert {entry["about"]["profile"] for entry in found["real"]} == {"real"} and len(
        found["real"]
    ) > 400
    assert {entry["settings"]["task"] for entry in found["benchmark"]} == {
        "flowers",
        "position",
        "letters",
        "texture",
    }
    assert {entry["settings"]["method"] for entry in found["spt"]} >= {"spt-deep", "vpt-deep"}
    assert not any(matching.of_paper("shallowvit")(entry) for entry in every)


def test_records_of_other_versions_stay_current_and_are_named(listed, monkeypatch, capsys):
    here = store.versions()
    for module in (store, records):
        monkeypatch.setattr(
            module, "versions", lambda: here | {"torch": "9.1.0", "timm": here["timm"] + ".post1"}
        )
    new, made = told(seed=2), f"torch {index.minor(here['torch'])}"
    frame = vp.runs("tune")
    assert frame.current.all() and sorted(frame.other_versions) == ["", made, made, made]
    assert list(vp.runs(version="other").kind) == ["cost", *3 * ["tune"]] and list(
        vp.runs(version="torch=9.1").id
    ) == [new.id]
    assert main(["runs", "--kind", "tune"]) == 0
    said = capsys.readouterr()
    assert made in said.out and "tune: 4 of 4 current, 0 carried, 3 of other versions" in said.err
    old = store.read_record(next(store.files(listed[0], "cost")))
    assert (
        record_pages.told_of(old)["other_versions"] == made
        and record_pages.told_of(new)["other_versions"] == ""
    )
    assert f"Of 4, 3 with {made}; this site was built with torch 9.1" in record_pages.told_versions(
        {made: 3}, 4
    )


# The index of the list


def test_a_second_list_opens_no_record_and_says_the_same(listed, monkeypatch):
    first = vp.runs()
    seen = opened(monkeypatch)
    assert index.file().parent == listed[0].parent and vp.runs().equals(first) and not seen


def test_a_changed_record_or_list_of_code_is_read_again(listed, monkeypatch):
    assert vp.runs().current.all()
    path = next(store.files(listed[0], "cost"))
    old, times = store.read_record(path), path.stat()
    changed = replace(old, values={"test": 7.0}, id="")
    path.write_text(store.as_text(store.with_id(changed)))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # a file's time alone would not tell
    seen = opened(monkeypatch)
    assert list(vp.runs("cost").test) == [7.0] and seen == [path]
    (listed[0] / "code" / f"{old.code}.json").write_text('{"edited": "by hand"}')
    assert not vp.runs("cost").current.any()
    path.unlink()
    assert "cost" not in set(vp.runs().kind)
    path.write_text("{")
    with pytest.raises(BadInput, match="damaged"):
        vp.runs()


def test_changed_code_makes_the_index_worthless(listed, monkeypatch):
    vp.runs()
    monkeypatch.setattr(index, "state_of_sources", lambda: "another tree")
    seen = opened(monkeypatch)
    assert len(vp.runs()) == len(seen) == 4


def test_what_a_run_read_is_looked_at_without_its_record(listed, monkeypatch):
    monkeypatch.setenv("TRIED", "1")
    code = store.write_code({"variable:TRIED": lists.variable_said("TRIED")})
    record = store.with_id(replace(told(seed=5), code=code))
    path = listed[0] / store.place(record.kind, record.settings, record.key)
    path.write_text(store.as_text(record))
    first = vp.runs()
    seen = opened(monkeypatch)
    assert first.current.all() and vp.runs().equals(first) and not seen
    monkeypatch.setenv("TRIED", "2")
    store.code_stands.cache_clear()  # as in a new process
    assert list(vp.runs(outdated=True).id) == [record.id] and seen == [path]


@pytest.mark.parametrize("spoil", ["cut", "edited", "gone", "a folder"])
def test_a_damaged_or_unwritable_index_changes_no_list(listed, monkeypatch, spoil):
    first, file = vp.runs(), index.file()
    text = file.read_text()
    file.unlink()
    if spoil == "a folder":
        file.mkdir()
    elif spoil != "gone":
        file.write_text(
            text[:-40] if spoil == "cut" else text.replace('"test":50.0', '"test":51.0')
        )
    assert vp.runs().equals(first)


# Verifying


@pytest.fixture
def three(lab, stores, committed):
    """Kept runs of today's code: of this machine, of another torch, and carried to newer code; no
    test accuracy is right."""
    runs = [replace(SMALL, seed=seed) for seed in range(3)]
    changes = [
        {},
        {"versions": {**store.versions(), "torch": "1.0.0"}},
        {"carried": {"from": "0123456789ab"}},
    ]
    made = []
    for run, change in zip(runs, changes, strict=True):
        record = lab.do(run)
        path_of(record, stores[0]).unlink()
        made.append(
            store.with_id(
                replace(record, values=with_accuracy(record, record.values["test"] + 9), **change)
            )
        )
        units = store.read_code(stores[0] / "code" / f"{record.code}.json")
        store.write_whole(stores[1] / "code" / f"{record.code}.json", store.code_text(units))
        store.write_whole(path_of(made[-1], stores[1]), store.as_text(made[-1]))
    return made


def test_verifying_begins_with_carried_records_and_those_of_other_versions(three):
    plain, other, carried = three
    for seed in range(3):
        assert next(renewing.verify(1, seed))["record"] == carried.id
    rows = list(renewing.verify(3))
    assert [row["record"] for row in rows] == [carried.id, other.id, plain.id]
    assert "torch 1.0.0, here" in rows[1]["note"] and rows[0]["note"] == ""


def test_verifying_shows_rows_as_they_come_and_fails_above_the_tolerance(
    three, monkeypatch, capsys
):
    told_so_far, fitting_of = [], renewing.fitting_of

    def watched(*asked):
        told_so_far.append(capsys.readouterr().out.count("\n"))
        return fitting_of(*asked)

    monkeypatch.setattr(renewing, "fitting_of", watched)
    assert main(["verify", "2"]) == 1
    assert told_so_far == [1, 1]  # the head, then the first row
    said = capsys.readouterr()
    assert (
        said.out.count("\n") == 1
        and "is off by 9 points, more than --tolerance 1" in said.err.splitlines()[-1]
    )
    assert (
        main(["verify", "1", "--tolerance", "9.5"]) == 0
        and "largest difference of 1: 9 points" in capsys.readouterr().err
    )


def test_another_machine_is_told_by_what_may_change_digits(stores):
    record = make()
    there = {"cpu": "another", "threads": 9, "gpu": ""}
    other = replace(
        record,
        hardware=there,
        versions={**record.versions, "torchvision": "0.1", "python": "3.9.0"},
    )
    assert [part.split()[0] for part in renewing.other_machine(other).split("; ")] == [
        "cpu",
        "threads",
        "torchvision",
        "python",
    ]
    assert renewing.other_machine(record) == ""
