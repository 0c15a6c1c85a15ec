"""A book of the paper profile on a machine that has a part of it, or nothing: narrowed by words to
make, and never refused."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_workflow import PROGRAMS, make, program, ran, root  # noqa: F401

from visbook.chapters.ap_theory_runs import ToyParameters
from visbook.chapters.chapter import Chapter
from visbook.chapters.shallow_runs import PROFILE, TrialParameters
from visbook.studies import grids
from visbook.studies.case import Run
from visbook.studies.lab import Lab, LabSettings
from visbook.studies.stand_in_images import write_tasks
from visprompt import paths
from visprompt.errors import BadInput
from visprompt.models import reachable

REFUSED = (
    "the published weights of a cannot be fetched (no network). Connect to the "
    "network, or give a file: weights='x'."
)


def given(root: Path) -> dict:  # noqa: F811
    """What the notebooks were given, by name."""
    lines = (root / "given").read_text(encoding="utf-8").splitlines()
    return {
        Path(name).stem: json.loads(words) for name, words in (line.split("\t") for line in lines)
    }


@pytest.fixture
def papers(root):  # noqa: F811
    """Notebooks of two papers, of which one takes more than the other."""
    (root / "data_manifests" / "notebooks.yaml").write_text(
        "spt_starts: {title: One, artifacts: [spt.table-4]}\n"
        "shallow_vit: {title: Two, artifacts: [shallowvit.figure-1]}\n"
    )
    cell = (
        "# %%\ndata_dir = None\ntasks = None\nseeds = None\nepochs = None\nprecision = "
        "None\ncompile = False\nbackbone = None\nweights = None\n"
    )
    (root / "notebooks" / "spt_starts.py").write_text(cell)
    (root / "notebooks" / "shallow_vit.py").write_text("# %%\nseeds = None\nlarger = False\n")
    (root / "notebooks" / "one.py").unlink()
    program(root, "papermill", PROGRAMS["papermill"] + r'printf "%s\t%s\n" "$5" "$4" >> given')
    return root


def test_words_to_make_reach_the_notebooks_that_take_them(papers):
    words = [
        "PROFILE=paper",
        "DATA=book",
        "TASKS=dtd10 cifar100",
        "SEEDS=0 1",
        "EPOCHS=2",
        "PRECISION=bf16",
        "COMPILE=1",
        "BACKBONE=b",
        "WEIGHTS=b=a b.pth",
    ]
    done = make(papers, "book", *words)
    assert done.returncode == 0, done.stderr
    found = given(papers)
    assert found["shallow_vit"] == {"profile": "paper", "device": "cpu", "seeds": [0, 1]}
    wanted = {
        "tasks": ["dtd10", "cifar100"],
        "seeds": [0, 1],
        "epochs": 2,
        "precision": "bf16",
        "compile": True,
        "backbone": "b",
        "weights": ["b=a", "b.pth"],
    }
    assert found["spt_starts"] == {
        "profile": "paper",
        "device": "cpu",
        "data_dir": "book",
        **wanted,
    }


def test_a_chapter_that_is_not_named_gets_no_data(papers):
    assert (
        make(
            papers,
            "book",
            "PROFILE=paper",
            "DATA=book",
            "PAPERS=shallowvit",
            "TASKS=dtd",
            "LARGER=1",
        ).returncode
        == 0
    )
    found = given(papers)
    assert found["spt_starts"] == {"profile": "paper", "device": "cpu"}
    assert found["shallow_vit"] == {"profile": "paper", "device": "cpu", "larger": True}
    assert ran(papers)[-1] == "site"


@pytest.mark.refused
@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("PAPERS=spd", "write ap or davpt or shallowvit or ivpt or spt"),
        ("SEEDS=x", "write numbers, such as 0 1 2"),
        ("EPOCHS=0", "write a number, such as 1"),
        ("PRECISION=fp16", "write float32 or bf16"),
        ("EPOCHS=1 2", "write a number, such as 1"),
    ],
)
def test_a_mistake_in_them_is_one_line(papers, word, message):
    done = make(papers, "book", word)
    assert done.returncode and message in done.stdout + done.stderr and ran(papers) == []


def test_without_data_nothing_is_asked_for_and_nothing_is_refused(monkeypatch):
    """The pages then show what needs none of it, and say of the rest that it was not run."""
    monkeypatch.setattr(
        "visbook.studies.lab.backbone_once", lambda *_, **__: pytest.fail("weights were asked for")
    )
    chapter = Chapter.opened("spt", {"profile": "paper"}, ["benchmark", "davpt-layers"])
    assert not sum(map(len, chapter.frames.values())) and set(chapter.left_out) == {
        "no data folder is given"
    }
    chapter = Chapter.opened("ap", {"profile": "paper"}, ["ap-full"])
    assert not len(chapter.planned("ap.table-1"))


def test_of_a_study_what_is_at_hand_is_run(tmp_path, monkeypatch):
    """One data set and one checkpoint: the other cells are left out by name, and a mistake in what
    is there still fails."""
    write_tasks(["dtd"], tmp_path)

    def load(name, *_, **__):
        if "mae" in name:
            raise BadInput(REFUSED)
        return SimpleNamespace(fingerprint="0")

    monkeypatch.setattr("visbook.studies.lab.backbone_once", load)
    lab = Lab(LabSettings("spt", "pretrained", str(tmp_path), profile="paper"))
    assert lab.resolve(Run("vit_base_patch16_224.mae", "dtd", "bias")).lacking == REFUSED
    assert (
        lab.resolve(Run("vit_base_patch16_224.mae", "svhn", "bias")).lacking
        == "svhn is not in the data folder"
    )
    nowhere = Lab(LabSettings("spt", data_dir="no-such", profile="paper"))
    assert "no-such" in nowhere.resolve(Run("b", "dtd", "bias")).lacking
    every = grids.cells("benchmark", grids.scope_of("paper"))
    _, why = grids.possible(every, lab)
    assert len(why) == len({run.task for _, run, _ in every}) - 1 + any(
        "mae" in run.backbone for _, run, _ in every
    )


def test_weights_that_cannot_be_reached_are_asked_for_once_a_run(tmp_path, monkeypatch):
    asked = []

    def load(name, weights, device, **more):
        asked.append(name)
        raise BadInput(REFUSED)

    monkeypatch.setattr(reachable, "load_backbone", load)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setenv(reachable.RUN, "first")
    for _ in range(3):  # three notebooks, each with a lab of its own, which asks for many cells
        lab = Lab(LabSettings(weights="pretrained"))
        for _ in range(2):
            with pytest.raises(BadInput, match="cannot be fetched"):
                lab.backbone("a")
    assert asked == ["a"]
    # the reader connected to the network, and starts again
    monkeypatch.setenv(reachable.RUN, "second")
    with pytest.raises(BadInput):
        Lab(LabSettings(weights="pretrained")).backbone("a")
    monkeypatch.delenv(reachable.RUN)
    with pytest.raises(BadInput):
        Lab(LabSettings(weights="pretrained")).backbone("a")
    assert asked == ["a"] * 3


def test_theory_runs_the_papers_grid_only_where_it_is_asked_for():
    assert not ToyParameters(profile="paper").larger
    p, larger = TrialParameters(profile="paper"), TrialParameters(profile="paper", larger=True)
    assert (
        p.seeds == PROFILE["quick"]["seeds"]
        and larger.seeds == PROFILE["paper"]["seeds"]
        and larger.neurons == 1000
    )


def test_words_to_make_narrow_a_sweep_and_reach_its_jobs(papers):
    """The notebook of a job is no page of the book, and so no paper's."""
    (papers / "notebooks" / "batch.py").write_text(
        "# %%\nruns = None\nweights = None\nepochs = None\ndata_dir = None\n"
    )
    job = {"name": "a", "notebook": "batch", "parameters": {"runs": ["1"]}, "minutes": 1}
    (papers / "jobs.json").write_text(json.dumps({"jobs": [job]}))
    program(papers, "python", 'echo "$*" > asked; mkdir -p build; cp jobs.json build/sweep.json')
    words = ["PAPERS=spt", "TASKS=dtd10 cifar100", "METHODS=vpt-deep", "SEEDS=0 1", "BACKBONE=b"]
    done = make(papers, "sweep", *words, "WEIGHTS=a=x c=y", "EPOCHS=2")
    assert done.returncode == 0, done.stderr
    asked = (papers / "asked").read_text()
    for narrow in (
        "batches spt",
        "--tasks dtd10 cifar100",
        "--methods vpt-deep",
        "--seeds 0 1",
        "--backbone b",
        "--weights a=x c=y",
    ):
        assert narrow in asked
    job = given(papers)["batch"]
    assert job["runs"] == ["1"] and job["epochs"] == 2 and job["weights"] == ["a=x", "c=y"]
