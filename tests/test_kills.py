"""Random kills of what writes records: what was finished stays whole, and an undisturbed run does the rest.

`VISPROMPT_KILLS=40 make test TESTS='tests/test_kills.py tests/test_workflow.py'` kills each 40 times, the site step
among them.
"""

import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from test_records import SMALL, keep_as, lab, make, outdated, path_of  # noqa: F401
from test_studies import lab as few_images  # noqa: F401

from visprompt import records
from visprompt.records import keeping, store
from visprompt.studies import grids, renewing

KILLS = int(os.environ.get("VISPROMPT_KILLS", 4))
CAST = {"tasks": ["position"], "methods": ["linear-probe", "bias", "vpt-deep"]}
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
    return {r.key: (r.settings, r.data, r.weights, r.values.get("test", r.values.get("value"))) for r in every}


def alone(work: Callable) -> None:
    os.setsid()
    work()


def kill_at_random(work: Callable, ready: Callable, seed: int = 0) -> None:
    """Do `work` to its end, then kill it `KILLS` times, each from a state that `ready` leaves; then do it to its end.

    After each kill, both stores hold whole records with right values, and all that they held before it.
    """
    chance, context = random.Random(seed), multiprocessing.get_context("fork")
    begun = time.perf_counter()
    run = context.Process(target=work)
    run.start(), run.join()
    assert run.exitcode == 0
    whole, right = time.perf_counter() - begun, list(map(found, records.stores()))
    for _ in range(KILLS):
        ready(chance)
        before = list(map(found, records.stores()))
        run = context.Process(target=alone, args=(work,))
        run.start()
        time.sleep(chance.uniform(0.02, whole))
        for kill, which in ((os.killpg, run.pid), (os.kill, run.pid)):  # it may not lead a group yet
            try:
                kill(which, signal.SIGKILL)
            except ProcessLookupError:
                pass
        run.join()
        for held, holds, may in zip(before, map(found, records.stores()), right, strict=True):
            assert held.keys() <= holds.keys() and holds.items() <= may.items()
    run = context.Process(target=work)
    run.start(), run.join()
    assert run.exitcode == 0 and list(map(found, records.stores())) == right
    for folder in records.stores():
        store.sweep_parts(folder, age=-1)
        assert not list(folder.rglob("*.part"))


def once_elsewhere(work: Callable, folder: Path) -> None:
    """Do `work` with another store, so that the processes to be killed begin with all that it loads."""
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
        grids.study("benchmark", grids.cast("quick", **CAST), few_images, seeds=[0, 1])

    once_elsewhere(work, tmp_path / "elsewhere")
    few_images.known.clear()  # the facts of a task are a record too
    kill_at_random(work, forget_some(stores[0]))
    assert len(found(stores[0])) == 7  # six runs and the facts of their task


def test_killed_papermill(tmp_path, stores):
    import jupytext
    import nbformat

    nbformat.write(jupytext.reads(NOTEBOOK, "py:percent"), tmp_path / "one.ipynb")
    os.environ["VISPROMPT_ROOT"] = str(tmp_path)
    command = [sys.executable, "-m", "papermill", "-k", "python3", "--no-progress-bar", "one.ipynb", "done.ipynb"]

    def work():
        os.chdir(tmp_path)
        os.execv(sys.executable, command)

    try:
        kill_at_random(work, forget_some(stores[0]))
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
