"""Studies: grids as written, rates searched on validation alone, failures that leave the others
running."""

import ast
import json
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import visprompt as vp
from visbook.studies import comparable, grids, plan, rates, statistics, sweeps
from visbook.studies.case import Run
from visbook.studies.lab import Lab, LabSettings
from visbook.studies.sweeps import sweep
from visprompt import records
from visprompt.__main__ import main
from visprompt.data.tasks import embedded_tasks
from visprompt.errors import BadInput
from visprompt.models import embedded
from visprompt.paths import BOOK, ROOT

MICRO = "vit_micro_patch4_24"


@pytest.fixture
def lab(monkeypatch, stores):
    """A lab whose tasks are cut to a few images and whose training is one epoch."""
    lab = Lab(LabSettings(changes={"epochs": 1}))
    whole = lab.task

    def few(name, image_size, train_size=None):
        task = whole(name, image_size, train_size)
        return replace(
            task,
            train=tuple(p[:80] for p in task.train),
            val=tuple(p[:40] for p in task.val),
            test=tuple(p[:40] for p in task.test),
        )

    monkeypatch.setattr(lab, "task", few)
    return lab


ASKED = ("backbone", "task", "facts", "joins", "load_recipe", "load_segmentation_recipe")


def asks(path) -> set[tuple[str, str, str]]:
    """(module, function, what it asks for) of a module's calls."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            for call in [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]:
                name = getattr(call, "attr", getattr(call, "id", None))
                found |= {(path.stem, node.name, name)} if name in ASKED else set()
    return found


def test_what_decides_a_run_is_asked_for_in_one_place():
    """A case asks, each part in one place; a lab only loads."""
    found = set().union(*(asks(path) for path in (BOOK / "studies").glob("*.py")))
    assert found == {
        ("case", "backbone", "backbone"),
        ("case", "facts", "facts"),
        ("case", "joined", "joins"),
        ("case", "recipe", "load_recipe"),
        ("mask_runs", "backbone", "backbone"),
        ("mask_runs", "recipe", "load_segmentation_recipe"),
        # a lab's facts and `stored`, which a case asks for
        *(("lab", name, "task") for name in ("facts", "compute", "stored")),
        ("grids", "with_rates", "backbone"),  # of no run: how many blocks there are
        # of a record, which is held against its paper's recipe
        ("evidence", "recipe_strays", "load_recipe"),
        ("evidence", "data_strays", "joins"),
    }


def test_a_run_asks_once_for_its_backbone_its_task_and_its_recipe(monkeypatch, stores):
    from visbook.studies import case

    lab, asked = Lab(LabSettings("spt", changes={"epochs": 1})), Counter()

    def count(owner, name):
        real = getattr(owner, name)
        monkeypatch.setattr(
            owner, name, lambda *args, **more: asked.update([name]) or real(*args, **more)
        )

    for name in ("backbone", "task", "facts", "resolve"):
        count(lab, name)
    count(case, "load_recipe")
    for run in (
        Run(MICRO, "position", "linear-probe", rate=0.1),  # train and val joined
        Run(MICRO, "position", "linear-probe", rate=0.1, trial=True),
    ):
        asked.clear()
        assert lab.resolve(run).find() is None
        once = {"resolve": 1, "backbone": 1, "task": 1, "load_recipe": 1}
        # facts of drawn images have a record, and are asked for in place of the images
        assert asked == once | ({"facts": 1} if run.trial else {})
        for _ in ("fitted", "found"):
            asked.clear()
            lab.do(run)
            assert max(asked.values()) == 1 and set(once) - {"task"} <= set(asked)
    other = replace(run, prepared_on="letters")
    asked.clear()
    assert lab.resolve(other).find() is None
    assert asked["resolve"] == 2 and asked["load_recipe"] == 1


@pytest.mark.parametrize("profile", ["quick", "paper"])
def test_every_study_names_known_methods_settings_and_tasks(profile):
    scope = grids.scope_of(profile)
    backbones = {
        name: vp.load_backbone(name, device="meta")
        for name in scope.backbones.values()
        if profile == "quick"
    }
    for name, study in grids.studies().items():
        found = grids.cells(name, scope, 8)
        assert study["title"] and (
            found or profile == "paper" or not set(study["backbones"]) & set(scope.backbones)
        )
        for _, run, rate_of in found:
            assert rate_of in (None, "none", *grids.studies()["benchmark"]["variants"])
            if profile == "quick":
                assert run.task in embedded_tasks()
                classes = len(embedded_tasks()[run.task]["classes"])
                vp.build_method(run.method, backbones[run.backbone], classes, **run.settings)
                assert (
                    "deep" not in run.settings.values() and "shallow" not in run.settings.values()
                )
    with pytest.raises(BadInput, match="Did you mean 'benchmark'"):
        grids.cells("benchmarks", scope)


def test_every_study_is_shown():
    pages = [*(ROOT / "notebooks").glob("*.py"), *(BOOK / "chapters").glob("*.py")]
    shown = "".join(path.read_text(encoding="utf-8") for path in pages)
    planned = {name for entry in plan.artifacts().values() for name in entry.studies}
    hidden = [name for name in grids.studies() if f'"{name}"' not in shown and name not in planned]
    assert not hidden, (
        f"nothing shows the study {hidden[0]}; name it in Chapter.opened of a notebook, or "
        f"in plan.yaml"
    )


def test_a_cast_is_narrowed_by_backbone_tasks_and_methods():
    scope = grids.scope_of(
        "paper", backbone="vit_tiny_patch16_224", tasks=["dtd10"], methods=["vpt-deep"]
    )
    (cell,) = grids.cells("benchmark", scope)
    assert cell[1] == Run(
        "vit_tiny_patch16_224", "dtd10", "vpt-deep", settings={"prompt_tokens": 20}
    )
    assert grids.cells("pretraining", scope) == []
    assert grids.group_of("dtd10") == "natural" and grids.group_of("holidays") == "other"


@pytest.fixture
def measured(lab, monkeypatch):
    """A lab whose runs cost nothing: learning rate -> validation accuracy; what is missing has
    diverged."""
    done, values = {}, {}

    def do(run, compute=True):
        if compute and run.rate not in values:
            raise FloatingPointError("nan")
        if compute:
            done[run.rate] = SimpleNamespace(
                values={"val": values[run.rate], "test": 100 - values[run.rate]},
                settings={"task": run.task},
            )
        return done.get(run.rate)

    monkeypatch.setattr(lab, "do", do)
    return lab, values, done


ONE = Run(MICRO, "position", "vpt-deep", settings={"prompt_tokens": 2})  # its own rate is 0.01


def test_a_search_takes_the_best_on_validation_and_not_on_test(measured):
    lab, values, done = measured
    values |= {0.002: 50.0, 0.01: 60.0, 0.05: 60.0}
    (unsearched,) = sweeps.at_best_rates([ONE], lab, compute=False)
    assert unsearched.rate is None and not done
    best, other = sweeps.at_best_rates([ONE, replace(ONE, seed=3)], lab, compute=True)
    # of equals the nearest to the recipe's
    assert best.rate == 0.01 and other == replace(best, seed=3) and {*done} == {*values}


@pytest.mark.parametrize(
    ("found", "rate"),
    [
        ({0.002: 10.0, 0.01: 20.0, 0.05: 40.0, 0.25: 70.0, 1.25: 50.0}, 0.25),
        ({0.002: 10.0, 0.01: 20.0, 0.05: 40.0, 0.25: 70.0}, 0.25),  # the next one diverges
        ({0.002: 50.0, 0.01: 49.0, 0.05: 20.0, 0.0004: 51.0, 8e-05: 51.0}, 0.0004),
        ({0.002: 60.0, 0.01: 50.0, 0.05: 20.0, 0.0004: 49.0}, 0.002),
    ],
)
def test_a_search_goes_on_outward_until_its_end_is_worse(measured, found, rate):
    lab, values, done = measured
    values |= found
    assert sweeps.at_best_rates([ONE], lab, compute=True)[0].rate == rate
    assert {*done} == {*found}
    assert sweeps.at_best_rates([ONE], lab, compute=False)[0].rate == rate


def test_a_search_ends_three_steps_outside_and_without_runs_with_what_there_is(measured):
    lab, values, done = measured
    values |= {float(f"{0.01 * 5.0**step:.6g}"): 50.0 + step for step in range(-1, 9)}
    assert sweeps.at_best_rates([ONE], lab, compute=True)[0].rate == max(done) == 6.25
    del done[1.25]  # so nobody knows that the next is better
    assert sweeps.at_best_rates([ONE], lab, compute=False)[0].rate == 0.25


def test_a_grid_that_does_not_go_outward_takes_the_best_of_what_it_names(measured, monkeypatch):
    lab, values, done = measured
    monkeypatch.setitem(lab.protocol.searches, "ours", {"factors": [0.2, 1.0, 5.0]})
    values |= {0.002: 68.0, 0.01: 69.0, 0.05: 70.0, 0.25: 80.0}
    assert sweeps.at_best_rates([ONE], lab, compute=True)[0].rate == 0.05 == max(done)


@given(st.lists(st.floats(0, 100), min_size=12, max_size=12))
def test_a_search_ends_with_both_neighbours_tried_and_no_better(values):
    val = dict(zip([float(f"{5.0**step:.6g}") for step in range(-5, 7)], values, strict=True))
    tried = [1.0, 0.2, 5.0]
    while more := rates.further(tried, best := max(tried, key=lambda r: val[r]), 1.0, 3):
        tried.append(more)
    assert len(tried) <= 6 and max(tried) <= 625 and min(tried) >= 1 / 625
    sides = {float(f"{best * 5:.6g}"), float(f"{best / 5:.6g}")}
    assert sides <= {*tried} or best in (625.0, 0.0016)


@pytest.mark.parametrize("name", ["benchmark", "pretraining"])
def test_no_kept_search_ends_before_its_best_rate_is_inside(name, monkeypatch):
    lab, asked = Lab(LabSettings("quick")), {}
    do = lab.do
    monkeypatch.setattr(lab, "do", lambda run, **how: asked.setdefault(repr(run), do(run, **how)))
    runs = [run for _, run, _ in grids.cells(name, grids.scope_of("quick"), 1)]
    sweeps.at_best_rates(runs, lab, compute=False)
    assert len(asked) > 3 * len(runs) and [run for run, record in asked.items() if not record] == []


def test_a_study_runs_in_parts_and_finds_what_was_done(lab):
    scope = grids.scope_of("quick", tasks=["position"], methods=["linear-probe", "vpt-deep"])
    halves = [grids.study("benchmark", scope, lab, seeds=[0], part=f"{part}/2") for part in (1, 2)]
    assert [list(half.variant) for half in halves] == [["Linear probe"], ["VPT-Deep"]]
    both = grids.study("benchmark", scope, lab, seeds=[0], kept_seeds=[0, 1])
    whole = grids.study("benchmark", scope, lab, kept_seeds=[0, 1])
    assert [*both.variant] == [*whole.variant]  # a seed that is asked for twice counts once
    assert (
        list(whole.variant) == ["Linear probe", "VPT-Deep"]
        and list(whole.group) == ["structured"] * 2
    )
    for wrong in ("3/2", "0/1", "half"):
        with pytest.raises(BadInput, match="written 1/2"):
            grids.study("benchmark", scope, lab, seeds=[0], part=wrong)


@pytest.mark.parametrize("name", ["spt", "davpt", "ivpt"])
def test_a_papers_recipe_augments_where_the_paper_does(name):
    lab = Lab(LabSettings(recipe=name))
    fine, other = (
        lab.prepare(Run(MICRO, task, "vpt-deep"))["recipe"] for task in ("flowers", "position")
    )
    assert (fine.epochs, fine.warmup, fine.head_rate) == (100, 0.1, None)
    how = (
        "crop the original and flip"
        if name in ("spt", "davpt")
        else "place in the original and flip"
    )
    assert fine.augmentation == how and other.augmentation == "none"
    assert fine.optimizer == ("sgd" if name == "ivpt" else "adam")
    for slug in vp.METHODS:
        lab.prepare(
            Run(MICRO, "position", slug, settings={"prompt_tokens": 2} if "vpt" in slug else {})
        )


def test_a_study_completes_the_record_of_a_run_that_knew_of_none(lab, stores):
    run = Run(MICRO, "position", "linear-probe")
    bare = vp.tune(**lab.prepare(run))
    assert bare.about == {}
    assert lab.do(run, compute=False).about == {}  # looking changes nothing
    told = lab.do(run)
    assert (told.about["profile"], told.about["recipe"], told.about["data"]) == (
        "quick",
        "quick",
        "embedded",
    )
    assert told.values == bare.values and told.key == bare.key and told.id != bare.id
    assert lab.do(run) == told == records.find_record(told.id)


def test_every_kept_training_says_its_profile_recipe_and_data():
    for record in records.all_records("tune", of=[ROOT / "book" / "records"]):
        assert {"profile", "recipe", "data"} <= record.about.keys(), record.id


def test_a_run_from_scratch_is_not_the_pretrained_one(lab):
    pretrained = Run(MICRO, "position", "linear-probe")
    done = lab.do(pretrained)
    scratch = Run(MICRO, "position", "linear-probe", scratch=True)
    assert lab.do(scratch, compute=False) is None
    assert lab.do(scratch).id != done.id and lab.do(pretrained, compute=False).id == done.id


def folder_task(root, break_it):
    """A task folder of four 16-pixel images a split, one of them broken."""
    (root / "images").mkdir(parents=True)
    for name, start in (("train800.txt", ""), ("val200.txt", "v"), ("test.txt", "t")):
        for i in range(4):
            Image.fromarray(np.full((16, 16, 3), 60 * i, np.uint8)).save(
                root / "images" / f"{start}{i}.png"
            )
        (root / name).write_text("".join(f"images/{start}{i}.png {i % 2}\n" for i in range(4)))
    break_it(root)


BREAKS = {
    "missing image": (
        lambda root: (root / "images" / "2.png").unlink(),
        "line 3: image .*2.png does not exist",
    ),
    "unreadable": (
        lambda root: (root / "images" / "1.png").write_bytes(b"no image"),
        "1.png cannot be read .*fetch it again",
    ),
    "label": (
        lambda root: (root / "classes.txt").write_text("only\n"),
        "label 1 is none of 1 classes",
    ),
    "layout": (
        lambda root: (root / "val200.txt").unlink(),
        "val200.txt is missing; write one 'relative/path label' a line",
    ),
}


@pytest.mark.refused
@pytest.mark.parametrize("kind", BREAKS)
def test_a_broken_folder_is_one_line_and_the_other_runs_go_on(kind, tmp_path, stores):
    break_it, message = BREAKS[kind]
    folder_task(tmp_path / "data" / "broken", break_it)
    folder_task(tmp_path / "data" / "whole", lambda root: None)
    lab = Lab(LabSettings(data_dir=str(tmp_path / "data"), changes={"epochs": 1}))
    runs = [
        Run(MICRO, task, "linear-probe", seed) for seed in (0, 1) for task in ("broken", "whole")
    ]
    with pytest.raises(
        BadInput, match=f"2 of 4 runs failed; .*linear-probe on broken.* and 1 more: .*{message}"
    ) as told:
        sweeps.sweep(runs, lab, "test")
    assert "\n" not in str(told.value)
    assert [record.settings["task"] for record in records.all_records("tune")] == ["whole"] * 2
    failed = [json.loads(path.read_text()) for path in stores[0].rglob("failed/tune/*.json")]
    assert len(failed) == 2
    assert all(
        record["settings"]["run"]["task"] == "broken" and "broken" in record["error"]
        for record in failed
    )


def test_a_loss_that_is_no_number_leaves_a_record_and_the_others_go_on(lab, stores):
    runs = [
        Run(MICRO, "position", "vpt-deep", rate=rate, settings={"prompt_tokens": 2})
        for rate in (1e38, 0.01)
    ]
    with pytest.raises(
        BadInput, match="1 of 2 runs failed.*the loss of vpt-deep is .*; lower learning_rate"
    ):
        sweeps.sweep(runs, lab, "test")
    assert (
        len(list(stores[0].rglob("failed/tune/*.json"))) == 1
        and len(records.all_records("tune")) == 1
    )


def test_a_checkpoint_of_another_architecture_fails_its_runs_alone(lab, stores):
    other = Lab(LabSettings(weights=str(embedded.weights_file("resnet_micro_24"))))
    with pytest.raises(
        BadInput, match="1 of 1 runs failed.*is of another architecture than vit_micro_patch4_24"
    ):
        sweeps.sweep([Run(MICRO, "position", "linear-probe")], other, "test")
    assert len(list(stores[0].rglob("failed/tune/*.json"))) == 1


def frame_of(values):
    """A frame from {(variant, task): accuracies by seed}."""
    rows = [
        {
            "variant": variant,
            "task": task,
            "group": grids.group_of(task),
            "backbone": "b",
            "train_size": 8,
            "seed": seed,
            "test": test,
            "record": (variant, task, seed),
        }
        for (variant, task), tests in values.items()
        for seed, test in enumerate(tests)
    ]
    return pd.DataFrame(rows)


def test_a_gain_is_paired_by_task_and_seed():
    frame = frame_of(
        {
            ("a", "position"): [50, 60, 70],
            ("b", "position"): [48, 57, 66],
            ("a", "letters"): [20, 20, 20],
            ("b", "letters"): [21, 22, 23],
        }
    )
    found = statistics.gain(frame, "a", "b")
    # 3 and -2: two tasks have no interval for other tasks
    assert found.mean == 0.5 and found.elsewhere == (-np.inf, np.inf)
    assert (found.tasks, found.seeds, found.better_tasks) == (2, 3, 1) and len(found.records) == 12
    assert statistics.gain(frame, "a", "c") is None
    # of a sweep that is half done, in which no seed has all tasks, the seeds that each task has
    half = frame[(frame.task == "letters") == (frame.seed == 0)]
    assert (statistics.gain(half, "a", "b").tasks, statistics.gain(half, "a", "b").seeds) == (2, 1)


def test_group_tables_leave_out_what_lacks_a_task():
    frame = frame_of(
        {("a", "position"): [50, 60], ("b", "position"): [40, 40], ("a", "count"): [30, 40]}
    )
    table = statistics.group_table(frame).set_index("method")
    assert table.loc["a", "structured"] == "45.0 ± 7.1" and table.loc["b", "structured"] == "–"
    assert list(table.columns) == ["structured", "mean", "seeds"]
    assert statistics.task_table(frame).loc["b"].tolist() == ["40.0", "–"]


def test_a_foreign_task_is_shown_in_a_group_of_its_own():
    frame = frame_of({("a", "position"): [50, 60], ("a", "holidays"): [10, 20]})
    table = statistics.group_table(frame).set_index("method")
    assert (table.loc["a", "structured"], table.loc["a", "other"]) == ("55.0 ± 7.1", "15.0 ± 7.1")
    assert table.loc["a", "mean"] == "35.0 ± 7.1"
    # one seed has no deviation
    assert statistics.group_table(frame_of({("a", "holidays"): [10]})).loc[0, "other"] == "10.0"


def test_a_foreign_task_is_run_in_every_part_beside_what_was_asked_for_and_is_part_of_none():
    scope = grids.scope_of("quick", tasks=["position", "holidays"], methods=["vpt-deep"])
    assert [run.task for _, run, _ in grids.cells("benchmark", scope)] == ["position", "holidays"]
    assert scope.tasks == grids.scope_of("quick").tasks and scope.tasks_for("fine") == ["holidays"]
    others = [
        run.prepared_on
        for _, run, _ in grids.cells("spt-other-task", grids.scope_of("quick", tasks=["holidays"]))
    ]
    assert set(others) == {"holidays"}


def test_rows_answer_for_data_sets_only_when_all_are_there():
    values = {
        (variant, task): [50, 60]
        for variant in "ab"
        for task in ("position", "letters", "holidays")
    }
    values["a", "letters"] = [50]  # the second seed lacks a task
    frame = frame_of(values)
    rows, why = comparable.whole(frame, ["a", "b"], ["position", "letters"])
    assert (
        why == ""
        and set(rows.task) == {"position", "letters"}
        and set(rows.seed) == {0}
        and len(rows) == 4
    )
    rows, why = comparable.whole(frame, ["a", "b"], ["position", "texture"])
    assert (
        not len(rows)
        and "about position and texture; not all that it compares was run here on texture" in why
    )
    rows, why = comparable.whole(frame[frame.task == "holidays"], ["a", "b"], ["position"])
    assert not len(rows) and "not all that it compares was run here on position" in why
    two = pd.concat([frame, frame[frame.task == "position"].assign(backbone="c")])
    assert comparable.whole(two, ["a", "b"], ["position"], ["b", "c"])[1] == ""
    assert (
        "on b and c; not all that it compares was run here on letters on c"
        in comparable.whole(two, ["a", "b"], ["position", "letters"], ["b", "c"])[1]
    )
    late = frame_of({("a", "position"): [50], ("b", "position"): [50, 60]})
    assert (
        "no seed has all of it"
        in comparable.whole(late[late.seed.eq(1) | late.variant.eq("a")], ["a", "b"], ["position"])[
            1
        ]
    )


@pytest.mark.refused
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--methods loraa", "unknown method 'loraa'. Did you mean 'lora'"),
        ("--profile real --methods cdc", "no method cdc in any study; there is linear-probe,"),
        (
            "benchmark --methods lora",
            "no method lora in benchmark; there is linear-probe, full-finetune, bias,",
        ),
        ("benchmark --methods vpt-deep cdc", "no method cdc in benchmark"),
        (
            "--tasks positon",
            "(a folder of images also needs --data-dir) 'positon'. Did you mean 'position'",
        ),
        ("--data-dir . --tasks positon", "unknown task 'positon'. Did you mean 'position'"),
        (
            "benchmark --tasks count",
            "no task count in benchmark; there is flowers, position, letters, texture.",
        ),
        (
            "tasks davpt-parts --tasks position",
            "nothing to run of study davpt-parts: it has the tasks flowers and the methods vpt-",
        ),
        (
            "sizes --backbone vit_micro_patch4_24",
            "its backbones have the roles smaller, larger, and only supervised, ap-vit is filled",
        ),
        ("--part 3/2", "part must be written 1/2"),
        ("sizes --part 99/99", "fewer cells than part 99/99"),
        ("--seeds none", "--seeds takes whole numbers, such as 0 1 2, not 'none'"),
        ("--seeds", "--seeds takes whole numbers, such as 0 1 2, not 'nothing'"),
        ("benchmrk", "unknown study 'benchmrk'. Did you mean 'benchmark'"),
    ],
)
def test_what_leaves_no_cell_is_one_line_and_exit_2(words, message, stores, capsys):
    assert main(["study", *words.split()]) == 2
    out, error = capsys.readouterr()
    assert message in error and error.count("\n") == 1 and not out
    assert not list(stores[0].rglob("*.json"))


def test_a_study_whose_runs_all_failed_names_them(stores, capsys, tmp_path):
    (tmp_path / "empty").mkdir()
    words = ["--tasks", "empty", "--data-dir", str(tmp_path), "--methods", "linear-probe"]
    assert main(["study", "benchmark", *words]) == 2
    out, error = capsys.readouterr()
    assert (
        "benchmark: 1 of 1 runs failed" in error and "train800.txt is missing" in error and not out
    )


def test_each_backbone_size_and_source_of_prompts_has_a_table(stores, capsys):
    cells = [("b", None, None), ("c", 80, None), ("c", 200, "letters")]
    frame = pd.concat(
        [
            frame_of({("a", "position"): [50 + place, 60 + place]}).assign(
                run=[
                    Run(backbone, "position", "ap", seed, size, prepared_on=other)
                    for seed in (0, 1)
                ]
            )
            for place, (backbone, size, other) in enumerate(cells)
        ]
    )
    found = statistics.tables(frame)
    assert list(found) == [
        "b",
        "c, 80 training images",
        "c, 200 training images, prompts of letters",
    ]
    assert [table["mean"][0] for table in found.values()] == [
        "55.0 ± 7.1",
        "56.0 ± 7.1",
        "57.0 ± 7.1",
    ]
    assert list(statistics.tables(frame[:1])) == ["b"]
    assert (
        main(
            [
                "study",
                "pretraining",
                "--tasks",
                "position",
                "--methods",
                "linear-probe",
                "--epochs",
                "1",
            ]
        )
        == 0
    )
    told = capsys.readouterr().out
    assert [
        f"pretraining, {MICRO}.{name}: test accuracy" in told
        for name in ("mae_leaves", "mocov3_leaves")
    ] == [True, True]


def test_what_is_looked_up_need_not_be_possible_and_what_is_run_must(lab, stores, monkeypatch):
    """The two that stopped the paper profile: more images than there are, and more guided prompts
    than classes."""
    scope = grids.scope_of("quick", backbone=MICRO, tasks=["digits"], methods=["da-vpt-plus"])
    scope = grids.replace(
        scope, tasks={**scope.tasks, "ablation": ["digits"], "amount": ["digits"]}, profile="paper"
    )
    found = grids.study("davpt-weights", scope, lab, kept_seeds=[0, 1])
    ((why, variants),) = found.attrs["left_out"].items()
    assert (
        not len(found)
        and "guided_tokens must be 1 to" in why
        and variants == ["guided prompts = 16"]
    )
    scope, form = grids.replace(scope, only_methods=("vpt-deep",)), grids.form
    monkeypatch.setattr(
        grids, "form", lambda *of: form(*of) | {"train_sizes": {"paper": [1281167]}}
    )
    found = grids.study("spt-amount", scope, lab, kept_seeds=[0, 1])
    assert (
        "vpt-deep on digits" in [*found.attrs["left_out"]][0]
        and "not 1281167" in [*found.attrs["left_out"]][0]
    )
    with pytest.raises(BadInput, match="1 of 1 runs failed.*vpt-deep on digits.*not 1281167"):
        grids.study("spt-amount", scope, lab, seeds=[0])


def test_a_damaged_record_is_no_impossible_run(lab, stores):
    scope = grids.scope_of("quick", tasks=["position"], methods=["linear-probe"])
    grids.study("benchmark", scope, lab, seeds=[0])
    (path,) = records.store.files(stores[0], "tune")
    path.write_text("{}")
    with pytest.raises(BadInput, match="damaged"):
        grids.study("benchmark", scope, lab, kept_seeds=[0])


def test_an_impossible_cell_leaves_the_search_of_the_others_alone(lab, stores):
    scope = grids.scope_of("quick", tasks=["position"], methods=["vpt-deep"])
    cells = [
        Run(MICRO, "position", "vpt-deep", settings={"prompt_tokens": 2}, train_size=size)
        for size in (10**7, None)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            grids, "cells", lambda *_: [(str(run.train_size), run, None) for run in cells]
        )
        with pytest.raises(BadInput, match="1 of 2 runs failed"):
            grids.study("benchmark", scope, lab, seeds=[0], search=True)
    tried = {record.settings["recipe"]["learning_rate"] for record in records.all_records("tune")}
    steps = {round(np.log(rate / 0.01) / np.log(rates.STEP), 6) for rate in tried}
    # the three, and those with which the search went on
    assert {-1, 0, 1} <= steps == {*range(int(min(steps)), int(max(steps)) + 1)}


def test_a_weights_file_belongs_to_one_backbone(stores):
    """One file for a sweep of several backbones would make rows of one out of the weights of
    another."""
    mae, moco = (f"{MICRO}.{name}_leaves" for name in ("mae", "mocov3"))
    file, other = (str(embedded.weights_file(name)) for name in (mae, MICRO))
    one = Lab(LabSettings(weights=file))
    assert one.backbone(mae).fingerprint == vp.load_backbone(mae, "pretrained").fingerprint
    with pytest.raises(
        BadInput, match=f"given for {mae} and would now serve {moco} too; name them"
    ):
        one.backbone(moco)
    # random weights need no file
    assert one.backbone(MICRO, scratch=True).fingerprint == "random, seed 0"
    for words in ([f"{mae}={file}", f"{MICRO}={other}"], f"[{mae}={file}, {MICRO}={other}]"):
        several = Lab(LabSettings(weights=words))
        assert several.weights_of(mae) == file and several.weights_of(MICRO) == other
        assert several.weights_of("vit_nano_patch4_24") == "pretrained"
    wrongs = [
        (["x"], "NAME=FILE"),
        (["=x"], "NAME=FILE"),
        (["a=b", "a=c"], "twice"),
        (["vit_micro_patch4_23=b"], "Did you mean"),
    ]
    for wrong, why in [*wrongs, (["vit_micro_patch4_24=b"], "no such file")]:
        with pytest.raises(BadInput, match=why):
            Lab(LabSettings(weights=wrong))


def test_moco_has_a_name_that_weights_can_be_given_to(tmp_path):
    name = grids.scope_of("paper").backbones["mocov3"]
    plain = vp.load_backbone(name, device="meta")
    assert (
        plain.mean == (0.485, 0.456, 0.406)
        and vp.load_backbone("vit_base_patch16_224", device="meta").mean == (0.5,) * 3
    )
    with pytest.raises(BadInput, match=f"no address; give their file: weights {name}=FILE"):
        vp.load_backbone(name, "pretrained")


@pytest.mark.parametrize("process", [0, 1, 2])
def test_a_sweep_that_begins_elsewhere_gives_the_same_rows(monkeypatch, stores, process):
    monkeypatch.setattr("os.getpid", lambda: process)
    done, runs = [], [Run(MICRO, "position", "linear-probe", seed) for seed in range(3)]
    lab = Lab(LabSettings(changes={"epochs": 1}))
    do = lab.do
    monkeypatch.setattr(lab, "do", lambda run, **more: done.append(run.seed) or do(run, **more))
    assert list(sweep(runs, lab, "test").seed) == [0, 1, 2]
    assert sorted(done) == [0, 1, 2] and done[0] == process * 37 % 3


def test_the_paper_profile_on_a_gpu_is_bf16_unless_told_otherwise():
    def precision(profile, device, **changes):
        settings = LabSettings("spt", device=device, changes=changes, profile=profile)
        return (
            plan.Paper(settings)
            .resolve(Run("vit_base_patch16_224", "cub", "bias"))
            .recipe.precision
        )

    assert precision("paper", "cuda:1") == "bf16"
    assert precision("paper", "cuda", precision="float32") == "float32"
    assert precision("paper", "cpu") == precision("quick", "cuda") == "float32"
