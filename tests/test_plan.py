"""The plan: every artifact has what makes it, and every run is whole before anything is built."""

import pytest

import visprompt as vp
from visbook.studies import artifact_runs, grids, plan
from visbook.studies.case import Run
from visbook.studies.lab import Lab, LabSettings
from visbook.studies.sweeps import at_best_rates
from visprompt import papers
from visprompt.data import catalogue
from visprompt.errors import BadInput
from visprompt.training.protocol import FACTORS, protocol


@pytest.fixture(scope="module")
def every():
    """Artifact -> its runs in the paper profile."""
    return {id: plan.runs_of(plan.cells_of(id)) for id in plan.artifacts()}


def test_every_artifact_has_an_entry_that_fits_what_it_needs(every):
    rows = papers.artifacts()
    assert list(plan.artifacts()) and set(plan.artifacts()) == set(rows.index)
    for id, entry in plan.artifacts().items():
        scale, made = rows.scale_needed[id], set(entry.made)
        assert bool(every[id]) == ("runs" in made), id
        if "accuracy" in scale:
            assert made & {"runs", "masks", "weights", "theory"}, (
                f"{id} needs accuracy: say in plan.yaml what runs make it"
            )
        if "cost" in scale:
            assert "measured" in made, id
        if scale == "schematic":
            assert made == {"drawn"}, id


def test_runs_name_what_is_there(every):
    tasks = {task for found in catalogue.datasets().values() for task in found.tasks}
    seen = {run.key: run for runs in every.values() for run in runs}
    for run in seen.values():
        assert run.run.task in tasks and (
            run.run.prepared_on is None or run.run.prepared_on in tasks
        ), run
        assert run.run.method in vp.METHODS and not {"deep", "shallow", "place"} & set(
            map(str, run.run.settings.values())
        )
    backbones = {run.run.backbone for run in seen.values()}
    for name in backbones:
        assert grids.family_of(name) == vp.load_backbone(name, device="meta").family


def test_the_plan_has_every_method_that_a_table_prints(every):
    def methods(id):
        return {run.run.method for run in every[id]}

    assert {
        "lora",
        "adapter",
        "adaptformer",
        "ssf",
        "bias",
        "vpt-deep",
        "gate-vpt",
        "e2vpt",
        "ap",
    } <= methods("ap.table-4")
    assert {"adapter", "ssf", "spt-shallow"} <= methods("spt.table-3")
    assert {"vpt-shallow", "spt-shallow", "gate-vpt"} <= methods("spt.table-2")
    fgvc = {"cub_200_2011", "nabirds", "oxford_flowers", "stanford_dogs", "stanford_cars"}
    for id in ("spt.table-3", "ivpt.table-9", "davpt.table-3"):
        assert {run.run.task for run in every[id]} == fgvc
    assert len({run.run.task for run in every["spt.table-2"]}) == 24
    assert len({run.run.task for run in every["ap.table-1"]}) == 19
    for id in ("spt.figure-4", "spt.figure-s3"):
        assert len({run.run.train_size for run in every[id]}) == 6


def test_each_run_once_a_search_first_and_its_best_is_the_first_seed():
    (cell,) = [
        cell
        for cell in plan.cells_of("spt.table-3")
        if (cell.variant, cell.run.task) == ("SPT-Deep", "nabirds")
    ]
    assert (
        cell.recipe == "spt"
        and cell.seeds == (0, 1, 2)
        and cell.grid == "ours"
        and cell.like is None
    )
    runs, tried = plan.runs_of([cell, cell]), protocol("spt").budget["ours"]
    assert [run.stage for run in runs] == ["search"] * tried + ["final"] * 2
    assert [run.run.seed for run in runs] == [0] * tried + [1, 2]
    (given,) = [
        cell
        for cell in plan.cells_of("ap.table-1")
        if (cell.variant, cell.run.task) == ("AP", "ucf101")
    ][:1]
    assert given.grid == "" and [run.stage for run in plan.runs_of([given])] == ["final"] * 5
    assert given.run.settings == {"block": 2}


def test_what_the_recipe_states_for_a_task_is_not_searched():
    found = {
        (cell.variant, cell.run.task, cell.run.backbone.split(".")[1]): cell
        for cell in plan.cells_of("davpt.table-1")
    }
    stated = {key for key, cell in found.items() if cell.selection == plan.STATED}
    assert {variant for variant, _, _ in stated} == {"DA-VPT", "DA-VPT+"}
    assert len(stated) == 2 * 61 and all(found[key].grid == "" for key in stated)
    runs = plan.runs_of([found["DA-VPT+", "cifar100", "mae"]])
    assert [(run.stage, run.run.seed, run.like) for run in runs] == [
        ("final", seed, None) for seed in range(3)
    ]
    missing = plan.runs_of([found["DA-VPT+", "pets", "mae"]])
    assert [run.stage for run in missing].count("search") == len(FACTORS)


def test_a_rate_that_another_cell_was_searched_for_is_searched_there():
    (cell,) = [
        cell
        for cell in plan.cells_of("spt.figure-3")
        if "huge" in cell.run.backbone and cell.run.method == "spt-deep"
    ]
    smaller = plan.whole_scope("paper").backbones["mae"]
    assert cell.like == Run(smaller, "cub_200_2011", "spt-deep", settings={"prompt_tokens": 20})
    runs = plan.runs_of([cell])
    assert {run.run.backbone for run in runs if run.stage == "search"} == {smaller}
    assert [run.like for run in runs if run.stage == "final"] == [cell.like] * 3


def test_trials_are_those_of_the_lab(monkeypatch):
    lab, run = (
        Lab(LabSettings()),
        Run("vit_micro_patch4_24", "flowers", "vpt-deep", settings={"prompt_tokens": 10}),
    )
    asked = []
    monkeypatch.setattr(lab, "do", lambda run, compute=True: asked.append(run))
    at_best_rates([run], lab, compute=False)
    assert plan.lab_of("quick").trials(run) == asked
    planned = plan.Planned("benchmark", "VPT-Deep", run, "quick", "quick", "final", run)
    assert artifact_runs.ready(planned, lab) == run  # no search is whole


def test_a_narrower_cast_leaves_fewer_cells():
    scope = grids.scope_of("paper", tasks=["dtd"], methods=["vpt-deep"])
    (cell,) = plan.cells_of("ivpt.table-8", scope=scope)
    assert (cell.run.task, cell.run.method) == ("dtd", "vpt-deep")


@pytest.mark.refused
def test_an_unknown_artifact_names_the_nearest():
    with pytest.raises(BadInput, match="Did you mean 'spt.table-3'") as said:
        plan.cells_of("spt.tabel-3")
    assert "\n" not in str(said.value) and len(str(said.value)) < 120
