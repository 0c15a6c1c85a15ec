"""Attention weights: of blocks, over distance, and of prompts."""

import torch

from ..errors import BadInput
from ..methods.base import TunedModel
from ..methods.prompts import Deep
from ..models.backbones import Backbone


@torch.no_grad()
def attention_weights(backbone: Backbone, x: torch.Tensor, index: int) -> torch.Tensor:
    """Attention of block `index` on its input (B, N, D) -> (B, heads, N, N); rows sum to 1."""
    block = backbone.blocks[index]
    attn = block.attn
    batch, tokens, width = x.shape
    qkv = attn.qkv(block.norm1(x)).reshape(
        batch, tokens, 3, attn.num_heads, width // attn.num_heads
    )
    q, k, _ = qkv.permute(2, 0, 3, 1, 4)
    return ((attn.q_norm(q) * attn.scale) @ attn.k_norm(k).transpose(-2, -1)).softmax(-1)


@torch.no_grad()
def attention_distance(backbone: Backbone, images: torch.Tensor) -> torch.Tensor:
    """Mean distance in pixels between a query patch and the patches it attends to -> (L, heads).

    Weighted by attention and averaged over query patches and images; the class token is left out
    and the rest renormalised, as in the papers that AP Section 4 follows for Figure 5 (B).

    Args:
        images: (B, 3, H, W), normalised.

    Raises:
        BadInput: the backbone has no attention.
    """
    if not backbone.is_vit:
        raise BadInput(f"{backbone.name} has no attention; give a ViT.")
    patch = backbone.model.patch_embed
    rows, columns = patch.grid_size
    ys, xs = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    places = torch.stack(
        [ys.flatten() * patch.patch_size[0], xs.flatten() * patch.patch_size[1]], 1
    ).float()
    distances = torch.cdist(places, places).to(images.device)
    kept, prefix = [], backbone.model.num_prefix_tokens
    backbone.run(backbone.stem(images), keep=kept)
    result = []
    for index, x in enumerate(kept):
        weights = attention_weights(backbone, x, index)[:, :, prefix:, prefix:]
        weights = weights / weights.sum(-1, keepdim=True)
        result.append((weights * distances).sum(-1).mean((0, 2)))
    return torch.stack(result)


@torch.no_grad()
def prompt_attention(model: TunedModel, images: torch.Tensor) -> list[dict[str, torch.Tensor]]:
    """Where class token and prompts of a deep prompt method attend, as if prompts had queries.

    Args:
        images: (B, 3, H, W), normalised.

    Returns:
        For each block the softmax weights over class token, patches and prompts, averaged over
        heads: "class" (B, N), class token to patches; "prompts" (B, N_p, N), prompts to patches;
        "to_prompts" (B,), class token to all prompts together.

    Raises:
        BadInput: the method does not have prompts at every block, or changes the layers inside
            attention.
    """
    backbone, method = model.source, model.method
    if not isinstance(method, Deep) or not backbone.has_class_token or hasattr(method, "shifts"):
        raise BadInput(
            "attention of prompts is for vpt-deep, spt-deep, cdc, ivpt and da-vpt on a "
            "ViT with a class token."
        )
    kept, looks, prefix = [], [], backbone.prefix
    backbone.run(backbone.stem(images), method, keep=kept)
    for index, x in enumerate(kept):
        prompts = method.entering(index).expand(len(x), -1, -1)
        weights = attention_weights(backbone, torch.cat([x, prompts], 1), index).mean(1)
        patches = slice(prefix, x.shape[1])
        looks.append(
            {
                "class": weights[:, 0, patches],
                "prompts": weights[:, x.shape[1] :, patches],
                "to_prompts": weights[:, 0, x.shape[1] :].sum(-1),
            }
        )
    return looks
