"""Plans cut into jobs: nothing lost, nothing twice, a search before what takes its rate, no job too
long."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visbook.studies import batches
from visbook.studies.case import Run
from visbook.studies.plan import Planned
from visprompt.errors import BadInput


def cell(
    task: str, method: str, finals: int, dependents: int = 0, recipe: str = "spt"
) -> list[Planned]:
    """The runs of a searched cell, and of others that take its rate."""
    own = Run("vit", task, method)
    found = [
        Planned("s", "v", Run("vit", task, method, rate=rate), recipe, "paper", "search")
        for rate in (0.1, 1.0, 5.0)
    ]
    found += [
        Planned("s", "v", Run("vit", task, method, seed=seed), recipe, "paper", "final", own)
        for seed in range(1, finals)
    ]
    lengths = [
        Run("vit", task, method, settings={"prompt_tokens": n + 1}) for n in range(dependents)
    ]
    return found + [Planned("s", "v", run, recipe, "paper", "final", own) for run in lengths]


cells = st.builds(
    cell,
    st.sampled_from(["dtd", "pets", "svhn"]),
    st.sampled_from(["vpt-deep", "spt-deep"]),
    st.integers(1, 5),
    st.integers(0, 9),
    st.sampled_from(["spt", "ivpt"]),
)


@given(st.lists(cells, min_size=1, max_size=8), st.floats(0.1, 50), st.floats(0.5, 90))
def test_every_run_is_in_one_job_and_a_search_comes_first(found, each, bound):
    runs = list({run.key: run for runs in found for run in runs}.values())
    jobs = batches.batches(runs, lambda run: each, bound)
    listed = [run for job in jobs for run in job.runs]
    assert sorted(map(batches.run_id, listed)) == sorted(map(batches.run_id, runs))
    assert [job.minutes for job in jobs] == sorted((job.minutes for job in jobs), reverse=True)
    names = {job.name: job for job in jobs}
    assert len(names) == len(jobs)
    for job in jobs:
        assert len({run.recipe for run in job.runs}) == 1
        assert job.minutes <= max(bound, batches.SETUP_MINUTES + each) + 0.01
        before = [run for name in job.after for run in names[name].runs]
        for i, run in enumerate(job.runs):
            if run.like is not None:
                earlier = [
                    other
                    for other in [*before, *job.runs[:i]]
                    if batches.cell_of(other) == batches.cell_of(run)
                ]
                assert sum(other.stage == "search" for other in earlier) == 3


def test_small_cells_share_a_job_and_runs_of_a_task_stay_together():
    runs = [
        run
        for task in ("a", "b", "c")
        for method in ("vpt-deep", "spt-deep")
        for run in cell(task, method, 3)
    ]
    jobs = batches.batches(runs, lambda run: 1.0, 11)
    assert [len(job.runs) for job in jobs] == [10, 10, 10] and all(
        len({run.run.task for run in job.runs}) == 1 for job in jobs
    )


@pytest.mark.refused
@pytest.mark.parametrize("bound", [0, -1, float("nan"), float("inf")])
def test_an_impossible_bound_is_refused(bound):
    with pytest.raises(BadInput, match="--minutes 30"):
        batches.batches(cell("a", "vpt-deep", 2), lambda run: 1.0, bound)


def test_the_list_is_what_the_snakefile_reads_and_names_do_not_change(tmp_path):
    runs = cell("a", "vpt-deep", 5, 40)
    jobs = batches.batches(runs, lambda run: 1.0, 20)
    batches.write_jobs(jobs, tmp_path / "new" / "sweep.json", profile="paper")
    written = json.loads((tmp_path / "new" / "sweep.json").read_text())["jobs"]
    assert {job["name"]: job["after"] for job in written} == {
        job.name: [*job.after] for job in jobs
    }
    assert sum(bool(job["after"]) for job in written) == len(jobs) - 1
    ids = [id for job in written for id in job["parameters"]["runs"]]
    assert {run.key for run in batches.chosen(runs, ids)} == {run.key for run in runs}
    # a longer plan leaves the jobs of the shorter one as they are
    more = [*runs, *cell("b", "vpt-deep", 5)]
    assert {job.name for job in batches.batches(more, lambda run: 1.0, 20)} > {
        job.name for job in jobs
    }
    with pytest.raises(BadInput, match="unknown run of the plan"):
        batches.chosen(runs, ["nosuch"])


def test_a_run_whose_search_is_not_whole_is_refused_and_the_others_go_on(stores, monkeypatch):
    """On the quick profile's own plan: a linear probe is searched, then run at the rate that did
    best."""
    runs = [
        run
        for run in batches.planned_runs(["spt.table-3"], "quick")
        if run.run.method == "linear-probe" and run.run.seed < 2
    ]
    waiting = [run for run in runs if run.like is not None]
    assert waiting and len(runs) > len(waiting)
    with pytest.raises(BadInput, match="the search for its rate is not whole"):
        batches.do(waiting[:1], profile="quick")
    frame = batches.do(runs, profile="quick")
    assert list(frame.id) == [batches.run_id(run) for run in runs]
    searched = frame[frame.seed == 0].sort_values("val")
    assert set(frame[frame.seed == 1].rate) <= set(
        searched[searched.val == searched.val.max()].rate
    )


def test_a_plan_is_narrowed_by_what_narrows_a_book():
    whole = batches.planned_runs(["spt.table-3"], "paper")
    task = whole[0].run.task
    narrowed = {"tasks": [task], "methods": ["spt-deep"]}
    found = batches.planned_runs(["spt.table-3"], "paper", seeds=[0, 1], **narrowed)
    assert found and {run.key for run in found} < {run.key for run in whole}
    assert {(run.run.task, run.run.method) for run in found} == {(task, "spt-deep")}
    assert {run.run.seed for run in found if run.stage == "final"} <= {0, 1}
    own = batches.planned_runs(["spt.table-3"], "paper", backbone="vit_small_patch16_224")
    assert {run.run.backbone for run in own} == {"vit_small_patch16_224"}
    spt = batches.planned_runs(["spt"], "paper", **narrowed)
    assert {run.key for run in found if run.run.seed == 0} <= {run.key for run in spt}


@pytest.mark.refused
def test_files_of_weights_are_looked_for_before_any_job_is_made(tmp_path):
    (file := tmp_path / "a.pth").touch()
    one = cell("a", "vpt-deep", 2)
    batches.check_weights(one, "pretrained")
    batches.check_weights(one, str(file))
    with pytest.raises(BadInput, match="there is no such file"):
        batches.check_weights(one, str(tmp_path / "b.pth"))
    with pytest.raises(BadInput, match="no such file"):
        batches.check_weights(one, ["vit_base_patch16_224.mae=nowhere.pth"])
    two = [*one, Planned("s", "v", Run("swin", "a", "vpt-deep"), "spt", "paper", "final")]
    with pytest.raises(BadInput, match="for 2 backbones; give swin=FILE vit=FILE"):
        batches.check_weights(two, str(file))
