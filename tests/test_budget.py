"""What planned runs take: operations by counting, bytes by manifests, shared runs once; unknown is
said."""

import csv
import json
from dataclasses import replace

import pandas as pd
import pytest
import torch
from PIL import Image
from torch.utils.flop_counter import FlopCounterMode

import visprompt as vp
from visbook.studies import budget, forecast, mask_forecast, mask_runs, plan
from visbook.studies.case import Run
from visprompt.__main__ import main
from visprompt.methods import settings_of as method_settings
from visprompt.models import embedded
from visprompt.paths import MANIFESTS
from visprompt.records import store
from visprompt.training.loop import settings_of
from visprompt.training.segmentation_recipe import load_segmentation_recipe
from visprompt.training.segmenter import build_segmenter

MICRO = "vit_micro_patch4_24"


def planned(method, task="position", stage="final", like=None, **settings):
    return plan.Planned(
        "benchmark",
        method,
        Run(MICRO, task, method, settings=settings),
        "quick",
        "quick",
        stage,
        like,
    )


@pytest.mark.parametrize("name", [MICRO, "resnet_micro_24", "swin_tiny_patch4_window7_224"])
def test_the_blocks_of_a_network_are_what_one_forward_counts(name, stores):
    backbone = vp.load_backbone(name, device="meta")
    found, whole = forecast.network.__wrapped__(name), vp.build_method("linear-probe", backbone, 10)
    assert len(found.blocks) == backbone.depth
    assert found.part(-1) == vp.count_flops(whole)["flops"] - 2 * backbone.width * 10
    assert found.part(backbone.depth) == 0


def test_operations_grow_with_what_is_trained():
    ops = {block: forecast.operations(planned("ap", block=block)) for block in (0, 4, 7)}
    assert ops[0] > ops[4] > ops[7] > forecast.operations(planned("linear-probe"))
    full, deep = (
        forecast.operations(planned("full-finetune")),
        forecast.operations(planned("vpt-deep", prompt_tokens=1)),
    )
    assert full > deep > ops[0]
    few = planned("vpt-deep", prompt_tokens=1)
    assert forecast.operations(replace(few, run=replace(few.run, train_size=80))) < deep
    assert forecast.operations(planned("e2vpt", prompt_tokens=1)) > 1.5 * deep


def test_hours_follow_the_images_that_lie_in_the_data_folder(tmp_path):
    for label in ("a", "b"):
        (folder := tmp_path / "dtd" / label).mkdir(parents=True)
        for number in range(10):
            Image.new("RGB", (4, 4)).save(folder / f"{number}.png")
    assert sum(forecast.sizes("dtd", str(tmp_path))) == 20 < sum(forecast.sizes("dtd"))
    assert forecast.sizes("svhn", str(tmp_path)) == forecast.sizes("svhn")
    run = planned("vpt-deep", prompt_tokens=1, task="dtd")
    assert forecast.operations(run, str(tmp_path)) < forecast.operations(run)


def test_a_training_step_is_what_the_rule_says():
    """The rule of forward and backward against autograd's own operations, for 36 patches; classes
    are few."""
    backbone = vp.load_backbone(MICRO, device="meta")
    for method, settings, backward in (("ap", {"block": 0}, 1), ("full-finetune", {}, 2)):
        model = vp.build_method(method, backbone, 2, **settings)
        counted = vp.count_flops(model, training=True)["flops"]
        assert counted == pytest.approx((1 + backward) * forecast.network(MICRO).part(-1), rel=0.1)


def test_unknown_numbers_are_said_not_guessed():
    (run, *_) = [run for run in plan.runs_of(plan.cells_of("spt.figure-4"))]
    monkey = replace(run, run=replace(run.run, task="dtd10"))
    assert forecast.sizes("dtd10")[0] is None and forecast.operations(monkey) is None
    files = forecast.data_files(["cub_200_2011", "nabirds", "position"])
    assert {file.name.split("/")[0].split(" ")[0] for file in files} == {"cub_200_2011", "nabirds"}
    assert all(file.bytes is None or file.bytes > 0 for file in files)
    assert [file.bytes for file in forecast.checkpoint_files([MICRO, "swin_no_such_thing"])] == [
        None
    ]


@pytest.mark.parametrize(
    "name, megabytes", [("vit_base_patch16_224.augreg_in21k", 410.4), ("resnet50.tv_in1k", 102.2)]
)
def test_a_checkpoint_is_as_large_as_its_parameters_with_the_classifier(name, megabytes):
    assert forecast.checkpoint_bytes(name) / 1e6 == pytest.approx(megabytes, abs=0.05)
    # whose authors' file holds more than weights
    assert forecast.checkpoint_bytes("vit_base_patch16_224.mocov3") is None


@pytest.mark.parametrize(
    "variant, above", [("Full fine-tuning", 1.02), ("Linear probe", 1.5), ("VPT-Deep", 1.2)]
)
def test_a_step_of_segmentation_is_about_what_is_forecast(variant, above, stores):
    """The forecast takes prompts for tokens, lets gradients flow below the decoder, and attention's
    own flow back once."""
    every = plan.runs_of(plan.mask_cells("davpt.table-2", "quick"))
    run = next(run for run in every if run.variant == variant)
    slug, given = run.run.method, run.run.settings
    recipe = load_segmentation_recipe("quick", slug)
    model = build_segmenter(slug, vp.load_backbone(MICRO), 5, recipe.decoder, **given)
    pictures, masks = torch.randn(4, 3, 24, 24), torch.randint(5, (4, 24, 24))
    with FlopCounterMode(display=False) as counter:
        model.training_loss(pictures, masks, 255).backward()
    one = mask_forecast.passes(MICRO, 24, 5, recipe.decoder)
    with FlopCounterMode(display=False) as whole:
        model.eval()(pictures[:1])
    plain = 1 + given.get("prompt_tokens", 0) / one["tokens"]
    assert (
        whole.get_total_flops()
        <= plain * one["backbone"] + one["primary"]
        <= 1.2 * whole.get_total_flops()
    )
    steps = replace(recipe, iterations=1, batch_size=4)
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:
        patch.setattr(mask_runs, "load_segmentation_recipe", lambda *_, **__: steps)
        patch.setattr(mask_forecast, "pictures", lambda task: ((4, 0, 0), 5))
        found = mask_forecast.mask_operations(run)
    assert 0.98 * counter.get_total_flops() <= found <= above * counter.get_total_flops()


def test_the_papers_segmentation_has_hours_and_its_own_checkpoint():
    found = budget.plan("davpt.table-2", "ivpt.table-7")
    assert not found.all.without_hours and found.all.hours < sum(row.hours for row in found.rows)
    assert found.all.unknown_sizes == ("pascal_context (by hand)",)
    assert mask_forecast.pictures("ade20k") == ((19805, 405, 2000), 150)
    assert mask_forecast.pictures("pascal_context_59") == ((None, None, None), 59)
    ade = load_segmentation_recipe("ade20k", "vpt-deep")
    assert [mask_forecast.windows(ade, (scale,)) for scale in (0.5, 1.0, 1.25, 1.75)] == [
        1,
        1,
        4,
        9,
    ]


def test_a_plan_asks_for_each_backbone_once_and_looks_at_no_code_of_benches(monkeypatch):
    """Copies of all entries, once a run, took most of a plan's minute."""
    asked, published = [], embedded.published
    monkeypatch.setattr(embedded, "published", lambda: asked.append(1) or published())
    plan.averages.cache_clear()
    assert budget.plan("davpt.table-1").all.runs > len(plan.whole_scope("paper").backbones)
    assert 0 < len(asked) <= len(plan.whole_scope("paper").backbones)
    looked, stands = [], store.code_stands
    monkeypatch.setattr(store, "code_stands", lambda *at: looked.append(at) or stands(*at))
    assert forecast.measured() is None and not looked


def test_the_plan_of_everything(capsys):
    found = budget.plan()
    assert [row.artifact for row in found.rows] == list(plan.artifacts())
    assert found.all.runs < sum(row.runs for row in found.rows)  # shared runs once
    cells = [cell for id in plan.artifacts() for cell in plan.cells_of(id) + plan.mask_cells(id)]
    assert found.all.runs == len({run.key for run in plan.runs_of(cells)})
    assert (
        max(row.bytes for row in found.rows)
        <= found.all.bytes
        < sum(row.bytes for row in found.rows)
    )
    assert all(row.command and row.made for row in found.rows)
    assert all(
        bool(row.hours or row.without_hours) == (row.runs > row.recorded) for row in found.rows
    )
    assert "least" in found.how or "measured" in found.how
    assert found.all.runs == json.loads(found.as_json())["all"]["runs"]
    with (MANIFESTS / "hours.csv").open() as file:
        kept = [tuple(row.values()) for row in csv.DictReader(file)]
    assert kept == [budget.kept_row(row) for row in (*found.rows, found.all)]


def test_the_command_prints_a_table_or_data(capsys, tmp_path):
    assert main(["plan", "spt.table-3", "ap.table-a1"]) == 0
    printed = capsys.readouterr().out
    assert "spt.table-3" in printed and "printed cells: make notebook NAME=ap" in printed
    words = ["plan", "spt.table-3", "--format", "json", "--device", "a100"]
    assert main([*words, "--precision", "float32"]) == 0
    slow = json.loads(capsys.readouterr().out)
    assert "A100" in slow["hours"] and slow["artifacts"][0]["unknown_sizes"]
    assert main(words) == 0
    fast = json.loads(capsys.readouterr().out)
    assert fast["all"]["hours"] < 0.1 * slow["all"]["hours"] and "in bf16" in fast["hours"]
    assert main(["plan", "spt.table-3", "--format", "csv"]) == 0
    assert (
        int(pd.read_csv(pd.io.common.StringIO(capsys.readouterr().out)).runs[0])
        == slow["all"]["runs"]
    )
    (tmp_path / "cub_200_2011").mkdir()
    assert main(["plan", "spt.table-3", "--format", "json", "--data", str(tmp_path)]) == 0
    there = json.loads(capsys.readouterr().out)["all"]
    # the checkpoint
    assert 0 < there["runs"] < slow["all"]["runs"] and there["bytes"] == 410_383_692


@pytest.mark.refused
@pytest.mark.parametrize(
    "words, said",
    [
        (["spt.tabel-3"], "Did you mean 'spt.table-3'"),
        (["--profile", "papers"], "Did you mean 'paper'"),
        (["--device", "h20"], "Did you mean 'h200'"),
        (["--device", "measured"], "visprompt bench --device cuda"),
        (["--data", "no/such/folder"], "leave --data out"),
    ],
)
def test_bad_input_is_one_line(words, said, capsys, stores):
    assert main(["plan", *words]) == 2
    told = capsys.readouterr().err
    assert said in told and told.count("\n") == 1


@pytest.mark.refused
def test_an_artifact_that_no_run_makes_has_nothing_to_study(capsys):
    assert main(["study", "ap.table-a1", "--profile", "paper"]) == 2
    assert "printed cells" in capsys.readouterr().err


def test_a_record_is_told_by_what_it_says():
    backbone = vp.load_backbone(MICRO, device="meta")
    run = planned("vpt-deep", prompt_tokens=10)
    run = replace(run, run=replace(run.run, rate=0.01))
    recipe = replace(plan.lab_of("quick").resolve(run.run).recipe, learning_rate=0.01)
    facts = {"task": "position", "train_size": 800, "resize": "none", "image_size": 24}
    said = settings_of(
        "vpt-deep", method_settings("vpt-deep", prompt_tokens=10), backbone, facts, recipe, 0, None
    )
    from visprompt.records import spread

    said = json.loads(json.dumps(spread(said)[0]))
    assert budget.fits(run, said, "abc")
    assert not budget.fits(run, said, "random, seed 0")
    assert not budget.fits(replace(run, run=replace(run.run, rate=0.05)), said, "abc")
    assert budget.fits(
        replace(run, like=run.run),
        said | {"recipe": said["recipe"] | {"learning_rate": 0.05}},
        "abc",
    )
    assert not budget.fits(planned("vpt-deep", prompt_tokens=20), said, "abc")
