"""Networks, data and loops of one's own."""

import importlib
import inspect
import json
import logging
import pkgutil
import socket
import sys
import warnings
from pathlib import Path

import pytest
import timm
import torch
from PIL import Image
from timm.models.resnet import ResNet
from timm.models.swin_transformer import SwinTransformer
from timm.models.vision_transformer import VisionTransformer

import visprompt as vp
from visprompt.data import image_cache, layouts
from visprompt.models.backbones import FAMILIES

VIT = {"img_size": 32, "embed_dim": 24, "depth": 2, "num_heads": 3}
# of each class, small networks that differ in what enters or leaves their blocks
SMALL = {
    "vit_tiny_patch16_224": VIT,
    "vit_base_patch16_siglip_224": VIT,  # an attention pool
    "vit_small_patch16_18x2_224": VIT,  # blocks that are not opened
    "vit_small_patch14_reg4_dinov2": {**VIT, "img_size": 28},
    "vit_base_patch16_clip_224": VIT,
    "deit3_small_patch16_224": VIT,
    "deit_tiny_patch16_224": {**VIT, "global_pool": "avg"},
    "deit_tiny_distilled_patch16_224": VIT,
    "swin_tiny_patch4_window7_224": {"embed_dim": 12, "depths": (1, 1, 2, 1), "img_size": 64},
    "resnet18d": {},
    "seresnet18": {},
    "ecaresnet26t": {},
}


def classes_below(kind: type) -> set[type]:
    return {kind}.union(*map(classes_below, kind.__subclasses__()))


def test_every_class_of_timms_that_is_accepted_is_held_against_it():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in pkgutil.iter_modules(timm.models.__path__):
            importlib.import_module(f"timm.models.{module.name}")
    found = {kind for family in FAMILIES.values() for kind in classes_below(family)}
    tried = {type(timm.create_model(name, **more)) for name, more in SMALL.items()}
    assert {kind for kind in found if kind.__module__.startswith("timm.")} == tried
    assert {VisionTransformer, ResNet, SwinTransformer} < tried


@pytest.mark.parametrize("name", SMALL)
def test_features_are_those_of_timm(name):
    torch.manual_seed(0)
    own = timm.create_model(name, **SMALL[name]).eval()
    backbone = vp.load_backbone(own, mean=(0.1, 0.2, 0.3))
    images = torch.randn(2, 3, backbone.image_size, backbone.image_size)
    with torch.no_grad():
        wanted = own.forward_head(own.forward_features(images), pre_logits=True)
        assert torch.allclose(backbone(images), wanted, atol=1e-5)
        assert torch.allclose(vp.build_method("vp", backbone, 2).below(images), images)
    assert backbone.name == name and backbone.mean == (0.1, 0.2, 0.3)
    assert next(own.parameters()).requires_grad and not next(backbone.parameters()).requires_grad


def test_a_network_of_ones_own_is_told_apart():
    torch.manual_seed(0)
    own = timm.create_model("vit_tiny_patch16_224", **VIT)
    others = [
        timm.create_model("vit_tiny_patch16_224", **VIT | more) for more in ({}, {"depth": 2})
    ]
    others.append(timm.create_model("vit_tiny_patch16_224", **VIT | {"num_heads": 4}))
    others[1].load_state_dict(own.state_dict())
    others[2].load_state_dict(own.state_dict())
    first, *rest = (vp.load_backbone(each, name="mine") for each in (own, *others))
    assert [each.fingerprint == first.fingerprint for each in rest] == [False, True, True]
    assert [each.architecture == first.architecture for each in rest] == [True, True, False]
    assert vp.load_backbone(own, image_size=48).image_size == 48


@pytest.mark.refused
@pytest.mark.parametrize(
    ("network", "given", "told"),
    [
        (torch.nn.Linear(2, 2), {}, "a Linear is no backbone.*Hugging Face's ViT, DINOv2 and CLIP"),
        (VisionTransformer(**VIT), {}, "name of a network of your own must be str"),
        (VisionTransformer(**VIT), {"name": "x", "weights": "pretrained"}, "leave weights out"),
        (VisionTransformer(**VIT), {"name": "x", "mean": (1, 2)}, "backbone's mean must be tuple"),
        ("resnet18", {"name": "x"}, "leave it out beside timm's name"),
    ],
)
def test_what_is_no_network_of_ones_own_is_one_line(network, given, told):
    with pytest.raises(vp.BadInput, match=told):
        vp.load_backbone(network, **given)


@pytest.mark.refused
def test_without_a_network_the_hub_is_asked_once(monkeypatch, caplog):
    asked = []

    def unreachable(address, timeout):
        asked.append(address)
        raise OSError("no route")

    monkeypatch.setattr(socket, "create_connection", unreachable)
    monkeypatch.setattr("urllib.request.getproxies", dict)
    with pytest.raises(vp.BadInput, match="Connect to the network, or give a file"):
        vp.load_backbone("vit_tiny_patch16_224.augreg_in21k", "pretrained")
    assert len(asked) == 1 and not caplog.records
    assert logging.root.manager.disable == 0


@pytest.fixture
def model(vit):
    return vp.build_method("ap", vit, 3)


QUICK = vp.Recipe(epochs=2, batch_size=8, learning_rate=0.01)


def test_a_callback_sees_each_epoch_and_can_end_the_training(model, task):
    plain, seen = vp.fit(model, task, QUICK), []
    assert vp.fit(model, task, QUICK, callback=lambda *each: seen.append(each))["right"]
    assert seen == [
        (epoch, {"loss": loss, "val": val})
        for epoch, (loss, val) in enumerate(zip(plain["loss"], plain["val_by_epoch"]), 1)
    ]
    short = vp.fit(model, task, QUICK, callback=lambda epoch, values: values["loss"] > 0)
    assert short["loss"] == plain["loss"][:1] and short["val"] == plain["val_by_epoch"][0]
    assert model.task["class_names"] == list(task.class_names)
    assert "training_loss" not in vars(model)


def test_a_loss_of_ones_own_stands_for_the_cross_entropy(model, task):
    plain = vp.fit(model, task, QUICK)["loss"]
    same = vp.fit(model, task, QUICK, loss=torch.nn.functional.cross_entropy)["loss"]
    smooth = vp.fit(model, task, QUICK, loss=torch.nn.CrossEntropyLoss(label_smoothing=0.5))["loss"]
    assert same == plain and smooth[0] > plain[0]


def test_after_a_loop_of_ones_own_a_model_is_evaluated_and_names_classes(model, task):
    found = vp.fit(model, task, QUICK)
    assert {vp.evaluate(model, task, split) for split in ("val",)} == {found["val"]}
    assert vp.evaluate(model, task) == found["test"]
    model.task = None
    vp.name_classes(model, task)
    pixels = task.test[0][0].permute(1, 2, 0).numpy()
    assert vp.predict(model, Image.fromarray(pixels))["class"][0] in task.class_names


def test_validation_chooses_among_rates_and_settings(vit, task):
    grid = {"learning_rate": [1e-9, 0.01, 1e30], "prompt_tokens": [1, 2]}
    tries, best = vp.search("vpt-deep", vit, task, grid, QUICK)
    assert len(tries) == 6 and tries.val.dropna().is_monotonic_decreasing
    assert tries[tries.learning_rate == 1e30].val.isna().all()
    assert best.method.settings.prompt_tokens == tries.prompt_tokens.iloc[0]
    assert vp.evaluate(best, task, "val") == tries.val.iloc[0]
    rates = vp.search("linear-probe", vit, task, recipe=QUICK)[0].head_rate
    assert sorted(rates) == pytest.approx([0.004, 0.02, 0.1])


@pytest.mark.refused
@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda model, task: vp.fit(model, task, callback=3), "callback must be .*Callable"),
        (lambda model, task: vp.evaluate(model, task, "tset"), "Did you mean 'test'"),
        (lambda model, task: vp.search("ap", model.source, task, {"rate": [1]}), "in the grid"),
        (
            lambda model, task: vp.search(
                "vpt-deep", model.source, task, {"learning_rate": [1e30]}
            ),
            "give lower learning rates",
        ),
        (lambda model, task: vp.export(model, "x.pt"), "ends in .pt2 or .onnx"),
    ],
)
def test_mistakes_of_ones_own_code_are_one_line(model, task, call, told):
    with pytest.raises(vp.BadInput, match=told):
        call(model, task)


@pytest.mark.parametrize("slug", ["vpt-deep", "lora", "full-finetune"])
def test_an_exported_graph_takes_pixels_and_knows_its_classes(vit, task, tmp_path, slug):
    model, found = vp.build_method(slug, vit, 3), {"visprompt.json": ""}
    vp.fit(model, task, QUICK)
    facts = vp.export(model, tmp_path / "x.pt2")
    graph = torch.export.load(tmp_path / "x.pt2", extra_files=found).module()
    assert json.loads(found["visprompt.json"]) == facts
    assert json.loads(facts["class_names"]) == list(task.class_names)
    for count in (1, 5):
        images = task.test[0][:count]
        wanted = model(vp.normalise(images, vit.mean, vit.std))
        assert torch.allclose(graph(images.float()), wanted, atol=1e-4)


def test_onnx_runtime_gives_the_same_logits(vit, task, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    model = vp.build_method("vpt-deep", vit, 3)
    vp.fit(model, task, QUICK)
    facts = vp.export(model, tmp_path / "x.onnx")
    session = runtime.InferenceSession(tmp_path / "x.onnx")
    assert session.get_modelmeta().custom_metadata_map == facts
    images = task.test[0][:5]
    (found,) = session.run(None, {session.get_inputs()[0].name: images.float().numpy()})
    wanted = model(vp.normalise(images, vit.mean, vit.std))
    assert torch.allclose(torch.tensor(found), wanted, atol=1e-4)


@pytest.mark.refused
@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("early_stopping", "Here vp.fit stops where its callback returns True"),
        ("loss", "Here vp.fit takes a loss"),
        ("seed", "Here vp.fit and vp.tune take a seed"),
        ("epoch", "Did you mean 'epochs'"),
        ("beam_width", r"'beam_width'\. Allowed"),
    ],
)
def test_a_far_name_is_not_suggested_and_another_place_is_told(field, told):
    with pytest.raises(vp.BadInput, match=told):
        vp.Recipe(**{field: 1})


def test_a_folder_is_found_as_the_official_archive_names_it(tmp_path):
    (tmp_path / "CUB_200_2011").mkdir()
    place = layouts.task_folder(tmp_path, "cub_200_2011", [])
    assert place == layouts.Place(tmp_path / "CUB_200_2011", "cub_200_2011")
    assert layouts.set_of("CUB_200_2011").layout == "birds"


# as archives unpack, as torchvision names its folders and classes, and as papers write
SPELLED = """
ADE20K CIFAR-10 CIFAR10 CIFAR-100 CIFAR100 CLEVR CUB_200_2011 Caltech-101 caltech-101 DMLab dSprites
DTD EuroSAT Flowers102 flowers-102 Food-101 food-101 GTSRB KITTI NABirds NWPU-RESISC45
oxford-iiit-pet OxfordIIITPet PCam PatchCamelyon RESISC45 smallNORB StanfordCars StanfordDogs SUN397
SVHN UCF101 Waterbirds iNaturalist2018 ImageNet
""".split()


@pytest.mark.parametrize("folder", SPELLED)
def test_a_folder_may_be_spelled_as_others_spell_it(tmp_path, folder):
    dataset = layouts.set_of(folder)
    (tmp_path / folder).mkdir()
    for task in dataset.tasks:
        if task != folder:
            place = layouts.task_folder(tmp_path, task, [])
            assert place == layouts.Place(tmp_path / folder, task)


def mapped(images: torch.Tensor) -> str:
    """What lies at a tensor's place in memory: the path of a mapped file, or ""."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, end = (int(place, 16) for place in line.split()[0].split("-"))
        if start <= images.data_ptr() < end:
            return " ".join(line.split()[5:])
    raise AssertionError("no such place")


@pytest.mark.skipif(sys.platform != "linux", reason="another system tells its maps otherwise")
def test_many_pictures_of_ones_own_data_set_are_not_held_in_memory(monkeypatch, tmp_path):
    pixels = torch.arange(30 * 8 * 8 * 3).remainder(251).to(torch.uint8).view(30, 8, 8, 3).numpy()
    data = [(Image.fromarray(one), number % 3) for number, one in enumerate(pixels)]
    given = {"train": data, "test": data[:6], "image_size": 8}
    plain = vp.make_task("many", **given)
    monkeypatch.setenv("VISPROMPT_CACHE", str(tmp_path))
    monkeypatch.setattr(image_cache, "SMALL", 0)
    task = vp.make_task("many", **given)
    for part in ("train", "val", "test"):
        images, labels = getattr(task, part)
        assert mapped(images).startswith(str(tmp_path))
        assert not mapped(getattr(plain, part)[0]).startswith(str(tmp_path))
        assert torch.equal(images, getattr(plain, part)[0])
        assert torch.equal(labels, getattr(plain, part)[1])
    assert task.fingerprint == plain.fingerprint and not [*tmp_path.iterdir()]
    monkeypatch.setenv("VISPROMPT_CACHE", "none")
    assert not mapped(vp.make_task("many", **given).train[0]).startswith(str(tmp_path))
    (tmp_path / "file").touch()
    monkeypatch.setenv("VISPROMPT_CACHE", str(tmp_path / "file"))
    with pytest.raises(vp.BadInput, match="cannot hold images .*name another folder"):
        vp.make_task("many", **given)


def test_help_names_every_argument():
    told = {name: inspect.signature(getattr(vp, name)).parameters for name in ("fit", "tune")}
    assert {"callback", "loss", "cache", "watch"} <= {*told["fit"]}
    assert "see `backbones." not in vp.load_backbone.__doc__
