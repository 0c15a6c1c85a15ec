"""The rehearsal: its stand-ins are read as the real things are, and nothing of it enters another
page."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import visprompt as vp
from visbook.chapters import masks
from visbook.chapters.parameters import ChapterParameters
from visbook.pages.parameters import Parameters
from visbook.site import rehearsal
from visbook.studies import grids, stand_ins
from visbook.studies.case import Run
from visbook.studies.lab import Lab, LabSettings
from visbook.studies.roles import recipe_scope
from visbook.studies.stand_in_images import RAW, write_tasks
from visbook.studies.sweeps import at_best_rates
from visprompt import paths, records
from visprompt.data import catalogue, raw_layouts
from visprompt.errors import BadInput
from visprompt.models import embedded
from visprompt.records.keeping import why_not
from visprompt.words import REHEARSED

BASE = "vit_base_patch16_224"
ONE_OF_EACH = [
    "vit_base_patch16_224.orig_in21k",
    f"{BASE}.mae",
    f"{BASE}.mocov3",
    "resnet101.tv_in1k",
]


@pytest.mark.parametrize(
    "name",
    [*ONE_OF_EACH, "swin_base_patch4_window7_224.ms_in22k", "vit_huge_patch14_224.orig_in21k"],
)
def test_a_stand_in_has_the_depth_pooling_and_pixels_of_the_real_one(name, tmp_path):
    small = stand_ins.narrow_backbone(name, stand_ins.write_checkpoint(name, tmp_path))
    real = vp.load_backbone(name, device="meta")
    for what in ("name", "family", "depth", "prefix", "pools_class_token", "mean", "std"):
        assert getattr(small, what) == getattr(real, what)
    assert small.width < real.width and small.image_size < real.image_size
    assert small.fingerprint != stand_ins.narrow_backbone(name).fingerprint == "random, seed 0"


def test_what_studies_ask_of_a_method_fits_its_stand_in():
    """Such as LoRA of rank 50, which a network 48 wide refuses."""
    scope = recipe_scope("paper", "rehearsal")
    wanted = {
        repr((run.backbone, run.method, run.settings)): run
        for study in grids.studies()
        for _, run, _ in grids.cells(study, scope, 12)
        if grids.family_of(run.backbone) == "vit"
    }
    built = {
        name: stand_ins.narrow_backbone(name) for name in {run.backbone for run in wanted.values()}
    }
    assert len(wanted) > 200
    for run in wanted.values():
        vp.build_method(run.method, built[run.backbone], 100, **run.settings)


def test_checkpoints_have_the_forms_of_those_who_publish_them(tmp_path):
    import torch

    assert {"mask_token"} < set(
        torch.load(stand_ins.write_checkpoint(f"{BASE}.mae", tmp_path))["model"]
    )
    keys = torch.load(stand_ins.write_checkpoint(f"{BASE}.mocov3", tmp_path))["state_dict"]
    assert {key.split(".")[1] for key in keys} == {"base_encoder", "momentum_encoder"}
    with pytest.raises(BadInput, match="no file of weights is given for the stand-in"):
        stand_ins.narrow_backbone(BASE, "pretrained")
    with pytest.raises(BadInput, match="family of a backbone"):
        stand_ins.narrow_backbone("beit_base_patch16_224")
    assert set(embedded.published()) | set(embedded.from_files()) >= set(ONE_OF_EACH)


RAW_TASKS = [next(iter(one.tasks)) for one in catalogue.datasets().values() if one.layout in RAW]


@pytest.mark.parametrize("task", [*RAW_TASKS, "dtd", "cub_200_2011", "cifar10"])
def test_a_miniature_is_read_as_the_data_set_is(task, tmp_path):
    write_tasks([task], tmp_path)
    found = vp.load_task(task, tmp_path, image_size=16)
    about = catalogue.find(task).tasks[task]
    assert found.classes == about["classes"]
    assert all(len(labels) for _, labels in (found.train, found.val, found.test))
    assert int(found.train[1].max()) == found.classes - 1 or task in RAW_TASKS
    assert set(RAW) == set(raw_layouts.RAW)


@pytest.fixture
def stage(monkeypatch, stores):
    """This process runs on a stage."""
    monkeypatch.setattr(records.store, "REHEARSAL", True)
    monkeypatch.setattr(paths, "REHEARSAL", True)
    return monkeypatch


def test_a_rehearsed_record_says_so_and_enters_no_other_page(stage, stores, tmp_path):
    write_tasks(["svhn"], tmp_path / "data")
    file = stand_ins.write_checkpoint(ONE_OF_EACH[0], tmp_path)
    bench = LabSettings(
        "spt", f"{ONE_OF_EACH[0]}={file}", str(tmp_path / "data"), "cpu", {"epochs": 1}, "rehearsal"
    )
    lab, run = Lab(bench), Run(ONE_OF_EACH[0], "svhn", "spt-deep", settings={"prompt_tokens": 4})
    record = lab.do(run)
    assert record.about["rehearsal"] == REHEARSED and why_not(record) == REHEARSED
    # no real run has its name
    assert record.settings["architecture"] == {"rehearsal": {"embed_dim": 48, "img_size": 160}}
    assert len(lab.trials(run)) == 1
    assert records.find_record(record.id) == record
    stage.setattr(records.store, "REHEARSAL", False)  # the same file, met by a quick or paper page
    for look in (
        lambda: records.find_record(record.id),
        lambda: records.all_records(),
        lambda: lab.resolve(run).find(),
    ):
        with pytest.raises(BadInput, match="made in a rehearsal, whose numbers mean nothing"):
            look()


def test_a_rehearsed_page_asks_for_the_papers_segmentation_which_is_not_there():
    p = SimpleNamespace(
        profile="rehearsal", plan="paper", data_dir=None, device="cpu", kept_seeds=[]
    )
    found = masks.found(SimpleNamespace(p=p))
    assert not len(found.frame) and found.lab.bench.profile == "paper"


ACTORS = recipe_scope("spt", "rehearsal")


@pytest.fixture(scope="module")
def props(tmp_path_factory):
    """Data sets and weights as a stage has them, written when they are first asked for."""
    folder, written = tmp_path_factory.mktemp("props"), set()

    def data_of(*names: str) -> str:
        sets = {name: catalogue.find(name) for name in names}
        new = {found.name if found.layout in RAW else name: name for name, found in sets.items()}
        new = {place: name for place, name in new.items() if place not in written}
        write_tasks(new.values(), folder / "data")  # once, since a file that is read stays open
        written.update(new)
        return str(folder / "data")

    def weights_of(name: str) -> str:
        there = [path for path in folder.glob("*.*") if path.stem == name]
        return f"{name}={there[0] if there else stand_ins.write_checkpoint(name, folder)}"

    return data_of, weights_of


@pytest.mark.parametrize("study", grids.studies())
def test_one_cell_of_every_study_is_rehearsed(study, stage, stores, props):
    """As the notebooks do it: searched on validation, then run and looked up; the cell with the
    fewest classes."""
    data_of, weights_of = props
    every = grids.cells(study, ACTORS, 1)
    if not every:
        pytest.skip("only the quick profile has runs of it")
    classes = {
        task: about["classes"]
        for one in catalogue.datasets().values()
        for task, about in one.tasks.items()
    }
    _, run, _ = min(every, key=lambda cell: classes.get(cell[1].task, 1000))
    lab = Lab(
        LabSettings(
            "paper" if study.startswith("ap-") else "spt",
            [weights_of(run.backbone)],
            data_of(run.task, run.prepared_on or run.task),
            "cpu",
            {"epochs": 1},
            "rehearsal",
        )
    )
    (best,) = at_best_rates([run], lab, True)
    record = lab.do(best)
    assert (
        record.status == "done"
        and 0 <= record.values["test"] <= 100
        and record.about["rehearsal"] == REHEARSED
    )
    assert lab.do(best, compute=False) == record


def test_its_badges_and_pages_say_so_in_red(stage):
    from visbook.pages import judging, page
    from visbook.site import build, record_pages, tables

    shown = page.figure_html(pd.DataFrame({"a": [1]}), "A table", "trend", "How.", "", None)
    for text in (shown, judging.badge("trend"), tables.badge("seen here"), tables.badge(None)):
        assert "#b00020" in text and "means nothing" in text
    warned = build.warned("# A title\n\nText.\n", "rehearsal")
    assert (
        warned.startswith("# A title\n\n<p class") and "#b00020" in warned and REHEARSED in warned
    )
    bundle = {"profile": "rehearsal", "commit": "0", "notebook": "ap", "records": []}
    assert judging.warning() in record_pages.record_page("ap.table-1", bundle)
    assert judging.RED not in record_pages.record_page("ap.table-1", bundle | {"profile": "quick"})
    stage.setattr(paths, "REHEARSAL", False)
    assert "means nothing" not in judging.badge("trend") + tables.badge("seen here") + build.warned(
        "# A title\n", "quick"
    )


def test_the_profile_runs_on_its_stage_alone_and_no_other_there(stage):
    p = ChapterParameters(profile="rehearsal", data_dir="x")
    assert (p.plan, p.seeds, p.epochs, p.search) == ("paper", [0], 1, True)
    for profile in ("quick", "paper"):
        with pytest.raises(BadInput, match="only the profile rehearsal runs"):
            Parameters(profile=profile)
    stage.setattr(paths, "REHEARSAL", False)
    with pytest.raises(BadInput, match="make rehearsal"):
        Parameters(profile="rehearsal")


def test_a_folder_that_is_no_stage_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(BadInput, match="is no stage of a rehearsal"):
        rehearsal.prepare(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_report_counts_what_ran_and_names_what_is_open(tmp_path):
    for kind, names in {"tune": "ab", "failed/tune": "c", "noise": "d"}.items():
        for name in names:
            path = tmp_path / "build" / "records" / kind / f"{name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}")
    table, missing = rehearsal.report(tmp_path)
    assert (
        table.loc["tune", ["done", "failed"]].tolist() == [2, 1] and table.loc["noise", "done"] == 1
    )
    assert table.loc["tune", "planned"] > 1000
    assert table.loc["artifacts", ["planned", "done"]].tolist() == [99, 0]
    assert len(missing) == len(json.loads(json.dumps(rehearsal.notebooks(paths.ROOT))))
    words = [sys.executable, "-m", "visbook.site.rehearsal", "report", str(tmp_path)]
    done = subprocess.run(
        words, capture_output=True, text=True, env={"PYTHONPATH": str(Path(paths.PACKAGE).parent)}
    )
    assert done.returncode == 1 and REHEARSED in done.stdout and "not filled:" in done.stderr


def test_a_paper_is_rehearsed_alone(capsys):
    rehearsal.main(["pages", ".", "shallowvit"])
    said = capsys.readouterr().out.split()
    assert said and all(Path(name).stem.startswith("shallow_vit") for name in said)
    rehearsal.main(["pages", "."])
    assert capsys.readouterr().out.split() == ["build/site.done"]
    assert 0 == rehearsal.planned(["shallowvit"]) < rehearsal.planned(["spt"]) < rehearsal.planned()
    with pytest.raises(BadInput, match="unknown paper"):
        rehearsal.pages(["sptt"])


def test_an_artifact_is_rehearsed_alone(stage, monkeypatch):
    """By the paper's recipe, for one epoch, as its page does it."""
    from visbook.studies import artifact_runs
    from visprompt.__main__ import main

    asked = []
    monkeypatch.setattr(
        artifact_runs,
        "of_artifact",
        lambda name, scope, lab, **more: asked.append(lab("spt")) or pd.DataFrame({"a": [1]}),
    )
    monkeypatch.setattr("visbook.studies.statistics.tables", lambda frame: {})
    monkeypatch.setattr(
        sys, "argv", "visprompt study spt.table-3 --profile rehearsal --seeds 0".split()
    )
    main()
    (lab,) = asked
    bench = lab.bench
    assert (bench.recipe, bench.profile, bench.changes) == ("spt", "rehearsal", {"epochs": 1})
