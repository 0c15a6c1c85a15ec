"""Records: found again, written whole, damaged ones refused."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict

import pytest

import visprompt as vp
from visprompt import records
from visprompt.errors import BadInput
from visprompt.records import read_record, write_whole
from visprompt.renewing import renew


def make(value=1.0, calls=None, **changes):
    def compute():
        if calls is not None:
            calls.append(1)
        return {"value": value}

    return records.recorded("kind", {"a": 1, **changes}, compute, code=["errors"])


def test_a_record_is_found_again_and_not_computed_twice(stores):
    calls = []
    first, second = make(calls=calls), make(calls=calls)
    assert first == second and len(calls) == 1
    assert make(calls=calls, a=2).id != first.id and len(calls) == 2
    assert first.hardware["cores"] == os.cpu_count() and first.versions["torch"] and first.status == "done"


def test_kept_records_are_found(stores):
    record = make()
    path = stores[0] / "kind" / f"{record.id}.json"
    (stores[1] / "kind").mkdir(parents=True)
    path.rename(stores[1] / "kind" / path.name)
    calls = []
    assert make(calls=calls) == record and not calls
    assert records.find_record(record.id) == record


def test_changed_code_computes_again_and_the_old_record_says_so(stores, monkeypatch):
    old = make()
    monkeypatch.setattr(records, "fingerprint_code", lambda name: "other")
    calls = []
    assert make(calls=calls).id != old.id and calls
    assert not records.is_current(old)


def test_looking_without_running_takes_an_older_record(stores, monkeypatch):
    look = lambda: records.recorded("kind", {"a": 1}, None, code=["errors"], run=False)  # noqa: E731
    assert look() is None
    old = make()
    monkeypatch.setattr(records, "fingerprint_code", lambda name: "other")
    assert look() == old


def test_prose_does_not_change_a_fingerprint_and_code_does(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "PACKAGE", tmp_path)

    def fingerprint(text):
        records.fingerprint_code.cache_clear()
        (tmp_path / "m.py").write_text(text)
        return records.fingerprint_code("m")

    base = fingerprint('"""a"""\ndef f():\n    """b"""\n    return 1\n')
    assert base == fingerprint('"""other"""\ndef f():\n    """words"""\n    return 1  # why\n')
    assert base != fingerprint('"""a"""\ndef f():\n    """b"""\n    return 2\n')
    records.fingerprint_code.cache_clear()


@pytest.mark.parametrize("text", ["", "{", '{"id": "x"}', '{"id": "x", "kind": "kind", "settings": {}, "values": {}}'])
def test_a_damaged_record_is_named_with_the_remedy(stores, text):
    record = make()
    path = stores[0] / "kind" / f"{record.id}.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=f"{record.id}.*damaged.*Delete that file"):
        make()
    path.unlink()
    assert make().values == {"value": 1.0}


def test_a_full_disk_leaves_nothing_half_written(stores, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(records.os, "fsync", full)
        with pytest.raises(BadInput, match="No space left on device.*finished runs are kept"):
            make()
    assert [p.name for p in stores[0].rglob("*") if p.is_file()] == []
    assert make().values == {"value": 1.0}


def test_a_failed_run_leaves_its_failure_and_the_others_go_on(stores):
    def fail():
        raise FloatingPointError("the loss is nan")

    jobs = [
        ("bad", lambda: records.recorded("kind", {"b": 1}, fail, code=["errors"])),
        ("good", make),
    ]
    with pytest.raises(BadInput, match="1 of 2 runs failed.*bad: FloatingPointError: the loss is nan"):
        records.run_all(jobs, "test")
    (failed,) = stores[0].rglob("*.failed.json")
    assert json.loads(failed.read_text())["error"] == "FloatingPointError: the loss is nan"
    assert make(calls=(calls := [])).values == {"value": 1.0} and not calls
    records.recorded("kind", {"b": 1}, lambda: {"value": 2}, code=["errors"])
    assert not list(stores[0].rglob("*.failed.json"))


def test_nan_is_no_record(stores):
    with pytest.raises(ValueError, match="not JSON compliant"):
        make(float("nan"))
    assert not [p for p in stores[0].rglob("*.json") if ".failed" not in p.name]


def test_a_killed_run_leaves_whole_records_and_the_next_one_carries_on(tmp_path):
    """A process that writes records is killed; every file it left is whole, and a second process goes on."""
    script = (
        "import time, sys; from visprompt import records\n"
        "for i in range(40):\n"
        "    records.recorded('k', {'i': i}, lambda: {'x': 'y' * 200_000}, code=['errors'])\n"
        "    print(i, flush=True); time.sleep(0.02)\n"
    )
    environment = {**os.environ, "VISPROMPT_ROOT": str(tmp_path)}
    run = subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True)
    run.stdout.readline()
    time.sleep(0.3)
    run.send_signal(signal.SIGKILL)
    run.wait()
    left = list((tmp_path / "build" / "records" / "k").glob("*.json"))
    assert 0 < len(left) < 40
    assert all(records.read_record(path).values["x"] for path in left)
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0
    assert len(list((tmp_path / "build" / "records" / "k").glob("*.json"))) == 40


def test_outdated_kept_records_are_run_again(stores):
    """Same settings, data and values; only the fingerprint of the code is today's."""
    backbone, task = vp.load_backbone("vit_micro_patch4_24", "pretrained"), vp.load_task("digits", train_size=40)
    model = vp.build_method("linear-probe", backbone, task.classes)
    record = vp.tune(model, task, vp.Recipe(epochs=1), seed=3)
    old = asdict(record) | {"id": record.id.split("-")[0] + "-0123456789ab"}
    old["fingerprints"] = {**old["fingerprints"], "code": {**old["fingerprints"]["code"], "tuning": "older"}}
    here, kept = (store / "tune" for store in stores)
    write_whole(kept / f"{old['id']}.json", json.dumps(old))
    (here / f"{record.id}.json").unlink()
    assert renew("tune", "2/2") == 0
    assert renew("tune") == 1
    assert [path.stem for path in kept.iterdir()] == [record.id]
    renewed = read_record(kept / f"{record.id}.json")
    assert {k: v for k, v in renewed.values.items() if k != "fit_seconds"} == {
        k: v for k, v in record.values.items() if k != "fit_seconds"
    }
    assert renew("tune") == 0
    for wrong in (("plots",), ("tune", "3/2"), ("tune", "half")):
        with pytest.raises(vp.BadInput, match="kind|1/2"):
            renew(*wrong)


def test_records_older_than_a_field_are_found_where_it_has_their_value(stores):
    old = {"method": "ap", "recipe": {"epochs": 8}}
    kept = records.recorded("tune", old, lambda: {"test": 1.0}, code=["errors"])
    for augmentation, found in (("none", kept.id), ("crop and flip", None)):
        new = {"method": "ap", "recipe": {"epochs": 8, "augmentation": augmentation}}
        record = records.recorded("tune", new, dict, code=["errors"], run=False)
        assert (record and record.id) == found
    again = records.recorded("tune", {"method": "ap", "recipe": {"epochs": 8, "augmentation": "none"}},
                             lambda: {"test": 2.0}, code=["errors"])  # fmt: skip
    assert again.values == {"test": 2.0}  # a run that is asked for is done
