"""A sweep through a real Slurm whose nodes are all this machine: what a cluster does to it loses
nothing.

Run by `make test-cluster`. Needs root, and Debian's slurmctld, slurmd, slurm-client and munge. Few
jobs, at least five, fit on one node; from fifty on every node and card must have had some.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest
import slurm

from visprompt.paths import ROOT

JOBS = int(os.environ.get("VISPROMPT_CLUSTER_JOBS", 0))
LIMIT = 600 + 30 * JOBS  # seconds that a sweep may take at the most, hundred jobs an hour
MANY = JOBS >= 50
pytestmark = [
    pytest.mark.skipif(JOBS < 5, reason="make test-cluster runs it, with five jobs or more"),
    pytest.mark.skipif(bool(slurm.why_not()), reason=f"no Slurm: {slurm.why_not()}"),
]
# What a job leaves: a record, and a line that says where it ran and on which card, written when it
# ends.
NOTEBOOK = """# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% tags=["parameters"]
profile = "quick"
device = "cpu"
job = 0

# %%
import json, os, time
from visprompt.records import recorded

start = time.time()
while os.path.exists(f"hold{job}"):  # until the test lets it go on
    time.sleep(0.2)
recorded("test", {"job": job}, lambda: {"value": job})
line = {"job": job, "node": os.environ["SLURMD_NODENAME"], "card": os.environ.get("CUDA_VISIBLE_DEVICES"), "start": start}
with open("ended", "a") as file:
    file.write(json.dumps({**line, "end": time.time()}) + "\\n")
"""
QUICKLY = {
    "slurm-status-command": "squeue",
    "slurm-init-seconds-before-status-checks": "3",
    "seconds-between-status-checks": "3",
    "latency-wait": "10",
    "default-resources": "mem_mb=100 runtime=30",
}


@pytest.fixture
def project(tmp_path) -> Path:
    """A repository with one small notebook and a sweep of it."""
    root = tmp_path / "project"
    for folder in ("book/records", "notebooks", "data_manifests/weights"):
        (root / folder).mkdir(parents=True)
    for name in ("src", "profiles", ".venv"):
        (root / name).symlink_to(ROOT / name if name != ".venv" else Path(sys.prefix))
    for name in ("backbones", "tasks", "recipes"):
        (root / "data_manifests" / f"{name}.yaml").write_text("{}")
    (root / "data_manifests" / "papers").mkdir()
    (root / "data_manifests" / "papers" / "papers.yaml").write_text("{}")
    (root / "data_manifests" / "notebooks.yaml").write_text("one: {title: One, artifacts: []}\n")
    (root / "notebooks" / "one.py").write_text(NOTEBOOK)
    for name in ("Snakefile", "_config.yml", "_toc.yml"):
        shutil.copy(ROOT / name, root)
    jobs = [
        {"name": f"job{i}", "notebook": "one", "parameters": {"job": i}, "minutes": 1 + i % 7}
        for i in range(JOBS)
    ]
    jobs[-1]["after"] = ["job0"]
    (root / "sweep.json").write_text(json.dumps({"jobs": jobs}))
    return root


def sweep(root: Path, **config) -> subprocess.Popen:
    """Start Snakemake with the profile that the repository ships."""
    words = [word for name, value in QUICKLY.items() for word in (f"--{name}", *value.split())]
    given = [f"{name}={value}" for name, value in {"sweep": "sweep.json", **config}.items()]
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--profile",
        "profiles/slurm",
        *words,
        "--config",
        *given,
        "--",
        "sweep",
    ]
    environment = {**os.environ, "VISPROMPT_ROOT": str(root), "PYTHONPATH": str(ROOT / "src")}
    log = open(root / "log", "ab")
    return subprocess.Popen(command, cwd=root, env=environment, stdout=log, stderr=log)


@contextmanager
def started(folder: Path, **more):
    """A Slurm; where it does not come up, the test is skipped and says why. It leaves no daemon."""
    before = slurm.running()
    try:
        cluster = slurm.Slurm(folder, **more).__enter__()
    except RuntimeError as error:
        pytest.skip(f"no Slurm could be started: {error}")
    try:
        yield cluster
    finally:
        cluster.stop()
        cluster.wait_for(lambda: slurm.running() == before, f"end of all daemons but {before}")


def ended(root: Path) -> list[dict]:
    """What the jobs that came to their end have left."""
    path = root / "ended"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wait(root: Path, run: subprocess.Popen, jobs: int) -> None:
    """Until so many jobs have ended."""
    while len(ended(root)) < jobs:
        assert run.poll() is None, (root / "log").read_text()[-3000:]
        time.sleep(0.5)


def values(root: Path) -> list[int]:
    """What the records say, one a job."""
    found = [json.loads(path.read_text()) for path in (root / "build" / "records").rglob("*.json")]
    return sorted(record["values"]["value"] for record in found if record.get("kind") == "test")


def check(root: Path, **config) -> None:
    """Every job came to its end once and left its record; a second start has nothing to do."""
    counted = Counter(line["job"] for line in ended(root))
    assert sorted(counted) == list(range(JOBS)) and set(counted.values()) == {1}, counted
    assert values(root) == list(range(JOBS))
    assert len(list((root / "build" / "jobs" / "sweep").glob("*.ipynb"))) == JOBS
    last = {line["job"]: line for line in ended(root)}
    assert last[JOBS - 1]["start"] > last[0]["end"]  # it was to come after
    assert sweep(root, **config).wait(120) == 0 and len(ended(root)) == JOBS


def check_cards(root: Path) -> None:
    """Each of four cards had one job at a time."""
    lines = sorted(ended(root), key=lambda line: line["start"])
    cards = {(line["node"], line["card"]) for line in lines}
    assert len(cards) == 4 if MANY else 1 <= len(cards) <= 4
    for card in cards:
        of_card = [line for line in lines if (line["node"], line["card"]) == card]
        assert all(one["end"] <= other["start"] for one, other in zip(of_card, of_card[1:]))


@pytest.mark.parametrize("nodes, cards", [(3, 0), (2, 2)], ids=["three nodes", "four cards"])
def test_a_sweep_outlives_a_drained_node_a_killed_job_and_a_new_controller(
    project, tmp_path, nodes, cards
):
    held, given = JOBS - 2, {"device": "cuda", "gpus": 4} if cards else {}
    (project / f"hold{held}").touch()
    with started(tmp_path / "slurm", nodes=nodes, cards=cards) as cluster:
        run = sweep(project, **given)
        wait(project, run, JOBS // 5)
        slurm.run("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=test")
        logs = project / ".snakemake" / "slurm_logs" / "rule_job" / f"job{held}"
        cluster.wait_for(lambda: list(logs.glob("*.log")), "start of the job that is held", LIMIT)
        (log,) = logs.glob("*.log")
        slurm.run("scancel", log.stem)
        cluster.wait_for(
            lambda: log.stem not in slurm.run("squeue", "-h", "-t", "R,CG", "-o", "%i").split(),
            "end of the job",
        )
        (project / f"hold{held}").unlink()
        wait(project, run, 2 * JOBS // 5)
        cluster.restart_controller()
        assert run.wait(LIMIT) == 0, (project / "log").read_text()[-3000:]
        check(project, **given)
        on = Counter(line["node"] for line in ended(project))
        assert {*on} <= {*cluster.nodes} and on["n2"] <= JOBS // 5 + cluster.cpus
        assert not MANY or {*on} >= {*cluster.nodes} - {"n2"}
        if cards:
            check_cards(project)


def test_a_poisoned_job_and_a_queue_that_takes_nothing_cost_themselves_alone(project, tmp_path):
    jobs = json.loads((project / "sweep.json").read_text())["jobs"][:4]
    jobs[1]["parameters"] = {"job": "poison"}
    text = NOTEBOOK.replace(
        "start = time.time()", "assert isinstance(job, int)\nstart = time.time()", 1
    )
    (project / "notebooks" / "one.py").write_text(text)
    (project / "sweep.json").write_text(json.dumps({"jobs": jobs}))
    with started(tmp_path / "slurm", nodes=2):
        assert sweep(project).wait(600) != 0
        assert sorted(line["job"] for line in ended(project)) == [0, 2, 3] == values(project)
        slurm.run("scontrol", "update", "PartitionName=work", "State=INACTIVE")
        assert sweep(project).wait(120) != 0
        assert "not available" in (project / "log").read_text() and len(ended(project)) == 3
