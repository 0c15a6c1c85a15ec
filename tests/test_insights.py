"""What fitted methods show: information of prompts and patches, attention of prompts, noise,
clustering."""

import math

import pytest
import torch
from conftest import small_vit
from hypothesis import given, settings
from hypothesis import strategies as st

import visprompt as vp
from visbook.chapters.real import kept_rows
from visbook.studies import guidance, insights
from visbook.studies.case import Run
from visbook.studies.lab import Lab, LabSettings
from visprompt.errors import BadInput
from visprompt.measure.attention import prompt_attention
from visprompt.measure.similarity import normalised_mutual_information

MICRO = "vit_micro_patch4_24"
FEW = Run(MICRO, "digits", "vpt-deep", settings={"prompt_tokens": 3}, train_size=40)


@pytest.fixture
def lab(stores):
    return Lab(LabSettings(changes={"epochs": 2}))


@given(st.integers(1, 5), st.integers(1, 6), st.floats(0.1, 8))
@settings(max_examples=25, deadline=None)
def test_nmi_is_its_definition(prompts, patches, scale):
    """SPT Eq. 7-8 in plain loops."""
    torch.manual_seed(prompts * 10 + patches)
    p, e = scale * torch.randn(prompts, 4), torch.randn(1, patches, 4)
    joint = [
        [1 / (1 + math.exp(-float(p[k] @ e[0, j]))) for j in range(patches)] for k in range(prompts)
    ]
    total = sum(map(sum, joint))
    joint = [[value / total for value in row] for row in joint]
    rows, columns = (
        [sum(row) for row in joint],
        [sum(row[j] for row in joint) for j in range(patches)],
    )
    mutual = sum(
        v * math.log(v / (rows[k] * columns[j]))
        for k, row in enumerate(joint)
        for j, v in enumerate(row)
    )
    entropies = [-sum(v * math.log(v) for v in values) for values in (rows, columns)]
    if sum(entropies) < 1e-6:
        return
    found = normalised_mutual_information(p, e)
    assert found == pytest.approx(2 * mutual / sum(entropies), abs=1e-6)
    assert -1e-9 <= found <= 1 + 1e-9


def test_nmi_at_its_ends():
    """Prompts at zero know nothing; prompts that each fit one patch alone know all."""
    assert normalised_mutual_information(torch.zeros(3, 4), torch.randn(2, 5, 4)) == pytest.approx(
        0, abs=1e-9
    )
    one = 200 * torch.eye(4)
    patches = (2 * torch.eye(4) - 1)[None]
    assert normalised_mutual_information(one, patches) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("slug", ["vpt-deep", "da-vpt", "ivpt"])
def test_prompt_attention_is_the_concatenated_blocks(slug):
    """The class token's row is the row that softmax gives inside the method's own block, with the
    prompts as keys."""
    vit = small_vit()
    model = vp.build_method(
        slug, vit, 3, **({"prompt_tokens": 3} | ({"salient_tokens": 4} if slug == "ivpt" else {}))
    ).eval()
    images = torch.randn(2, 3, 16, 16)
    seen = []
    observe = model.method.observe

    def look(index, q, k):
        seen.append(
            (q[:, :, :1] @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(-1).mean(1)[:, 0]
        )
        observe(index, q, k)

    model.method.observe = look
    with torch.no_grad():
        model(images)
    found = prompt_attention(model, images)
    assert len(found) == vit.depth
    for rows, inside in zip(found, seen, strict=False):
        torch.testing.assert_close(rows["class"], inside[:, 1:17])
        torch.testing.assert_close(rows["to_prompts"], inside[:, 17:].sum(1))
        assert rows["prompts"].shape == (2, 3, 16) and (rows["prompts"].sum(-1) < 1).all()


def test_prompt_attention_refuses_what_has_no_such_prompts():
    vit = small_vit()
    for slug in ("linear-probe", "vpt-shallow", "da-vpt-plus"):
        with pytest.raises(BadInput, match="attention of prompts is for vpt-deep"):
            prompt_attention(vp.build_method(slug, vit, 3), torch.zeros(1, 3, 16, 16))


def test_noise_hurts_and_none_of_it_is_the_plain_accuracy(lab):
    record = insights.under_noise(FEW, lab, levels=(0.0, 1.0))
    assert record.values["accuracy"][0] == lab.do(FEW).values["test"]
    assert record.values["accuracy"][1] < record.values["accuracy"][0]
    assert insights.under_noise(FEW, lab, levels=(0.0, 1.0), compute=False).id == record.id
    assert insights.under_noise(FEW, lab, levels=(0.0, 0.5), compute=False) is None


def test_prompts_and_patches_by_epoch_and_block(lab):
    sampled = Run(MICRO, "digits", "spt-deep", settings={"prompt_tokens": 3}, train_size=40)
    for run in (FEW, sampled):
        values = insights.prompts_and_patches(run, lab, images=8).values
        assert len(values["nmi"]) == 3 and all(len(row) == 8 for row in values["nmi"])
        assert all(0 <= value <= 1 for row in values["nmi"] for value in row)
        assert len(values["cka"]) == 8 and all(
            0 <= value <= 1 + 1e-9 for row in values["cka"] for value in row
        )
        assert values["test"] == lab.do(run).values["test"]  # looking changes nothing


def test_attention_maps_and_clustering_times(lab):
    run = Run(MICRO, "digits", "da-vpt", settings={"prompt_tokens": 4}, train_size=40)
    values = insights.attention_maps(run, lab, images=(0, 5), pool=20).values
    assert (
        len(values["class"]) == 2
        and len(values["class"][0]) == 8
        and len(values["class"][0][0]) == 36
    )
    assert len(values["prompts"][1][7]) == 4 * 36 and len(values["cluster"]) == 10
    assert all(0 < bits <= math.log2(36) for bits in values["entropy"])
    times = insights.clustering_times(run, lab).values
    assert len(times["seconds"]) == len(times["moved"]) == 3 and min(times["seconds"]) > 0


def test_kept_rows_are_those_of_the_project(lab, stores):
    lab.do(FEW)
    assert kept_rows("tune", backbone=MICRO) == []
    stores[1].mkdir(parents=True)
    (stores[0] / "tune").rename(stores[1] / "tune")
    (found,) = kept_rows("tune", backbone=MICRO)
    assert found.settings["train_size"] == 40 and kept_rows("tune", backbone="other") == []


def test_guidance_is_what_the_losses_compare(lab):
    """Against loops over prompts and images, on the tokens that the block's own attention gives."""
    ready = lab.prepare(
        Run(MICRO, "digits", "da-vpt", settings={"prompt_tokens": 4}, train_size=40)
    )
    model, (images, labels) = ready["model"], [part[:6] for part in ready["task"].test]
    found, method, vit = guidance.relations(model, images, labels), model.method, model.source
    pixels, kept = insights.normalise(images, vit.mean, vit.std), []
    method.train()
    vit.run(vit.stem(pixels), method, keep=kept)
    patches, proxies, share = (
        method.seen[7][:, 1:],
        method.proxies(7),
        prompt_attention(model, pixels)[7]["to_prompts"],
    )
    own = [
        torch.cosine_similarity(patches[b], proxies[method.cluster[labels[b]]][None], dim=-1).mean()
        for b in range(6)
    ]
    rest = [
        torch.cosine_similarity(patches[b], proxies[k][None], dim=-1).mean()
        for b in range(6)
        for k in range(4)
        if k != method.cluster[labels[b]]
    ]
    assert found["own_patches"] == pytest.approx(float(sum(own) / 6), abs=1e-6)
    assert found["other_patches"] == pytest.approx(float(sum(rest) / 18), abs=1e-6)
    assert found["to_own"] + 3 * found["to_other"] == pytest.approx(float(share.mean()), abs=1e-6)


def test_guidance_takes_vpt_deep_as_da_vpt_without_its_losses(lab):
    record = guidance.class_guidance(FEW, lab, pool=20)
    weights = record.settings["method_settings"]
    assert record.kind == "guidance" and (weights["beta"], weights["lambda_"]) == (0, 0)
    assert (
        record.settings["recipe"]["learning_rate"]
        == lab.do(FEW).settings["recipe"]["learning_rate"]
    )
    assert guidance.class_guidance(FEW, lab, pool=20, compute=False).id == record.id
