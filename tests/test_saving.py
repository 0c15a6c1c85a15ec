"""A tuned method is a small file that fits one backbone."""

import pytest
import torch
from conftest import carries, small_vit, tiny_task
from safetensors.torch import save_file
from test_definitions import images_of, randomised

import visprompt as vp
from visprompt.backbones import FAMILIES
from visprompt.tuning import Recipe, fit


CARRIED = [(slug, family) for slug in vp.METHODS for family in FAMILIES if carries(slug, family)]


@pytest.mark.parametrize(("slug", "family"), CARRIED)
def test_a_saved_method_gives_the_same_logits(slug, family, request, tmp_path):
    backbone = request.getfixturevalue(family)
    chosen = {"ar": "none"} if (slug, family) == ("ivpt", "swin") else {}
    model = vp.build_method(slug, backbone, 3, **chosen)
    if family == "vit":
        fit(model, tiny_task(), Recipe(epochs=1, batch_size=8), seed=3)
    else:
        randomised(model)
    images = images_of(backbone, 2, torch.float32)
    vp.save_method(model, tmp_path / "tuned.safetensors")
    with torch.no_grad():
        assert torch.equal(vp.load_method(tmp_path / "tuned.safetensors", backbone)(images), model(images))
    assert [path.name for path in tmp_path.iterdir()] == ["tuned.safetensors"]
    if slug == "vpt-deep":  # the backbone is not in the file
        own = 4 * vp.count_parameters(model)["total"] + 4 * 2 * backbone.width
        assert own < (tmp_path / "tuned.safetensors").stat().st_size < own + 3000


@pytest.mark.parametrize("slug", ["lora", "ssf", "bias", "norm-tune", "full-finetune"])
@pytest.mark.parametrize("pool", ["token", "avg"])
def test_a_merged_method_gives_the_same_logits(slug, pool):
    backbone = small_vit(pool)
    model = vp.build_method(slug, backbone, 3)
    fit(model, tiny_task(), Recipe(epochs=2, batch_size=8, learning_rate=0.05), seed=0)
    images = images_of(backbone, 2, torch.float32)
    plain = vp.merged(model)
    with torch.no_grad():
        assert torch.allclose(plain(images), model(images), atol=1e-5)
        start = vp.build_method(slug, backbone, 3)
        assert not torch.allclose(start.features(start.below(images)), model.features(model.below(images)), atol=1e-3)  # it did learn
    assert vp.count_parameters(plain)["method"] == 0


def test_prompts_cannot_be_merged(vit):
    with pytest.raises(vp.BadInput, match="only lora, ssf, bias"):
        vp.merged(vp.build_method("vpt-deep", vit, 3))


def test_files_that_do_not_fit_are_refused(vit, tmp_path):
    path = tmp_path / "tuned.safetensors"
    with pytest.raises(vp.BadInput, match="does not exist"):
        vp.load_method(path, vit)
    with pytest.raises(vp.BadInput, match=r"ends in .safetensors"):
        vp.save_method(vp.build_method("ap", vit, 3), tmp_path / "tuned.pt")
    vp.save_method(vp.build_method("ap", vit, 3), path)
    other = small_vit()
    other.fingerprint = "0123456789ab"
    with pytest.raises(vp.BadInput, match="was tuned on test_vit"):
        vp.load_method(path, other)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(vp.BadInput, match="damaged"):
        vp.load_method(path, vit)
    save_file({"x": torch.zeros(1)}, path)
    with pytest.raises(vp.BadInput, match="not written by save_method"):
        vp.load_method(path, vit)
