"""One transformer block, opened at the places where methods act."""

from collections.abc import Callable
from typing import Any

import torch
from timm.layers import Attention, Mlp
from timm.models.swin_transformer import SwinTransformerBlock, WindowAttention
from timm.models.vision_transformer import Block
from torch import nn
from torch.nn import functional as F

Layer = Callable[[torch.Tensor], torch.Tensor]
KeysValues = tuple[torch.Tensor, torch.Tensor]  # each (1, heads, N_p, d)
# prompts (N_p, D) -> queries, keys and values (1, heads, N_p, d)
Project = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor, torch.Tensor]]


class Hooks:
    """The functions that the block loop calls; these defaults change nothing.

    Tokens are (B, N, D) in a ViT; maps are (B, H', W', D) in a Swin and (B, C, H', W') in a ResNet.
    """

    # whether the last block may compute the class token alone where only that is pooled
    trims = True

    def before_block(self, index: int, x: torch.Tensor) -> torch.Tensor:
        """Change the input x of block `index`."""
        return x

    def around(self, index: int, name: str, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        """Apply a layer of block `index`, or replace it.

        Every block has "block". An opened ViT also has "norm1", "attn" (which contains "qkv" and
        "proj"), "norm2" and "mlp" (which contains "fc1" and "fc2"); and "patch_embed" at index -1,
        "norm" and "fc_norm" at index L.
        """
        return layer(x)

    def extra(self, index: int, project: Project) -> KeysValues | None:
        """Keys and values, each (1, heads, N_p, d), to add to those of block `index`; or None.

        They are the same for all images. `project` turns prompts (N_p, D) that enter the block
        before norm1 into queries, keys and values.
        """
        return None

    def observe(self, index: int, q: torch.Tensor, k: torch.Tensor) -> None:
        """See queries (B, heads, N, d) and keys (B, heads, N + N_p, d), the added ones last."""

    def watches(self, index: int) -> bool:
        """Whether `watch` needs the attention output of all tokens, even in a trimmed block."""
        return False

    def watch(self, index: int, x: torch.Tensor) -> None:
        """See the attention output before "proj", heads concatenated: (B, N, D)."""


NO_HOOKS = Hooks()


def is_standard(block: Any) -> bool:
    """Whether `vit_block` can compute this block: timm's pre-norm block with plain attention."""
    return type(block) is Block and type(block.attn) is Attention and block.attn.gate is None


def vit_block(
    block: Block, index: int, x: torch.Tensor, method: Hooks, trim: bool = False
) -> torch.Tensor:
    """Block `index` of a ViT on tokens (B, N, D); with `trim` only the class token is computed.

    Returns (B, N, D), or (B, 1, D) with `trim`. Every layer is applied through `Hooks.around`.
    """

    def at(name: str, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        return method.around(index, name, layer, x)

    def attention(h: torch.Tensor) -> torch.Tensor:
        attn, (batch, tokens, _) = block.attn, h.shape  # noqa: F841

        def project(h: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            """(B, N, D) after norm1 -> queries, keys and values (B, heads, N, d)."""
            qkv = at("qkv", attn.qkv, h).view(*h.shape[:2], 3, attn.num_heads, attn.head_dim)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            return attn.q_norm(q), attn.k_norm(k), v

        q, k, v = project(h)
        extra = method.extra(
            index, lambda prompts: project(at("norm1", block.norm1, prompts[None]))
        )
        if extra is not None:  # behind the tokens, which keep their places
            k, v = (
                torch.cat([part, more.expand(batch, -1, -1, -1)], 2)
                for part, more in zip((k, v), extra)
            )
        method.observe(index, q, k)
        if trim and not method.watches(index):
            q = q[:, :, :1]
        x = F.scaled_dot_product_attention(q, k, v, scale=attn.scale)
        x = attn.norm(x.transpose(1, 2).reshape(batch, -1, attn.attn_dim))
        method.watch(index, x)
        return at("proj", attn.proj, x[:, :1] if trim else x)

    def feed_forward(h: torch.Tensor) -> torch.Tensor:
        mlp = block.mlp
        if type(mlp) is not Mlp:
            return mlp(h)
        return at("fc2", mlp.fc2, mlp.norm(mlp.act(at("fc1", mlp.fc1, h))))

    branch = at("attn", attention, at("norm1", block.norm1, x))
    x = (x[:, :1] if trim else x) + block.ls1(branch)
    return x + block.ls2(at("mlp", feed_forward, at("norm2", block.norm2, x)))


def named_layers(block: Block) -> dict[str, nn.Module]:
    """Name as in `Hooks.around` -> layer with weights, of one block."""
    layers = {
        "norm1": block.norm1,
        "qkv": block.attn.qkv,
        "proj": block.attn.proj,
        "norm2": block.norm2,
    }
    if type(block.mlp) is Mlp:
        layers |= {"fc1": block.mlp.fc1, "fc2": block.mlp.fc2}
    return layers


class PromptedWindows(WindowAttention):
    """Swin's window attention, in which every window may attend to prompts.

    A backbone's own WindowAttention modules become this class and keep their weights. Prompts carry
    no relative position bias, as in VPT on Swin.
    """

    prompting = None  # (method, index of the block, its norm1), set by `swin_block` for one call

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        if self.prompting is None:
            return super().forward(x, mask)
        method, index, norm1 = self.prompting
        count, tokens, _ = x.shape

        def project(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            return (
                self.qkv(x)
                .view(*x.shape[:2], 3, self.num_heads, -1)
                .permute(2, 0, 3, 1, 4)
                .unbind(0)
            )

        q, k, v = project(x)
        bias = self._get_rel_pos_bias()  # (1, heads, N, N)
        if mask is not None:  # (windows, N, N), the same for every image
            bias = (
                (bias[:, None] + mask[None, :, None])
                .expand(count // len(mask), -1, -1, -1, -1)
                .flatten(0, 1)
            )
        extra = method.extra(index, lambda prompts: project(norm1(prompts[None])))
        if extra is not None:
            k, v = (
                torch.cat([part, more.expand(count, -1, -1, -1)], 2)
                for part, more in zip((k, v), extra)
            )
            bias = F.pad(bias, (0, k.shape[2] - tokens))
        x = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return self.proj(x.transpose(1, 2).reshape(count, tokens, -1))


def swin_block(
    block: SwinTransformerBlock, index: int, x: torch.Tensor, method: Hooks
) -> torch.Tensor:
    """Block `index` of a Swin on maps (B, H, W, D).

    A method can add keys and values to every window.
    """
    block.attn.prompting = method, index, block.norm1
    try:
        return block(x)
    finally:
        block.attn.prompting = None
