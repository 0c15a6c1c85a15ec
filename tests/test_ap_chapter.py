"""AP's pages: what they run and what they look up, what their tables hold, and when they do not
judge."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch

import visprompt as vp
from visbook.chapters import ap, ap_blocks, ap_layers, ap_others, ap_peft, real
from visbook.chapters.ap import vp_from_layer_0
from visbook.chapters.ap_layers import dissect
from visbook.chapters.chapter import Chapter
from visbook.chapters.parameters import ChapterParameters
from visbook.pages.page import Page
from visbook.studies.ap_rates import ap_rates, block_rates
from visbook.studies.case import Run
from visbook.studies.lab import Lab, LabSettings
from visprompt import paths

TWO = ["position", "count"]


def chapter_of(name, *own, **given):
    """A chapter of AP with made-up or no runs."""
    p = ChapterParameters(**given)
    return Chapter(Page(name, p), p, own, ap.METHODS, own)


def made_up(**accuracies):
    """Rows of a study on one task: variant -> accuracies, one a seed."""
    rows = [
        {"variant": variant, "seed": seed, "test": test, "record": f"{variant} {seed}"}
        for variant, tests in accuracies.items()
        for seed, test in enumerate(tests)
    ]
    return pd.DataFrame(rows).assign(
        backbone="vit_micro_patch4_24", task="position", train_size=800, method="ap", parameters=3
    )


@pytest.mark.parametrize(("tests", "cell"), [([50.0], "50.0"), ([50.0, 60.0], "55.0 ± 7.1")])
def test_one_seed_has_no_deviation_in_the_tables_of_ap(monkeypatch, tests, cell):
    rows, tables = made_up(AP=tests), []
    assert ap.table(rows).loc[0, "position"] == cell
    chapter = chapter_of("ap_layers", "ap-forms")
    monkeypatch.setattr(chapter, "planned", lambda artifact: rows)
    monkeypatch.setattr(chapter, "show", lambda _, table, *__: tables.append(table))
    ap_layers.show_forms(chapter, "ap.table-a3", {})
    assert tables[0].loc[0, "test accuracy, %"] == cell


def test_a_small_network_is_not_held_against_norm_tune(monkeypatch):
    chapter, rows = chapter_of("ap", "ap-full"), made_up(AP=[50.0], **{"NORM-TUNE": [60.0]})
    why = {}
    monkeypatch.setattr(chapter.page, "not_judged", lambda *said: why.update([said]))
    claim = "ap.table-1.vit-ap-over-norm"
    ap.judge_over_norm(chapter, claim, "vit_micro_patch4_24", rows, on=["position"])
    assert "is smaller still" in why[claim]


def test_numbers_of_images_are_shares_of_the_tasks_largest():
    rows = pd.concat([made_up(AP=[50.0]).assign(train_size=n) for n in (160, 800)])
    assert list(ap.with_share(rows).share) == [20, 100]


@pytest.mark.parametrize(
    ("sizes", "few"),
    [([80, 160, 320, 800], [80, 160]), ([250, 500, 1000, 2000, 2944], [250, 500, 1000])],
)
def test_few_images_are_the_smaller_half_of_the_numbers(sizes, few):
    rows = pd.DataFrame({"train_size": sizes})
    assert list(ap_layers.fewest(rows).train_size) == few


def test_from_nothing_the_pages_of_ap_run_the_vit_on_one_task_and_look_up_the_rest(monkeypatch):
    done = []

    def study(name, scope, lab, *, seeds=(), kept_seeds=(), **_):
        found = pd.DataFrame()
        found.attrs["left_out"] = {}
        if seeds:
            done.append((name, scope.only_tasks, {*scope.backbones.values()}, tuple(seeds)))
        return found

    monkeypatch.setattr("visbook.studies.grids.study", study)
    assert len(chapter_of("ap", "ap-full", "ap-few").rows("ap-full")) == 0
    assert done == [
        (name, ("position",), {"vit_micro_patch4_24"}, (0,)) for name in ("ap-full", "ap-few")
    ]


def test_a_backbone_of_ones_own_plays_the_vit_or_the_resnet():
    for name, part in {"resnet_micro_24": "ap-resnet", "vit_nano_patch4_24": "ap-vit"}.items():
        found = chapter_of("ap", "ap-full", backbone=name).scope.backbones
        assert found == {"supervised": name, part: name}


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
    chapter.photographs = pd.DataFrame()
    chapter.page.judge = lambda claim, *values, **_: found.update({claim: values})
    chapter.page.not_judged = lambda claim, why: found.update({claim: why})
    judge(chapter)
    return found


def test_a_vit_is_judged_by_photographs_at_every_block_and_one_claim_is_enough(monkeypatch):
    seen = single_blocks(ap=[60] * 4 + [50] * 8).replace({"position": "dtd10", "count": "gtsrb"})
    monkeypatch.setattr(real, "photographs", lambda **_: seen)
    drawn, found = single_blocks(ap=[50] * 4 + [60] * 4), {}
    chapter = chapter_of("ap_layers", "ap-layers")
    chapter.frames = {"ap-layers": drawn}
    chapter.photographs = seen
    chapter.page.judge = lambda claim, *values, note, **_: found.update({claim: (*values, note)})
    chapter.page.not_judged = lambda claim, why: found.update({claim: why})
    for claim, part, same in (
        ("ap.figure-4.vit-prefers-shallow", "ap-vit", ""),
        ("ap.figure-a1.vit-prefers-shallow", "ap-vit", "Figure 4"),
    ):
        ap_blocks.judge_preference(chapter, claim, part, TWO, judged=same)
    mean, *_, note = found["ap.figure-4.vit-prefers-shallow"]
    assert mean == pytest.approx(-10) and "GTSRB −10.0 (on embedded tasks +10.0" in note
    assert "judge Figure 4" in found["ap.figure-a1.vit-prefers-shallow"]
    monkeypatch.setattr(real, "photographs", lambda **_: seen[seen.block < 7])
    ap_blocks.judge_preference(chapter, "ap.figure-4.vit-prefers-shallow", "ap-vit", TWO)
    assert found["ap.figure-4.vit-prefers-shallow"][0] == pytest.approx(10)


def test_what_is_said_of_ap_at_every_block_on_photographs():
    lead = ap_blocks.deep_lead(ap_blocks.on_photographs())
    assert lead["gtsrb"].max() < 0 < lead["dtd10"].min()
    text = (paths.ROOT / "book" / "stories.yaml").read_text(encoding="utf-8")
    assert text.count("better than deep ones on traffic signs and worse on textures") == 2


def test_blocks_are_judged_by_their_outer_thirds_and_only_when_all_tasks_have_them():
    rows = single_blocks(**{"ap": [50] * 4 + [60] * 4, "vpt-deep": [45] * 4 + [50] * 4})
    prefers = lambda chapter: ap_blocks.judge_preference(
        chapter, "ap.figure-a1.vit-prefers-shallow", "ap-vit", TWO
    )
    (mean, low, high) = judged_of(rows, prefers)["ap.figure-a1.vit-prefers-shallow"]
    assert mean == pytest.approx(10) and low <= mean <= high
    turned = single_blocks(ap=[60] * 4 + [50] * 4)
    assert judged_of(turned, prefers)["ap.figure-a1.vit-prefers-shallow"][0] == pytest.approx(-10)
    assert judged_of(rows[rows.block < 7], prefers) == {}  # half of the blocks have other thirds
    lacking = rows[(rows.task == "position") | (rows.block < 5)]
    assert "count" in judged_of(lacking, prefers)["ap.figure-a1.vit-prefers-shallow"]
    beside = judged_of(rows, lambda chapter: ap_others.judge_beside_vpt(chapter, "ap-vit", TWO))
    assert beside["ap.figure-a2.ap-over-vpt"][0] == pytest.approx(7.5)
    assert beside["ap.figure-a2.same-layer-preference"][0] > 0.8
    flat = single_blocks(**{"ap": [50] * 8, "vpt-deep": [45] * 8})
    flat["test"] = flat.test.round(-1)
    beside = judged_of(flat, lambda chapter: ap_others.judge_beside_vpt(chapter, "ap-vit", TWO))
    assert "at every block" in beside["ap.figure-a2.same-layer-preference"]
    assert (
        judged_of(turned, lambda chapter: ap_others.judge_beside_vpt(chapter, "ap-vit", TWO)) == {}
    )


def test_blocks_are_whole_numbers_and_every_line_lies_within_the_axes():
    rows = single_blocks(ap=[62, 73, 75, 74, 75, 71, 71, 70, 66, 65, 58, 53])
    lines = {"Linear probe": 32.8, "NORM-TUNE": 76.0, "VP": 54.7, "Full fine-tuning": 78.0}
    others = [
        rows[rows.block == 0].assign(variant=name, block=None, test=test)
        for name, test in lines.items()
    ]
    fig = ap_blocks.block_grid(pd.concat([rows, *others]))
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


def test_one_rule_of_rounding_for_a_range_of_gains():
    # 0.5 rounds to 1, 6.9 is cut off to 6; 7 and below 0.5 are neither
    assert ap.outside([0.5, 6.9, 3], 1, 6) == 0
    assert ap.outside([-0.78, 0.49, 7], 1, 6) == 3
    assert ap.outside([8.02, 6.62, 7.25], 7, 9) == 0


def test_the_drop_to_vpt_deep_is_averaged_in_both_ways():
    one = pd.Series({"FGVC": 10.0, "Natural": 0.0, "Specialized": 19.0, "Structured": 0.0})
    assert ap_peft.drops_to_deep(one) == (7.25, 4)
