"""Recipes as released follow plain definitions of the released code, on networks that average and
on networks with a class token.

The definitions are written from what is known of that code (start, order, optimiser, warm-up,
decay, pooling) and use timm and torch alone. Two things differ on purpose: the order of images is
this project's own stream, since theirs is random, and dropout is off.
"""

import math

import pytest
import torch
from conftest import small_vit, tiny_task
from torch.nn import functional as F

import visprompt as vp
from visprompt.chance import stream
from visprompt.methods import released
from visprompt.models import pooling
from visprompt.training import loop
from visprompt.training.recipe import load_recipe

EPOCHS, BATCH, WARM, STEPS = 13, 6, 2, 4  # epochs, images, epochs, steps an epoch: 52 steps
DEEP = {"prompt_tokens": 3, "form": "concatenate"}


def network(averages):
    """A small ViT with a class token in float64, as a masked autoencoder's if it averages."""
    backbone = small_vit("avg" if averages else "token", class_token=True)
    with torch.no_grad():
        for name, parameter in backbone.model.named_parameters():
            if name in ("norm.weight", "cls_token", "pos_embed"):
                parameter.add_(0.3 * torch.randn(parameter.shape))
    return backbone.double()


def stem(vit, images):
    """Images (B, 3, H, W) -> class token and patches (B, 1 + M, D), with their positions."""
    x = vit.patch_embed(images)
    return torch.cat([vit.cls_token.expand(len(x), -1, -1), x], 1) + vit.pos_embed


def pooled(vit, x, norm):
    """Tokens that leave the last block -> features (B, D)."""
    if vit.global_pool == "token":
        return vit.norm(x)[:, 0]
    mean = x[:, 1:].mean(1)  # of prompts and patches
    if norm == "fresh":
        return F.layer_norm(mean, mean.shape[-1:], eps=vit.norm.eps)
    return vit.norm(mean)


def deep(vit, images, prompts, norm):
    """VPT-Deep and SPT-Deep: each block's own prompts take the place of the former's outputs."""
    x = stem(vit, images)
    x = torch.cat([x[:, :1], prompts[0].expand(len(x), -1, -1), x[:, 1:]], 1)
    for index, block in enumerate(vit.blocks):
        own = prompts[index].expand(len(x), -1, -1)
        x = block(torch.cat([x[:, :1], own, x[:, 1 + own.shape[1] :]], 1))
    return pooled(vit, x, norm)


def shallow(vit, images, prompts, norm):
    """VPT-Shallow and SPT-Shallow: prompts enter block 0 and stay."""
    x = stem(vit, images)
    x = torch.cat([x[:, :1], prompts.expand(len(x), -1, -1), x[:, 1:]], 1)
    for block in vit.blocks:
        x = block(x)
    return pooled(vit, x, norm)


def gated(vit, images, prompts, gates, temperatures):
    """Gate-VPT: a gate at each border of blocks mixes what came out with what went in."""
    x, count = stem(vit, images), len(prompts)
    x = torch.cat([x[:, :1], prompts.expand(len(x), -1, -1), x[:, 1:]], 1)
    for index, block in enumerate(vit.blocks):
        went_in, attn = x, block.attn
        q, k, v = (
            attn.qkv(block.norm1(x))
            .view(*x.shape[:2], 3, attn.num_heads, attn.head_dim)
            .permute(2, 0, 3, 1, 4)
        )
        scores = q @ k.transpose(-2, -1) * attn.scale / temperatures[index]
        x = x + attn.proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape))
        x = x + block.mlp(block.norm2(x))
        if index < len(gates):
            gate = gates[index].sigmoid()
            mixed = gate * x[:, 1 : 1 + count] + (1 - gate) * went_in[:, 1 : 1 + count]
            x = torch.cat([x[:, :1], mixed, x[:, 1 + count :]], 1)
    return pooled(vit, x, "own")


def adapted(vit, images, *adapters):
    """AdaptFormer: a bottleneck beside the MLP reads what enters its LayerNorm."""
    x = stem(vit, images)
    for block, (down, down_bias, up, up_bias) in zip(vit.blocks, zip(*[iter(adapters)] * 4)):
        x = x + block.attn(block.norm1(x))
        beside = F.linear(F.relu(F.linear(x, down, down_bias)), up, up_bias)
        x = x + block.mlp(block.norm2(x)) + 0.1 * beside
    return pooled(vit, x, "own")


RELEASED = {  # method -> its settings, what is as released, the order, and the definition
    "vpt-shallow": (
        {"prompt_tokens": 3},
        "averaged prompts",
        pooling.FRESH_NORM,
        lambda vit, x, prompts: shallow(vit, x, prompts, "fresh"),
    ),
    "vpt-deep": (
        DEEP,
        "averaged prompts",
        pooling.FRESH_NORM,
        lambda vit, x, *prompts: deep(vit, x, prompts, "fresh"),
    ),
    "spt-shallow": (
        {"prompt_tokens": 3},
        "averaged prompts",
        pooling.MEAN_FIRST,
        lambda vit, x, prompts: shallow(vit, x, prompts, "own"),
    ),
    "spt-deep": (
        DEEP,
        "averaged prompts",
        pooling.MEAN_FIRST,
        lambda vit, x, *prompts: deep(vit, x, prompts, "own"),
    ),
    "gate-vpt": ({"prompt_tokens": 3}, "averaged prompts", pooling.MEAN_FIRST, gated),
    "adaptformer": ({"bottleneck": 4}, "before the norm", pooling.MEAN_FIRST, adapted),
    "linear-probe": ({}, "", pooling.MEAN_FIRST, lambda vit, x: plain(vit, x, "own")),
    "full-finetune": ({}, "", pooling.FRESH_NORM, lambda vit, x, *_: plain(vit, x, "fresh")),
}


def plain(vit, images, norm):
    """The network without a method."""
    return pooled(vit, vit.blocks(stem(vit, images)), norm)


@pytest.mark.parametrize("slug", RELEASED)
def test_features_of_a_network_that_averages_are_as_released(slug):
    settings, names, order, definition = RELEASED[slug]
    source = pooling.ordered(network(True), order)
    model = vp.build_method(slug, source, 3, **settings).double().eval()
    released.take(model, released.named(slug, names))
    parameters = model.method_parameters() if slug != "full-finetune" else []
    with torch.no_grad():
        for parameter in parameters:
            parameter.add_(torch.rand(parameter.shape))
    images = torch.randn(2, 3, 16, 16, dtype=torch.float64)
    found = model.features(model.below(images))
    wanted = definition(source.model, images, *parameters)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)
    weights = torch.randn_like(found)
    grads = (torch.autograd.grad((part * weights).sum(), parameters) for part in (found, wanted))
    for one, other in zip(*grads, strict=True) if parameters else ():
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def followed(slug, recipe, backbone, images, settings, monkeypatch):
    """Fit by a recipe -> (the loss of each step, the start of prompts and head)."""
    task, losses, start = tiny_task(per_split=(images, 6, 6)), [], []
    normalise = loop.normalise
    monkeypatch.setattr(loop, "normalise", lambda *given: normalise(*given).double())
    model = vp.build_method(slug, backbone, 3, **settings).double()
    whole = model.training_loss
    model.training_loss = lambda *given: losses.append(whole(*given)) or losses[-1]

    def watch(epoch):
        if epoch == 0:
            parts = [*model.method.parameters(), *model.head.parameters()]
            start.extend(part.detach().clone().requires_grad_() for part in parts)

    loop.fit_with_extras(model, task, recipe, 3, watch=watch)
    return [loss.item() for loss in losses], start, task


def pixels(images):
    """Bytes -> numbers from -1 to 1, as the small network takes them."""
    return ((images.float() / 255 - 0.5) / 0.5).double()


def stepped(forward, start, task, optimiser, rate, dropped):
    """The loss of each step of plain training.

    Args:
        rate: (epoch, step) -> the learning rate of all parameters.
        dropped: whether an incomplete last batch is left out.
    """
    (images, labels), order, losses = task.train, stream(3, "order"), []
    *prompts, weight, bias = start
    for epoch in range(EPOCHS):
        batches = torch.randperm(len(labels), generator=order).split(BATCH)
        for batch in batches[: len(labels) // BATCH] if dropped else batches:
            for group in optimiser.param_groups:
                group["lr"] = rate(epoch, len(losses))
            features = forward(pixels(images[batch]), prompts)
            loss = F.cross_entropy(F.linear(features, weight, bias), labels[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
    return losses


def close(found, wanted):
    assert len(found) == len(wanted) == EPOCHS * STEPS
    assert max(abs(a - b) for a, b in zip(found, wanted, strict=True)) < 1e-8
    assert min(wanted) < 0.95 * wanted[0]  # it learned something


AVERAGES = pytest.mark.parametrize("averages", [True, False], ids=["averages", "class token"])


@AVERAGES
def test_vpts_recipe_follows_its_released_code(averages, monkeypatch):
    recipe = load_recipe(
        "vpt",
        "vpt-deep",
        True,
        epochs=EPOCHS,
        batch_size=BATCH,
        warmup=WARM / EPOCHS,
        learning_rate=0.05,
        dropout=0.0,
        as_released="averaged prompts" if averages else "",
    )
    backbone = network(averages)
    given = "vpt-deep", recipe, backbone, BATCH * STEPS - 2, DEEP, monkeypatch
    found, start, task = followed(*given)
    bound = math.sqrt(6 / (3 * 4 * 4 + 16))
    assert 0.8 * bound < max(prompt.abs().max() for prompt in start[:-2]) <= bound
    assert start[-1].eq(-math.log(99)).all() and 0.5 < start[-2].std() / math.sqrt(2 / 3) < 1.5

    def rate(epoch, step):  # once an epoch, from 0
        if epoch < WARM:
            return 0.05 * epoch / WARM
        return 0.05 * 0.5 * (1 + math.cos(math.pi * (epoch - WARM) / (EPOCHS - WARM)))

    groups = [{"params": start[:-1], "weight_decay": 0.001}, {"params": start[-1:]}]
    optimiser = torch.optim.SGD(groups, lr=0.0, momentum=0.9, weight_decay=0.0)
    forward = lambda x, prompts: deep(backbone.model, x, prompts, "fresh")
    close(found, stepped(forward, start, task, optimiser, rate, dropped=False))


@AVERAGES
def test_spts_recipe_follows_its_released_code(averages, monkeypatch):
    own = ["bare tokens", "other images"] + ["averaged prompts"] * averages
    recipe = load_recipe(
        "spt",
        "spt-deep",
        True,
        epochs=EPOCHS,
        batch_size=BATCH,
        warmup=WARM / EPOCHS,
        learning_rate=0.03,
        as_released=", ".join(own),
    )
    backbone = network(averages)
    given = "spt-deep", recipe, backbone, BATCH * STEPS + 2, DEEP, monkeypatch
    found, start, task = followed(*given)
    x = pixels(task.train[0])
    entering, whole = [backbone.model.patch_embed(x)], stem(backbone.model, x)
    for block in backbone.model.blocks[:-1]:
        whole = block(whole)
        entering.append(whole[:, 1:])
    for prompts, tokens in zip(start, entering, strict=False):
        assert torch.cdist(prompts, tokens.flatten(0, 1)).amin(1).max() < 1e-6
    assert start[-1].eq(0).all() and 0.7 < start[-2].std() / 0.02 < 1.3

    def rate(epoch, step):  # with every step, from 0 to 1e-8
        warm, total = WARM * STEPS, EPOCHS * STEPS
        if step < warm:
            return 0.03 * step / warm
        return 1e-8 + (0.03 - 1e-8) * 0.5 * (1 + math.cos(math.pi * (step - warm) / (total - warm)))

    decays = [*[0.01] * len(start[:-2]), 3.0, 0.0]  # prompts, the head's weights, its bias
    groups = [{"params": [p], "weight_decay": d} for p, d in zip(start, decays, strict=True)]
    optimiser = torch.optim.AdamW(groups, lr=0.0)
    forward = lambda x, prompts: deep(backbone.model, x, prompts, "own")
    close(found, stepped(forward, start, task, optimiser, rate, dropped=True))
