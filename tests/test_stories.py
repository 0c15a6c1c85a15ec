"""How pages begin and end, names for readers, and what is said once."""

import nbformat
import numpy as np
import pandas as pd
import pytest
from sites import ROOT

from visbook.pages.friendly import friendly, signed
from visbook.site import chapters, claims, compare, edition, stories
from visbook.site.results import notebooks
from visbook.studies import mask_runs, statistics
from visprompt.errors import BadInput


def test_every_page_says_what_to_take_away_and_a_paper_s_first_page_tells_its_story():
    told = stories.told(ROOT)
    assert {*told} == {*notebooks(ROOT)}
    whole = {name for name, story in told.items() if story.paper}
    assert whole == {"ap", "davpt", "shallow_vit", "ivpt", "spt"}
    for name in whole:
        story = told[name]
        assert story.asks.endswith("?") and story.idea and story.picture and story.ours
        assert story.why


def test_a_number_rests_on_a_verdict_and_a_changed_one_asks_for_new_words():
    claim = "spt.figure-3.fewer-prompts"
    results = {"claims": {claim: {"verdict": "disagrees", "estimate": 4.0}}}
    with pytest.raises(BadInput, match=claim):
        stories.said([f"They are {{{claim}}} times fewer."], results)
    sentence = {"says": f"They are {{{claim}:-}} times fewer.", "rests": {claim: "disagrees"}}
    assert ">−4</a> times fewer." in stories.said([sentence], results)
    results["claims"][claim]["verdict"] = "agrees"
    assert "waits for new words" in stories.said([sentence], results)


def test_a_term_is_explained_where_it_is_used_first():
    shown = stories.explained("<p>After MAE. <a href='x'>FGVC</a>, FGVC. MAE.</p>")
    assert shown.count("glossary.html#term-MAE") == shown.count("term-FGVC") == 1
    assert shown.endswith("MAE.</p>")


def test_points_have_a_sign_that_is_true():
    told = {
        1.25001: "+1.3",
        -0.5: "−0.5",
        0.049: "+0.05",
        -0.02: "−0.02",
        -0.004: "+0.0",
        0: "+0.0",
    }
    assert {points: signed(points) for points in told} == told


def test_prompt_structures_differ_on_letters_alone():
    runs = pd.concat(map(compare.drawn_runs, ("ivpt-structures", "benchmark")))
    named = ["Vanilla CDC", "EXPRESS", "VPT-Deep", "ProVP"]
    means = runs[runs.variant.isin(named)].groupby(["task", "variant"]).test.mean().unstack()
    letters = means.loc["letters"]
    assert min(letters["Vanilla CDC"] - letters.EXPRESS, letters["VPT-Deep"] - letters.ProVP) > 10
    for name in ("EXPRESS", "ProVP", "Vanilla CDC"):
        assert statistics.gain(runs, name, "VPT-Deep").here[2] < 0
    for name in ("CDC", "iVPT"):
        assert statistics.gain(runs, name, "VPT-Deep").mean < 0
    near = means.loc[["position", "texture"]]
    assert (near.max(axis=1) - near.min(axis=1) < 2).all()


@pytest.mark.parametrize("weight", ["beta = 1", "lambda = 1"])
def test_larger_loss_weights_cost_most_with_mae(weight):
    runs = compare.drawn_runs("davpt-weights")
    means = runs.groupby(["backbone", "variant"]).test.mean().unstack()
    lost = means["beta = 0.1"] - means[weight]
    assert len(lost) == 3 and (lost > 0).all() and lost.max() > lost.sum() / 2
    assert lost.idxmax() == "vit_micro_patch4_24.mae_leaves"


def test_prompts_of_the_task_itself_help_on_one_task_and_cost_on_another():
    runs = compare.drawn_runs("spt-other-task")
    own = [row.record.settings["prepared_on"] == row.task for row in runs.itertuples()]
    means = runs.groupby(["backbone", "task", np.where(own, "own", "other")]).test.mean().unstack()
    lead = (means.own - means.other).unstack("task")
    mae = lead.loc["vit_micro_patch4_24.mae_leaves"]
    assert mae.position > 4 and (mae.drop("position").abs() < 1).all()
    assert mae.drop("position").sum() < 0  # all of it from one task
    supervised = lead.loc["vit_micro_patch4_24"]
    assert supervised.letters > 4 and supervised.position < -4
    assert supervised.flowers < -3 and abs(supervised.texture) < 0.5
    sources = runs.assign(of=[row.record.settings["prepared_on"] for row in runs.itertuples()])
    letters = sources[(sources.task == "letters") & (sources.backbone == "vit_micro_patch4_24")]
    assert letters.groupby("of").test.mean().nlargest(2).index.tolist() == ["position", "letters"]
    by_source = sources[sources.backbone == mae.name].groupby(["task", "of"]).test.mean().unstack()
    assert (by_source.position > by_source.max(axis=1) - 0.05).all()  # best, or tied


def test_tokens_of_the_first_block_fail_with_mae_alone_and_frozen_prompts_do_not_help_there():
    runs = compare.drawn_runs("spt-starts")
    means = runs.groupby(["backbone", "variant"]).test.mean().unstack()
    above = means.random - means["tokens of block 0"]
    assert above["vit_micro_patch4_24.mae_leaves"] > 10 and -3 < above["vit_micro_patch4_24"] < -1
    probe = compare.drawn_runs("pretraining").query("variant == 'Linear probe'")
    mae = probe[probe.task.isin(runs.task) & (probe.backbone == "vit_micro_patch4_24.mae_leaves")]
    frozen = means.filter(like="frozen").loc["vit_micro_patch4_24.mae_leaves"]
    assert len(mae) == 5 and frozen.max() < mae.test.mean() - 5


def test_clip_s_middle_blocks_suit_ap_best():
    runs = compare.drawn_runs("ap-layers-others")
    clip = runs[(runs.backbone == "vit_micro_patch4_24.clip") & runs.variant.str.startswith("ap,")]
    means = clip.groupby("variant").test.mean()
    assert set(means.nlargest(3).index) <= {f"ap, block {block}" for block in (2, 3, 4, 5)}


def test_express_trains_badly_on_letters_alone():
    runs = pd.concat(map(compare.drawn_runs, ("ivpt-structures", "benchmark")))
    means = runs[runs.backbone == "vit_micro_patch4_24"].groupby(["task", "variant"]).test.mean()
    lead = means.unstack()["CDC"] - means.unstack()["EXPRESS"]
    assert lead["letters"] > 10 and (lead[["position", "texture"]].abs() < 4).all()


def test_on_one_drawn_scene_ivpt_is_below_and_on_the_other_above():
    found = mask_runs.runs(
        mask_runs.MaskLab("quick"), mask_runs.mask_scope("quick"), range(5), compute=False
    )
    assert (found.groupby(["task", "variant"]).seed.nunique() == 5).all()
    means = found.groupby(["task", "variant"]).test.mean().unstack()
    for rival, task, side in (
        ("Linear probe", "scenes_shape", -1),
        ("BIAS", "scenes_shape", -1),
        ("BIAS", "scenes_fill", 1),
    ):
        _, low, high = statistics.gain(found[found.task == task], "iVPT", rival).here
        assert 0 < (low if side > 0 else -high)
    assert (means["DA-VPT"] < means["VPT-Deep"]).all()


def test_rank_50_is_below_rank_10_most_on_count():
    means = compare.drawn_runs("ap-ranks").groupby(["task", "variant"]).test.mean().unstack()
    below = means["rank 10"] - means["rank 50"]
    assert (below > 0).all() and below.idxmax() == "count"


def test_names_for_readers_stand_outside_of_code_and_addresses():
    shown = '<a href="vit_micro_patch4_24">vit_micro_patch4_24.mae_leaves; cifar100</a>'
    assert friendly(shown) == (
        '<a href="vit_micro_patch4_24">ViT-Micro (MAE, leaves); CIFAR-100</a>'
    )
    for kept in ("<code>vit_micro_patch4_24</code>", "vit_micro_patch4_24=FILE", "x/cifar100"):
        assert friendly(kept) == kept
    assert friendly("vit_tiny_patch16_224.augreg_in21k_ft_in1k.") == "ViT-Tiny."
    assert (
        friendly("-3.05 [-4.39, -.71, -0.0], 2026-11-27, 1e-12, 7.9e-03, 2e+08")
        == "−3.05 [−4.39, −.71, 0.0], 2026-11-27, 10⁻¹², 0.0079, 2 × 10⁸"
    )
    assert friendly("<code>x -1</code> $10^{-3}$ A-1") == "<code>x -1</code> $10^{-3}$ A-1"
    assert friendly("x < 0 gives -3.75 if y > 4") == "x < 0 gives −3.75 if y > 4"
    assert friendly(r"beta = 1, $\beta = 1.5$") == r"β = 1, $\beta = 1.5$"
    assert friendly(
        "t &gt;= eta^-1 (1-sigma)^(-2) P^2, v_3^T v_4, alpha_nd, beta=1, an alphabet"
    ) == ("t ≥ η⁻¹ (1−σ)⁻² P², v₃ᵀ v₄, α_nd, beta=1, an alphabet")


def test_what_the_glossary_says_is_not_said_below_every_claim():
    why = "Only the sign is judged: the sizes belong to the printed backbone and data. No number."
    assert claims.FORMS.sub("", why) == "No number."


def test_what_was_not_run_stands_in_one_place_but_a_section_without_more_says_why():
    box = '<div class="vp-notrun">not run Why. This would run it:<pre>make</pre></div>'
    cells = []
    for id in ("spt.table-2", "spt.table-3"):
        output = nbformat.v4.new_output("display_data", data={"text/html": box})
        cells.append(nbformat.v4.new_markdown_cell(f"({id})=\n## A table"))
        cells.append(nbformat.v4.new_code_cell("", outputs=[output]))
    notebook = nbformat.v4.new_notebook(cells=cells)
    shows = {"spt.table-2": {"shows": ["one"]}, "spt.table-3": {"shows": []}}
    taken = chapters.take_not_run(notebook, {"artifacts": shows})
    assert taken == [("spt.table-2", box), ("spt.table-3", box)]
    assert [len(cell.outputs) for cell in notebook.cells if cell.cell_type == "code"] == [0, 1]


@pytest.mark.parametrize("url, count", [("", 0), ("https://github.com/some/book/", 3)])
def test_one_setting_makes_all_links_to_the_repository(tmp_path, url, count):
    (tmp_path / "_config.yml").write_text(f"repository: {{url: '{url}'}}\n")
    (tmp_path / "CITATION.cff").write_text((ROOT / "CITATION.cff").read_text())
    assert edition.links("spt", tmp_path).count("<a ") == count
    assert edition.footer(tmp_path).count("<a ") == (2 if url else 0)
    assert ("url = " in edition.citation({}, tmp_path)) == bool(url)
    assert "year = {20" in edition.citation({}, tmp_path)
