"""Random kills of what writes records: what was finished stays whole, and an undisturbed run does
the rest.

`VISPROMPT_KILLS=40 make test TESTS='tests/test_kills.py tests/test_workflow.py'` kills each 40
times, the site step among them, and half as often what is run again after each kill: papermill and
`make book`. VISPROMPT_SEED draws others.
"""

import ctypes
import multiprocessing
import os
import pwd
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from test_records import SMALL, keep_as, lab, make, outdated, path_of  # noqa: F401
from test_studies import lab as few_images  # noqa: F401

from visbook.studies import grids, renewing
from visprompt import records
from visprompt.__main__ import main
from visprompt.records import keeping, store

KILLS, SEED = (
    int(os.environ.get(f"VISPROMPT_{name}", usual)) for name, usual in (("KILLS", 4), ("SEED", 0))
)
SCOPE = {"tasks": ["position"], "methods": ["linear-probe", "bias", "vpt-deep"]}
NOTEBOOK = """# %%
import time
from visprompt.records import recorded, store
store.hardware = dict  # torch would take longer to load than all else takes
for number in range(20):
    recorded("kind", {"a": number}, lambda: time.sleep(0.02) or {"value": 1.0})
"""


@pytest.fixture(autouse=True)
def committed(monkeypatch):
    """As if this were a clean checkout of a commit that the repository has."""
    monkeypatch.setattr(store, "commit", lambda: "c" * 12)
    monkeypatch.setattr(keeping, "is_known", lambda commit, known={}: True)


def found(folder: Path) -> dict[str, tuple]:
    """Key -> what a record says, of all records of a store; a damaged one raises."""
    every = map(store.read_record, store.files(folder))
    return {
        r.key: (r.settings, r.data, r.weights, r.values.get("test", r.values.get("value")))
        for r in every
    }


def alone(work: Callable) -> None:
    os.setsid()
    work()


def kill_at_random(work: Callable, ready: Callable, rerun: bool = False) -> None:
    """Do `work` to its end, then kill it `KILLS` times, each from a state that `ready` leaves; then
    do it to its end. With `rerun` half as often, and to its end after each kill.

    After each kill, both stores hold whole records with right values, and all that they held before
    it.
    """
    print(f"VISPROMPT_SEED={SEED}")
    chance, context, right = random.Random(SEED), multiprocessing.get_context("fork"), None

    def to_the_end():
        run = context.Process(target=work)
        run.start(), run.join()
        assert run.exitcode == 0 and right in (None, list(map(found, records.stores())))

    begun = time.perf_counter()
    to_the_end()
    whole, right = time.perf_counter() - begun, list(map(found, records.stores()))
    for _ in range(max(1, KILLS // 2) if rerun else KILLS):
        ready(chance)
        before = list(map(found, records.stores()))
        run = context.Process(target=alone, args=(work,))
        run.start()
        time.sleep(chance.uniform(0.02, whole))
        # it may not lead a group yet
        for kill, which in ((os.killpg, run.pid), (os.kill, run.pid)):
            try:
                kill(which, signal.SIGKILL)
            except ProcessLookupError:
                pass
        run.join()
        after = list(map(found, records.stores()))
        for held, holds, may in zip(before, after, right, strict=True):
            assert held.keys() <= holds.keys() and holds.items() <= may.items()
        if rerun:
            to_the_end()
    if not rerun:
        to_the_end()
    for folder in records.stores():
        store.sweep_parts(folder, age=-1)
        assert not list(folder.rglob("*.part"))


def once_elsewhere(work: Callable, folder: Path) -> None:
    """Do `work` with another store, so that the processes to be killed begin with all that it
    loads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "ROOT", folder)
        work()


def forget_some(folder: Path, share: float = 0.5) -> Callable:
    """A state in which a store lacks some of its records, drawn anew each time."""

    def ready(chance):
        for path in store.files(folder):
            if chance.random() < share:
                path.unlink()

    return ready


def test_a_killed_study(few_images, stores, tmp_path):  # noqa: F811
    def work():
        grids.study("benchmark", grids.scope_of("quick", **SCOPE), few_images, seeds=[0, 1])

    once_elsewhere(work, tmp_path / "elsewhere")
    few_images.known.clear()  # the facts of a task are a record too
    kill_at_random(work, forget_some(stores[0]))
    assert len(found(stores[0])) == 7  # six runs and the facts of their task


def test_killed_papermill(tmp_path, stores):
    import jupytext
    import nbformat

    nbformat.write(jupytext.reads(NOTEBOOK, "py:percent"), tmp_path / "one.ipynb")
    os.environ["VISPROMPT_ROOT"] = str(tmp_path)
    command = [
        sys.executable,
        "-m",
        "papermill",
        "-k",
        "python3",
        "--no-progress-bar",
        "one.ipynb",
        "done.ipynb",
    ]

    def work():
        os.chdir(tmp_path)
        os.execv(sys.executable, command)

    try:
        kill_at_random(work, forget_some(stores[0]), rerun=True)
    finally:
        del os.environ["VISPROMPT_ROOT"]
    assert len(found(stores[0])) == 20


def test_killed_keeping(stores):
    for number in range(30):
        make(a=number)
    kill_at_random(keeping.keep, forget_some(stores[1]))
    assert len(found(stores[1])) == 30


def test_killed_renewal(lab, stores):  # noqa: F811
    new = [lab.do(run) for run in (SMALL, *(replace(SMALL, seed=seed) for seed in (1, 2, 3)))]
    old = [outdated(record) for record in new]

    def ready(chance):
        for record in (*new, *old):
            path_of(record, stores[0]).unlink(missing_ok=True)
        for record in old:
            keep_as(record, stores)

    ready(None)
    kill_at_random(lambda: renewing.renew("tune"), ready)
    assert all(map(records.is_current, map(store.read_record, store.files(stores[1]))))


# --- disks that are full or cannot be written


def with_mounts(work: Callable, *mounts: str) -> None:
    """Do `work` in a process that alone sees some mounts, each the words of a `mount` command; skip
    where it may not."""

    def inside():
        new_mounts, may_not = 0x20000, 77
        if (
            ctypes.CDLL(None).unshare(new_mounts)
            or subprocess.run(["mount", "--make-rprivate", "/"]).returncode
        ):
            os._exit(may_not)
        for words in mounts:
            mount(words)
        work()

    run = multiprocessing.get_context("fork").Process(target=inside)
    run.start(), run.join()
    if run.exitcode == 77:
        pytest.skip("this user may not mount anything")
    assert run.exitcode == 0


def mount(words: str) -> None:
    subprocess.run(["mount", *words.split()], check=True)


def told(capfd, *words: str) -> str:
    """What a command that cannot write says: one line, and status 2."""
    capfd.readouterr()
    assert main(list(words)) == 2
    said = [
        line
        for line in capfd.readouterr().err.splitlines()
        if "it/s]" not in line and "s/it]" not in line and line
    ]
    assert (
        len(said) == 1
        and said[0].startswith("visprompt: ")
        and said[0].endswith("finished runs are kept.")
    ), said
    return said[0]


def test_a_study_on_a_full_disk(stores, capfd):
    study = [
        "study",
        "--tasks",
        "position",
        "--methods",
        "linear-probe",
        "--epochs",
        "1",
        "benchmark",
        "benchmark",
    ]
    stores[0].mkdir(parents=True)

    def work():
        # the next study is not tried
        assert told(capfd, *study).count("No space left on device") == 1
        whole = found(stores[0])
        assert len(whole) == 1 and not list(stores[0].rglob("*.part"))
        mount(f"-o remount,size=1m {stores[0]}")
        assert (
            main(study) == 0
            and whole.items() <= found(stores[0]).items()
            and len(found(stores[0])) == 2
        )
        for path in store.files(stores[0], "tune"):
            path.unlink()
        mount(f"-o remount,ro {stores[0]}")
        assert "Read-only file system" in told(capfd, *study)

    with_mounts(work, f"-t tmpfs -o size=12k tmpfs {stores[0]}")


def test_keeping_on_a_full_disk(stores, capfd):
    for number in range(10):
        make(a=number)
    stores[1].mkdir(parents=True)

    def work():
        assert "No space left on device" in told(capfd, "keep", "--kind", "kind")
        whole = found(stores[1])
        assert 0 < len(whole) < 10 and not list(stores[1].rglob("*.part"))
        mount(f"-o remount,ro {stores[1]}")
        assert "Read-only file system" in told(capfd, "keep", "--kind", "kind")
        mount(f"-o remount,rw,size=1m {stores[1]}")
        assert main(["keep", "--kind", "kind"]) == 0 and found(stores[1]) == found(stores[0])

    with_mounts(work, f"-t tmpfs -o size=20k tmpfs {stores[1]}")


@pytest.mark.refused
def test_a_user_without_a_home_is_told(monkeypatch, capfd):
    for name in ("HOME", "VISPROMPT_DATA", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    # as in a container that was given a number for a user
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    assert main(["data", "where"]) == 2
    assert (
        capfd.readouterr().err
        == "visprompt: you have no home folder here; name one, as in HOME=$PWD/home visprompt …\n"
    )
