"""AP's pages: what they run and what they look up, what their tables hold, and when they do not
judge."""

import html
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch

import visprompt as vp
from visbook.chapters import ap_others, ap_runs
from visbook.chapters.ap import TableParameters, TableRuns, vp_from_layer_0
from visbook.chapters.ap_layers import LayerParameters, LayerRuns, dissect
from visbook.chapters.chapter import Chapter
from visbook.chapters.parameters import ChapterParameters
from visbook.pages.page import Page
from visbook.studies.ap_rates import ap_rates, block_rates
from visbook.studies.case import Run
from visbook.studies.lab import Lab, LabSettings
from visprompt.errors import BadInput

TWO = ["position", "count"]


def rows_of(task):
    return pd.DataFrame(
        {"backbone": "vit_micro_patch4_24", "task": task, "seed": range(3), "test": 50.0}
    )


def layers_of_ap(**given):
    """The runs of AP's page on blocks, on the small ViT alone, and nothing done yet."""
    p = LayerParameters(backbone="vit_micro_patch4_24", **given)
    return LayerRuns(Page("ap_layers", p), p)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"methods": ["app"]}, "Did you mean 'ap'"),
        ({"tasks": []}, "parameter tasks is an empty list; leave it out"),
    ],
)
def test_impossible_parameters_say_what_to_write(given, message):
    for settings in (TableParameters, LayerParameters):
        with pytest.raises(BadInput, match=message):
            settings(**given)


def test_profiles_fill_what_is_left_out_and_tasks_that_are_asked_for_are_run():
    quick, paper = TableParameters(), TableParameters(profile="paper", data_dir="data")
    assert (quick.seeds, quick.kept_seeds, quick.looked_up, len(quick.backbones)) == (
        [0],
        [1, 2, 3],
        ["count", "texture"],
        2,
    )
    assert (paper.seeds, paper.kept_seeds, paper.looked_up, paper.few_shot) == (
        [0, 1, 2, 3, 4],
        [],
        [],
        1000,
    )
    assert TableParameters(tasks=["texture"]).looked_up == [] and LayerParameters(
        backbone="b"
    ).backbones == ["b"]


@pytest.mark.parametrize(
    ("task", "few_shot", "amounts"),
    [
        ("position", 160, [80, 160, 320, 800]),
        ("position", 400, [200, 400, 800]),
        ("position", 800, [400, 800, 1600]),
        ("count", 800, [400, 800]),
        ("count", 1000, [500, 800, 1000]),
    ],
)
def test_no_number_of_training_images_is_run_twice(task, few_shot, amounts):
    """Twice 400 is all of 800 images. Position has more to draw from; where there are none, twice
    800 is not tried."""
    found = layers_of_ap(few_shot=few_shot, tasks=[task], methods=["ap"]).asked([0])
    runs = [run for run in found if run.settings == {"block": 2}]
    assert sorted(run.train_size or 800 for run in runs) == amounts


def test_a_seed_that_is_run_and_kept_counts_once(monkeypatch):
    asked = {}
    monkeypatch.setattr(
        ap_runs,
        "sweep",
        lambda runs, lab, label, kept: asked.update(run=runs, kept=kept) or pd.DataFrame(),
    )
    p = TableParameters(
        backbone="vit_micro_patch4_24",
        tasks=["position"],
        methods=["linear-probe"],
        seeds=[0, 1, 1],
    )
    with pytest.raises(AttributeError):  # the made-up frame has no runs
        TableRuns(Page("ap", p), p).frame  # noqa: B018
    assert {run.seed for run in asked["run"]} == {0, 1} and {run.seed for run in asked["kept"]} == {
        2,
        3,
    }
    every = [str(run) for run in (*asked["run"], *asked["kept"])]
    assert len(every) == len(set(every)) == 8  # four seeds, two numbers of images


def test_one_seed_has_no_deviation_in_the_tables_of_ap(monkeypatch):
    for tests, cell in (([50.0], "50.0"), ([50.0, 60.0], "55.0 ± 7.1")):
        rows = pd.DataFrame(
            {
                "task": "position",
                "test": tests,
                "seed": range(len(tests)),
                "record": "r",
                "parameters": 3,
            }
        )
        p = TableParameters(backbone="vit_micro_patch4_24", tasks=["position"], methods=["ap"])
        runs = TableRuns(Page("ap", p), p)
        monkeypatch.setattr(runs, "part", lambda *_, rows=rows, **__: rows)
        assert runs.table()[0].loc[0, "position"] == cell
        runs, tables = layers_of_ap(), []
        monkeypatch.setattr(runs, "part", lambda *_, rows=rows, **__: rows)
        monkeypatch.setattr(runs, "show", lambda _, table, *__, tables=tables: tables.append(table))
        runs.compare("ap.table-a3", {"add": {}}, {}, "")
        assert tables[0].loc[0, "test accuracy, %"] == cell


def test_a_claim_of_ap_is_not_judged_from_another_folder(monkeypatch):
    rows, told, runs = rows_of("dtd10"), [], layers_of_ap()
    monkeypatch.setattr(runs.page, "not_judged", lambda *why: told.append(why))
    assert (
        runs.answers("ap.table-1.vit-ap-over-vp", rows, rows) is None
        and "was run here on position" in told[0][1]
    )
    both = pd.concat([rows, rows_of("position")])
    ap, other = runs.answers("ap.table-1.vit-ap-over-vp", both, both)
    assert set(ap.task) == {"position"} and len(ap) == len(other) == 3 and len(told) == 1
    assert runs.answers("ap.table-1.vit-ap-over-vp", both, rows.iloc[:0]) is None and len(told) == 1


def test_the_pages_of_ap_run_what_they_show_and_look_up_the_rest():
    p = TableParameters()
    runs = TableRuns(Page("ap", p), p)
    done = [run for run in runs.asked(p.seeds) if runs.is_run_here(run)]
    assert {run.task for run in done} == {"position"} and {run.seed for run in done} == {0}
    p = TableParameters(tasks=["texture"], backbone="resnet_micro_24", methods=["ap", "lora"])
    runs = TableRuns(Page("ap", p), p)
    asked = runs.asked(p.seeds)  # LoRA needs a ViT
    assert all(map(runs.is_run_here, asked)) and {(run.method, run.task) for run in asked} == {
        ("ap", "texture")
    }
    assert {run.settings["block"] for run in asked} == {
        runs.lab.backbone("resnet_micro_24").depth - 3
    }
    found = layers_of_ap().asked([0])
    assert {
        run.settings["block"] for run in found if isinstance(run.settings.get("block"), int)
    } == set(range(8))
    assert "frame" not in runs.__dict__  # to open a page runs nothing


@pytest.mark.parametrize(
    ("kind", "parameters"), [(TableRuns, TableParameters), (LayerRuns, LayerParameters)]
)
def test_from_nothing_a_page_leaves_out_the_resnet_and_says_how_to_run_it(
    stores, monkeypatch, kind, parameters
):
    told = []
    monkeypatch.setattr(ap_runs, "display", told.append)
    runs = [
        kind(Page("ap_layers", p), p)
        for p in (parameters(), parameters(backbone="resnet_micro_24"))
    ]
    assert [one.backbones for one in runs] == [
        ["vit_micro_patch4_24"],
        ["resnet_micro_24"],
    ] and not told
    for one in runs:
        one.show_left_out()
    (line,) = [html.unescape(shown.data) for shown in told]
    assert 'make notebook NAME=ap_layers ARGS="-p backbone resnet_micro_24"' in line


def test_from_nothing_the_page_on_blocks_runs_each_block_and_looks_up_variants(stores):
    short, asked = LayerRuns(Page("ap_layers", p := LayerParameters()), p), layers_of_ap()
    left = [run for run in short.asked([0]) if not short.is_run_here(run)]
    assert [run.settings.get("kind") or len(run.settings["block"]) for run in left] == [
        "product",
        "concatenate",
        3,
        5,
    ]
    assert all(map(asked.is_run_here, asked.asked([0])))


def test_the_small_ap_is_the_vp_of_its_image():
    assert vp_from_layer_0(vp.load_backbone("vit_nano_patch4_24")) == 0


def test_ap_dissects_two_networks_block_by_block():
    pair = [vp.load_backbone(name) for name in ("vit_nano_patch4_24", "resnet_micro_24")]
    images = torch.randint(
        0, 256, (12, 3, 24, 24), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
    )
    found = dissect(pair, [images, images], "cpu")
    assert np.shape(found["cka"]) == tuple(backbone.depth for backbone in pair)
    assert np.all((np.array(found["cka"]) >= 0) & (np.array(found["cka"]) <= 1 + 1e-6))
    assert len(found["distance"]) == pair[0].depth


def single_blocks(**accuracies):
    """Made-up rows of the study `ap-layers`: method -> accuracy by block, on two tasks with three
    seeds."""
    rows = [
        {
            "variant": f"{method}, block {block}",
            "task": task,
            "seed": seed,
            "block": block,
            "test": test + seed * (block % 2),
        }
        for method, by_block in accuracies.items()
        for block, test in enumerate(by_block)
        for task in ("position", "count")
        for seed in range(3)
    ]
    same = {
        "backbone": "vit_micro_patch4_24",
        "train_size": 800,
        "val": 50.0,
        "group": "structured",
    }
    return pd.DataFrame(rows).assign(
        **same, record=[SimpleNamespace(settings={"task": row["task"]}) for row in rows]
    )


def judged_of(rows, judge):
    """What a page that shows made-up rows of `ap-layers` judges: claim -> (mean, low, high)."""
    p, found = ChapterParameters(), {}
    chapter = Chapter(Page("ap_others", p), p, ["ap-layers"], [])
    chapter.frames = {"ap-layers": rows}
    chapter.page.judge = lambda claim, *values, **_: found.update({claim: values})
    chapter.page.not_judged = lambda claim, why: found.update({claim: why})
    judge(chapter)
    return found


def test_blocks_are_judged_by_their_outer_thirds_and_only_when_all_tasks_have_them():
    rows = single_blocks(**{"ap": [50] * 4 + [60] * 4, "vpt-deep": [45] * 4 + [50] * 4})
    prefers = lambda chapter: ap_others.judge_preference(
        chapter, "ap.figure-a1.vit-prefers-shallow", "supervised", TWO
    )
    (mean, low, high) = judged_of(rows, prefers)["ap.figure-a1.vit-prefers-shallow"]
    assert mean == pytest.approx(10) and low <= mean <= high
    turned = single_blocks(ap=[60] * 4 + [50] * 4)
    assert judged_of(turned, prefers)["ap.figure-a1.vit-prefers-shallow"][0] == pytest.approx(-10)
    assert judged_of(rows[rows.block < 7], prefers) == {}  # half of the blocks have other thirds
    lacking = rows[(rows.task == "position") | (rows.block < 5)]
    assert "count" in judged_of(lacking, prefers)["ap.figure-a1.vit-prefers-shallow"]
    beside = judged_of(rows, lambda chapter: ap_others.judge_beside_vpt(chapter, "supervised", TWO))
    assert beside["ap.figure-a2.ap-over-vpt"][0] == pytest.approx(7.5)
    assert beside["ap.figure-a2.same-layer-preference"][0] > 0.8
    flat = single_blocks(**{"ap": [50] * 8, "vpt-deep": [45] * 8})
    flat["test"] = flat.test.round(-1)
    beside = judged_of(flat, lambda chapter: ap_others.judge_beside_vpt(chapter, "supervised", TWO))
    assert "at every block" in beside["ap.figure-a2.same-layer-preference"]
    assert (
        judged_of(turned, lambda chapter: ap_others.judge_beside_vpt(chapter, "supervised", TWO))
        == {}
    )


def test_blocks_are_whole_numbers_and_every_line_lies_within_the_axes():
    rows = single_blocks(ap=[62, 73, 75, 74, 75, 71, 71, 70, 66, 65, 58, 53])
    lines = {"Linear probe": 32.8, "NORM-TUNE": 76.0, "VP": 54.7, "Full fine-tuning": 78.0}
    others = [
        rows[rows.block == 0].assign(variant=name, block=None, test=test)
        for name, test in lines.items()
    ]
    fig = ap_others.block_grid(pd.concat([rows, *others]))
    assert len(fig.axes) == 2
    for ax in fig.axes:
        assert all(tick == round(tick) for tick in ax.get_xticks())
        (low, high), seen = ax.get_ylim(), [y for line in ax.lines for y in line.get_ydata()]
        room = (high - low) / 30  # of each line from the edges
        assert low + room < min(seen) == 32.8 and max(seen) == 78.0 < high - room
    plt.close(fig)


def test_the_lab_takes_ap_at_the_rate_of_its_block_or_variant_and_others_at_their_own():
    lab, rates = Lab(LabSettings()), block_rates("quick", True, 8)
    run = lambda **more: Run("vit_micro_patch4_24", "position", **{"method": "ap", **more})
    assert [
        lab.resolve(run(settings={"block": b})).recipe.learning_rate for b in range(8)
    ] == rates and len(set(rates)) > 1
    assert lab.resolve(run(settings={"block": 0}, rate=7.0)).recipe.learning_rate == 7
    assert (
        lab.resolve(run(settings={"block": 2, "kind": "product"})).recipe.learning_rate
        == ap_rates("quick", "by_variant")["product"]
    )
    assert (
        lab.resolve(run(settings={"block": [0, 1, 2]})).recipe.learning_rate
        == ap_rates("quick", "by_variant")["3 blocks"]
    )
    alone = lab.resolve(run(method="vpt-deep", settings={"block": 0})).recipe.learning_rate
    assert alone == lab.resolve(run(method="vpt-deep")).recipe.learning_rate
