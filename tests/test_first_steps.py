"""What a loop of one's own needs has a public name."""

import pytest
import torch

import visprompt as vp


def test_standardising_is_what_fit_does_before_its_first_step():
    backbone, task = vp.load_backbone("vit_micro_patch4_24", "pretrained"), vp.load_task("position")
    model = vp.build_method("vpt-deep", backbone, task.classes)
    vp.fit(model, task, vp.Recipe(epochs=1, learning_rate=1e-5), seed=0)
    wanted = model.feature_mean.clone(), model.feature_scale.clone()
    model.reset(0)
    vp.standardise(model, task.train[0])
    torch.testing.assert_close((model.feature_mean, model.feature_scale), wanted)


@pytest.mark.parametrize("images", [torch.zeros(2, 3, 24, 24), torch.zeros(3, 24, 24).byte()])
def test_what_is_no_batch_of_bytes_is_not_standardised(images):
    backbone = vp.load_backbone("vit_micro_patch4_24")
    model = vp.build_method("linear-probe", backbone, 2)
    with pytest.raises(vp.BadInput, match="give task.train"):
        vp.standardise(model, images)
