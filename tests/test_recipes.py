"""The papers' recipes: whole, sourced, one budget for all methods, and what they say of pictures
and checkpoints."""

import re
from dataclasses import replace

import pytest
import torch
from conftest import small_vit

import visprompt as vp
from visbook.chapters import released_pairs
from visbook.pages import recipe_words
from visbook.site import recipe_pages
from visbook.studies import grids, plan, roles, sweeps
from visbook.studies.case import Run, Usual
from visbook.studies.lab import Lab, LabSettings
from visbook.studies.rates import below
from visprompt import BadInput, manifests, papers, paths
from visprompt.data.joining import JOINED, joined
from visprompt.methods import METHODS, da_vpt, released, settings_of
from visprompt.models import embedded, loading
from visprompt.training.protocol import FACTORS, protocol, tries
from visprompt.training.recipe import Recipe, load_recipe
from visprompt.training.recipe_files import SAID

RECIPES = manifests.load_yaml(paths.MANIFESTS / "recipes.yaml")
PAPERS = [name for name in RECIPES if name not in ("quick", "real")]
SHORT = {  # where the table's name of a set begins otherwise than the task's
    "smallnorb_azimuth": "norb",
    "smallnorb_elevation": "norb",
    "oxford_flowers": "flowers",
    "stanford_dogs": "dogs",
    "stanford_cars": "cars",
}
MICRO = "vit_micro_patch4_24"


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("kind", ["vit", "resnet"])
def test_a_recipe_loads_for_every_method_that_it_lists(name, kind):
    listed = RECIPES[name].get(kind, {})
    for slug in METHODS if "other" in listed else listed:
        recipe = load_recipe(name, slug, kind == "vit")
        assert recipe.learning_rate or recipe.head_rate


@pytest.mark.parametrize("name", PAPERS)
def test_every_field_has_its_source(name):
    entry, own = RECIPES[name], protocol(name)
    named = [
        entry["common"],
        *own.groups.values(),
        *entry["vit"].values(),
        *entry.get("resnet", {}).values(),
    ]
    assert {field for part in named for field in part} | {"selection", "seeds"} <= set(own.sources)
    assert {"statistics", "checkpoints", "per_task"} & set(entry) <= set(own.sources)


@pytest.mark.parametrize("name", RECIPES)
def test_a_search_tries_as_much_for_every_method(name):
    for search, budget in protocol(name).budget.items():
        lab = Lab(LabSettings(recipe=name, search=search))
        slugs = METHODS if "other" in RECIPES[name]["vit"] else RECIPES[name]["vit"]
        for slug in slugs:
            cells = lab.trials(Run(MICRO, "position", slug))
            assert len({repr(cell) for cell in cells}) == len(cells) == budget
            assert all(cell.trial and lab.resolve(cell).recipe for cell in cells)


def test_the_search_of_ours_is_three_rates_with_the_recipes_own_first():
    recipe = Recipe(learning_rate=0.1, head_rate=None)
    rates = [
        change["learning_rate"]
        for change in tries({"factors": list(FACTORS)}, recipe, "learning_rate")
    ]
    assert rates == [0.1, 0.1 * 0.2, 0.5]
    # a head without a rate has the method's
    assert tries({"factors": [1.0]}, recipe, "head_rate") == [{"head_rate": 0.1}]


def test_vpts_grid_is_of_256_images_a_step_and_takes_the_smallest_of_equals():
    grid, recipe = protocol("vpt").search("printed"), load_recipe("vpt", "vpt-deep", True)
    found = tries(grid, recipe, "learning_rate")
    assert len(found) == 40 and found[0] == {"learning_rate": 0.05 * 64 / 256, "weight_decay": 0.01}
    assert {change["weight_decay"] for change in found} == {0.01, 0.001, 0.0001, 0.0}
    assert max(change["learning_rate"] for change in found) == 50 * 64 / 256


def test_the_tokens_of_a_task_are_those_that_ivpt_prints():
    own, told = protocol("ivpt").per_task["ivpt"], []
    for table in ("ivpt.table-16", "ivpt.table-15"):
        n, k = (
            row
            for _, row in papers.published(table)
            .drop(columns=["hyper_parameter", "doubt"])
            .iterrows()
        )
        told += [(name, int(n[name]), int(k[name])) for name in n.index]
    assert [(given["prompt_tokens"], given["salient_tokens"]) for given in own.values()] == [
        (n, k) for _, n, k in told
    ]
    vtab = grids.scope_of("paper").tasks["vtab"]
    assert set(own) == {*vtab, *grids.scope_of("paper").tasks["fine"]}
    assert [name.lower()[:3] for name, _, _ in told] == [SHORT.get(task, task)[:3] for task in own]


def test_a_profiles_number_of_tokens_gives_way_to_the_tasks_own_and_an_explicit_one_does_not():
    lab, scope = Lab(LabSettings(recipe="ivpt")), roles.recipe_scope("ivpt", "paper")
    usual = Run(MICRO, "svhn", "ivpt", settings={"prompt_tokens": scope.prompts["deep"]})
    assert lab.resolve(usual).settings == {"prompt_tokens": 50, "salient_tokens": 20}
    assert lab.resolve(replace(usual, settings={"prompt_tokens": 20})).settings == {
        "prompt_tokens": 20
    }
    assert lab.resolve(replace(usual, method="vpt-deep")).settings == {"prompt_tokens": 20}
    assert repr(usual) == repr(replace(usual, settings={"prompt_tokens": 20}))


RELEASED = [  # a few of the 61 released configurations
    ("supervised", "cifar100", {"guided_from": 3, "guided_tokens": 20, "beta": 1.0}, (0.005, 20.0)),
    ("supervised", "clevr_distance", {"guided_tokens": 5, "temperature": 1 / 160}, (0.00005, 0.5)),
    ("supervised", "stanford_cars", {"margin": 0.1 / 60, "prompt_tokens": 80}, (0.001, 3.0)),
    ("supervised", "pets", {"beta": 0.0, "lambda_": 0.0}, (0.001, 5.0)),
    ("mae", "patch_camelyon", {"guided_tokens": 2, "prompt_tokens": 5}, (0.0001, 0.5)),
    ("mocov3", "dsprites_label_orientation", {"lambda_": 0.01}, (0.001, 0.01)),
]


def of_task(part, task, method="da-vpt-plus", **settings):
    """The case of DA-VPT under its own recipe, with a usual number of prompts and some settings."""
    scope = roles.recipe_scope("davpt", "paper")
    given = {"prompt_tokens": scope.prompts["deep"], **settings}
    return plan.lab_of("davpt").resolve(Run(scope.backbones[part], task, method, settings=given))


@pytest.mark.parametrize("part, task, settings, rates", RELEASED)
def test_a_task_has_the_numbers_of_its_released_configuration(part, task, settings, rates):
    case = of_task(part, task)
    assert {name: pytest.approx(case.settings[name]) for name in settings} == settings
    assert (case.recipe.learning_rate, case.recipe.head_decay) == rates
    assert case.recipe.batches == "by class" and case.recipe.clip == 10.0 and case.stated
    (only,) = case.lab.trials(case.run)
    assert only == replace(case.run, trial=True)


def test_released_configurations_are_those_of_21_tasks():
    own, scope = protocol("davpt"), grids.scope_of("paper")
    every = {*scope.tasks["vtab"], *scope.tasks["fine"]}
    lacking = {
        part: every - {*own.tasks_of("da-vpt")[part]} for part in ("supervised", "mae", "mocov3")
    }
    none = {"kitti", "sun397", "svhn"}
    assert lacking == {
        "supervised": none,
        "mae": none | {"pets"},
        "mocov3": none | {"retinopathy"},
    }
    assert own.tasks_of("da-vpt-plus").keys() == lacking.keys()
    for part, task in (("mae", "pets"), ("larger", "cifar100")):
        case = of_task(part, task)
        assert not case.stated and len(case.lab.trials(case.run)) == 3
    assert of_task("mae", "cub_200_2011").settings["class_token"] is False


def test_what_a_run_sets_itself_stands_above_the_tasks_own():
    """Such as a weight of an ablation; a run without a usual number of prompts has none of it."""
    case = of_task("supervised", "cub_200_2011", beta=10.0, guided_from=4)
    assert case.settings["beta"] == 10.0 and case.settings["guided_from"] == 4
    assert case.settings["lambda_"] == 0.05 and case.recipe.learning_rate == 0.0005
    assert not of_task("supervised", "cub_200_2011", prompt_tokens=10).stated


def test_checkpoints_are_the_papers_in_the_paper_profile_alone():
    name = "vit_base_patch16_224"
    assert roles.recipe_scope("spt", "paper").backbones["supervised"] == f"{name}.augreg_in21k"
    assert roles.recipe_scope("ivpt", "paper").backbones["supervised"] == f"{name}.orig_in21k"
    own = roles.recipe_scope("spt", "paper", backbone="resnet50").backbones
    assert own == dict.fromkeys(("supervised", "ap-resnet"), "resnet50")
    assert roles.recipe_scope("spt", "quick").backbones["supervised"] == MICRO


def test_every_backbone_of_a_study_is_described_and_mae_pools_patches():
    known = {**embedded.published(), **embedded.from_files()}
    given = manifests.load_yaml(paths.MANIFESTS / "studies.yaml")["profiles"]
    asked = {name for profile in ("paper", "real") for name in given[profile]["backbones"].values()}
    assert asked <= {*known}
    assert all(known[name].get("pooling") == "patches" for name in known if name.endswith(".mae"))
    assert vp.load_backbone("vit_huge_patch14_224.mae", device="meta").model.global_pool == "avg"


def test_all_structures_of_a_table_have_its_number_of_prompts():
    lab = Lab(LabSettings(recipe="ivpt", profile="paper"))
    usual = {"prompt_tokens": Usual(20)}
    for method in ("ivpt", "cdc", "provp", "express"):
        assert (
            lab.resolve(
                Run("vit_base_patch16_224", "smallnorb_elevation", method, settings=usual)
            ).settings["prompt_tokens"]
            == 200
        )


def test_joined_splits_are_train_and_val_in_this_order():
    task = vp.load_task("position")
    both = joined(task)
    assert len(both.train[1]) == 1000 and torch.equal(both.train[0][:800], task.train[0])
    assert torch.equal(both.train[1][800:], task.val[1]) and torch.equal(both.val[0], task.val[0])
    assert torch.equal(both.test[0], task.test[0]) and both.fingerprint != task.fingerprint


def test_final_runs_are_trained_on_both_splits_and_tries_on_train(stores, monkeypatch):
    lab = Lab(LabSettings(recipe="spt", changes={"epochs": 1}, profile="paper"))
    run = Run(MICRO, "position", "linear-probe")
    (best,) = sweeps.at_best_rates([run], lab, compute=True)
    assert best.rate and not best.trial and lab.resolve(best).joined
    final = lab.do(best)
    assert final.settings["train_size"] == 1000 and final.about["trained_on"] == JOINED
    assert final.about["sources"]["trained_on"].startswith("SPT Table S1")
    tried = [lab.do(trial, compute=False) for trial in lab.trials(run)]
    assert {record.settings["train_size"] for record in tried} == {800} and not any(
        "trained_on" in r.about for r in tried
    )
    assert lab.do(best, compute=False) == final == lab.do(best)
    row = sweeps.row_of(best, final)
    # no accuracy on what was trained on
    assert row["val"] != row["val"] and row["train_size"] == 1000
    # fine-grained sets keep their val apart
    assert not lab.resolve(Run(MICRO, "flowers", "linear-probe")).joined
    assert (
        not lab.resolve(replace(run, train_size=400)).joined
        and not Lab(LabSettings()).resolve(run).joined
    )


def test_the_quick_profiles_records_hold_nothing_new(stores):
    record = Lab(LabSettings(changes={"epochs": 1})).do(Run(MICRO, "position", "linear-probe"))
    assert not {"trained_on", "sources"} & set(record.about)
    assert record.settings["train_size"] == 800


def test_what_a_search_chose_beside_the_rate_goes_with_the_final_runs(stores, monkeypatch):
    lab = Lab(LabSettings(recipe="spt", search="released", changes={"epochs": 1}))
    real = lab.do

    def do(run, compute=True):
        record = real(run, compute)
        if record is not None and run.trial:
            record.values["val"] = (
                90.0 if run.changes["head_decay"] == 3.0 and run.rate == 0.001 else 10.0
            )
        return record

    monkeypatch.setattr(lab, "do", do)
    (best,) = sweeps.at_best_rates([Run(MICRO, "position", "linear-probe")], lab, compute=True)
    assert (best.rate, best.changes) == (0.001, {"head_decay": 3.0}) and lab.resolve(
        best
    ).recipe.head_decay == 3.0


def test_structured_tasks_are_neither_cropped_nor_flipped():
    for name in PAPERS:
        lab = Lab(LabSettings(recipe=name))
        assert lab.resolve(Run(MICRO, "position", "vpt-deep")).recipe.augmentation == "none"
        centre = "direct-centre-bicubic"
        how = {"spt": centre, "davpt": centre, "vpt": "direct-aliased"}
        assert protocol(name).resize("structured") == how.get(name, "direct")
    assert (
        Lab(LabSettings(recipe="ivpt"))
        .resolve(Run(MICRO, "letters", "vpt-deep"))
        .recipe.augmentation
        == "place in the original and flip"
    )
    assert (protocol("ivpt").resize("natural"), protocol("spt").resize("fine")) == (
        "crop",
        "crop-bicubic",
    )


@pytest.mark.parametrize(
    "name, weights",
    [("vit_base_patch16_224.mae", "patches"), ("vit_large_patch16_224.mae", "patches")],
)
def test_masked_autoencoders_pool_their_patches(name, weights):
    backbone = vp.load_backbone(name, device="meta")
    assert not backbone.pools_class_token and backbone.model.global_pool == "avg"
    assert backbone.architecture == {"pooling": "mean of the patches"}
    assert vp.load_backbone("vit_base_patch16_224", device="meta").pools_class_token


def test_pooled_patches_are_their_mean_behind_the_norm():
    backbone, x = small_vit(), torch.randn(2, 3, 16, 16)
    tokens = backbone.model.norm(backbone.run(backbone.stem(x), stop=backbone.depth - 1))
    loading.pool_patches(backbone)
    whole = backbone.model.norm(backbone.run(backbone.stem(x)))
    torch.testing.assert_close(backbone(x), whole[:, 1:].mean(1))
    assert whole.shape == tokens.shape


def test_statistics_are_the_recipes_but_for_embedded_networks():
    name = "vit_tiny_patch16_224.augreg_in21k"
    assert vp.load_backbone(name, device="meta").mean == (0.5, 0.5, 0.5)
    assert vp.load_backbone(name, device="meta", statistics="imagenet").mean == (
        0.485,
        0.456,
        0.406,
    )
    assert vp.load_backbone(MICRO, "pretrained", statistics="imagenet").mean == (0.5, 0.5, 0.5)
    with pytest.raises(BadInput, match="Did you mean 'imagenet'"):
        vp.load_backbone(name, device="meta", statistics="imagenett")


def test_positions_of_another_size_keep_their_name_until_weights_change():
    name = "vit_tiny_patch16_224.augreg_in21k"
    whole, small = vp.load_backbone(name), vp.load_backbone(name, image_size=112)
    assert small.image_size == 112 and small.fingerprint == whole.fingerprint
    assert small.shapes()[0] == (1 + 7 * 7, 192) and small(torch.zeros(1, 3, 112, 112)).shape == (
        1,
        192,
    )
    # the class token's is its own
    torch.testing.assert_close(small.model.pos_embed[:, :1], whole.model.pos_embed[:, :1])
    middle = whole.model.pos_embed[:, 1:].mean(1)
    torch.testing.assert_close(small.model.pos_embed[:, 1:].mean(1), middle, atol=0.02, rtol=0)
    with torch.no_grad():
        small.model.pos_embed[0, 0, 0] += 1
    assert small.fingerprint != whole.fingerprint
    assert vp.load_backbone(name, device="meta", image_size=224).image_size == 224


@pytest.mark.refused
@pytest.mark.parametrize(
    ("name", "size", "said"),
    [
        ("vit_tiny_patch16_224", 100, "patches of 16 pixels do not fill images of 100; give 96"),
        ("resnet18", 64, "leave the image size out"),
    ],
)
def test_an_image_size_that_a_backbone_cannot_take(name, size, said):
    with pytest.raises(BadInput, match=said):
        vp.load_backbone(name, device="meta", image_size=size)


def test_real_photographs_have_a_cast_and_a_recipe_of_their_own():
    scope = roles.recipe_scope("real", "real")
    runs = [run for _, run, _ in grids.cells("real", scope)]
    assert len(runs) == 18 * 5 and len({run.method for run in runs}) == 18
    assert protocol("real").pixels == 112 and not grids.cells(
        "real", roles.recipe_scope("quick", "quick")
    )


@pytest.mark.refused
def test_an_unknown_recipe_or_search_names_the_nearest():
    with pytest.raises(BadInput, match="unknown recipe 'sptt'. Did you mean 'spt'"):
        protocol("sptt")
    with pytest.raises(
        BadInput, match="unknown search of recipe vpt 'printd'. Did you mean 'printed'"
    ):
        protocol("vpt").search("printd")
    with pytest.raises(BadInput, match="Allowed: ours"):
        protocol("ivpt").search("printed")


DIFFERENCES = [
    (slug, entry)
    for slug, entries in manifests.load_yaml(paths.MANIFESTS / "differences.yaml").items()
    for entry in entries
]


@pytest.mark.parametrize(
    "slug, entry", DIFFERENCES, ids=lambda part: part if isinstance(part, str) else part["what"]
)
def test_an_option_that_is_named_exists_and_is_not_the_default(slug, entry):
    option = dict(entry.get("option", {}))
    recipe = option.pop("recipe", {})
    assert (not option) or settings_of(slug, **option) != settings_of(slug)
    assert (not recipe) or Recipe(**recipe) != Recipe()
    assert bool(recipe.get("as_released")) == bool(
        released.named(slug, recipe.get("as_released", ""))
    )


def test_every_option_has_a_run_with_it_and_one_without():
    found = grids.cells(released_pairs.STUDY, roles.recipe_scope("quick", "quick"), 1)
    runs = {(variant, run.backbone): run for variant, run, rate_of in found if rate_of == "none"}
    options = [(slug, entry) for slug, entry in DIFFERENCES if "option" in entry]
    for slug, entry in options:
        part = {"mae": f"{MICRO}.mae_leaves"}.get(entry.get("backbone"), MICRO)
        off, on = (runs[variant, part] for variant in grids.pair(slug, entry))
        assert off.rate is on.rate is None and off.settings == {} and off.method == on.method
        option = dict(entry["option"])
        assert on.changes == off.changes | option.pop("recipe", {})
        assert on.settings == {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in option.items()
        }
    assert len({grids.pair(slug, entry)[1] for slug, entry in options}) == len(options)


def test_longer_proxies_are_a_lower_temperature_and_margin():
    similarity = torch.rand(4, 9, dtype=torch.float64) * 2 - 1
    positive = torch.rand(4, 9) < 0.3
    given = next(
        e["option"]
        for slug, e in DIFFERENCES
        if slug == "da-vpt" and "temperature" in e.get("option", {})
    )
    code = da_vpt.proxy_anchor(5 * similarity, positive, 0.1, 1 / 32)
    torch.testing.assert_close(da_vpt.proxy_anchor(similarity, positive, **given), code)


def test_the_pages_are_made_from_the_manifests():
    page = recipe_pages.recipes({}, paths.ROOT)
    for name in PAPERS:
        for text in [*protocol(name).sources.values(), *protocol(name).lacking]:
            assert recipe_pages.html.escape(text) in page
    shown = recipe_pages.differences({}, paths.ROOT)
    assert all(recipe_pages.html.escape(entry["code"]) in shown for _, entry in DIFFERENCES)


def test_the_page_on_recipes_says_what_every_field_is_and_what_an_empty_one_means():
    text = (paths.ROOT / "book" / "recipes.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    assert sorted(re.findall("`(.+?)`", " ".join(rows))) == sorted(SAID)
    entry = RECIPES["real"]
    assert recipe_words.values("pixels", entry, protocol("real")) == ["112"]
    for field in SAID:
        assert all(recipe_words.values(field, entry, protocol("real"))), field
    found = {name: recipe_words.word(None, name) for name in ("clip", "head_decay", "pixels")}
    assert found == dict(
        clip="none", head_decay="as for the other weights", pixels="the checkpoint's"
    )


def test_a_rate_that_was_taken_says_what_it_lacks():
    tried = {0.1: 90.0, 0.3: 91.5}
    assert (below(tried, 0.1), below(tried, 0.3), below(tried, 1.0)) == ("1.5", "0.0", "–")
    assert below({0.1: 90.0}, 0.1) == "–"  # nothing else was tried
