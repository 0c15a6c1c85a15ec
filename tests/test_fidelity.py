"""Features of networks that average are those of the released code, by plain definitions.

The definitions are written from what is known of that code and use timm and torch alone;
`test_released_loops` trains them.
"""

import pytest
import torch
from conftest import small_vit
from torch.nn import functional as F

import visprompt as vp
from visprompt.methods import released
from visprompt.models import pooling

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
