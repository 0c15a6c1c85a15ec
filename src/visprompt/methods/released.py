"""Where released code differs from its paper, or fills a gap: one class per difference.

The methods follow the papers and know nothing of these classes. While a recipe that names one is
fitted, `training.recipe_extras` puts it in front of the method's own class. A difference that
changes the computation itself is a `Form`, which the fitted model keeps.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from ..errors import BadInput, choose
from ..models.backbones import Backbone
from ..models.blocks import KeysValues, Layer, Project
from .base import TunedModel


class Form:
    """A difference in what a model computes: it stays after fitting, and saved models name it."""

    @staticmethod
    def unfit(model: TunedModel) -> str:
        """Why a model cannot have this form, and what to use instead; "" if it can."""
        return ""


class AveragedPrompts(Form):
    """A backbone that averages its patches averages prompt outputs too (VPT, SPT, Gate-VPT)."""

    @staticmethod
    def unfit(model: TunedModel) -> str:
        if model.source.pools_class_token:
            return (
                f"{model.source.name} pools its class token; give a backbone that "
                f"averages, such as one of MAE"
            )
        return (
            ""
            if model.source.is_vit
            else f"it is written for ViTs, and {model.source.name} is none"
        )

    def after_blocks(self, x: torch.Tensor) -> torch.Tensor:
        return x


class AveragedLastPrompts(AveragedPrompts):
    """As `AveragedPrompts`, for methods with prompts per block: those of the last block."""

    @staticmethod
    def unfit(model: TunedModel) -> str:
        apart = "prompts that are keys and values give nothing; write form='concatenate'"
        return AveragedPrompts.unfit(model) or (apart if model.method.form != "concatenate" else "")

    def around(self, index: int, name: str, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        if name != "block" or index < len(self.prompts) - 1:
            return super().around(index, name, layer, x)
        prompts = self.entering(index).expand(len(x), -1, -1)
        return layer(torch.cat([x[:, : self.prefix], prompts, x[:, self.prefix :]], 1))


class AveragedGuidedPrompts(AveragedLastPrompts):
    """As `AveragedLastPrompts`, for DA-VPT, whose prompts are keys and values in other blocks."""

    unfit = staticmethod(AveragedPrompts.unfit)

    def extra(self, index: int, project: Project) -> KeysValues | None:
        own = super().extra(index, project)
        return None if index == len(self.prompts) - 1 else own

    def watch(self, index: int, x: torch.Tensor) -> None:
        prompts = len(self.prompts[index]) if index == len(self.prompts) - 1 else 0
        super().watch(index, torch.cat([x[:, : self.prefix], x[:, self.prefix + prompts :]], 1))


class BeforeTheNorm(Form):
    """AdaptFormer's bottleneck reads the tokens before the LayerNorm of the MLP."""

    def around(self, index: int, name: str, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        if name == "norm2":
            self.__dict__["entering"] = x
        if name != "mlp":
            return layer(x)
        return layer(x) + self.settings.scale * self.adapters[index](self.__dict__.pop("entering"))


class MostlyNew(Form):
    """ProVP's prompts are 0.01 times the output plus 0.99 times the new ones."""

    def before_block(self, index: int, x: torch.Tensor) -> torch.Tensor:
        if index == 0:
            return super().before_block(0, x)
        before, came_out, patches = self.split(x)
        return torch.cat([before, 0.01 * came_out + 0.99 * self.added[index - 1], patches], 1)


class StridedPieces(Form):
    """E2VPT's segment s of a token is its entries s, s + 16, s + 32, ..., of 16 segments."""

    def entering(self, index: int) -> torch.Tensor:
        tokens, segments = self.token_mask[index], self.segment_mask[index]
        if self.training and torch.is_grad_enabled():
            tokens, segments = (self.watched(kind, index) for kind in range(2))
        whole = segments.repeat(1, self.prompts[index].shape[1] // self.settings.segments)
        return self.prompts[index] * whole * tokens[:, None]


class SignedScore:
    """E2VPT's importance of a mask sums its signed gradient, not the absolute one."""

    def watched(self, kind: int, index: int) -> torch.Tensor:
        mask = self.masks()[kind][index].clone().requires_grad_(True)

        def add(gradient: torch.Tensor) -> None:
            self.importance[kind][index] += gradient

        mask.register_hook(add)
        return mask


class OneMask:
    """All blocks of E2VPT share one mask, chosen by the sum of their scores."""

    def kept(self, importance: torch.Tensor, share: float) -> torch.Tensor:
        return super().kept(importance.sum(0, keepdim=True), share).expand_as(importance)


class NormalStart:
    """VP's frame is initialised with normal numbers."""

    def reset(self, generator: torch.Generator) -> None:
        with torch.no_grad():
            self.delta.copy_(
                torch.randn(self.delta.shape, generator=generator, dtype=torch.float32)
            )


class KeysValuesByHead:
    """E2VPT's M key-value prompts are initialised within ±√(6 / (M d)) for heads of width d.

    That is ±0.137 for 5 prompts and heads of 64, the number in its code.
    """

    source: Backbone

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        _, count, width = self.key_values.shape
        head = width // self.source.blocks[0].attn.num_heads
        with torch.no_grad():
            self.key_values.mul_(math.sqrt(6 / (count * head)) / self.bound)


class BoundOf14:
    """ProVP's prompts are initialised within VPT's bound for patches of 14 pixels, on any ViT."""

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        bound = math.sqrt(6 / (3 * 14**2 + self.prompts.shape[-1]))
        with torch.no_grad():
            for prompt in (self.prompts, self.added):
                prompt.mul_(bound / self.bound)


class NormalScales:
    """SSF's scales are initialised with N(1, 0.02²), its shifts with N(0, 0.02²)."""

    def reset(self, generator: torch.Generator) -> None:
        with torch.no_grad():
            for mean, parts in ((1.0, self.scales), (0.0, self.shifts)):
                for part in parts.values():
                    drawn = torch.randn(part.shape, generator=generator, dtype=torch.float32)
                    part.copy_(mean + 0.02 * drawn)


class CutTemperatures:
    """Gate-VPT's temperatures are clamped in place, so that one at a bound goes on learning."""

    def before_block(self, index: int, x: torch.Tensor) -> torch.Tensor:
        if index == 0:
            with torch.no_grad():
                self.temperatures.clamp_(self.settings.lowest, self.settings.highest)
        return super().before_block(index, x)


class OtherImages:
    """SPT-Deep draws other images for every block's initialisation."""

    def prepare(
        self,
        backbone: Backbone,
        images: torch.Tensor,
        labels: torch.Tensor,
        generator: torch.Generator,
    ) -> None:
        starts = []
        for index in range(len(self.prompts)):
            super().prepare(backbone, images, labels, generator)
            starts.append(self.prompts[index].detach().clone())
        with torch.no_grad():
            for prompt, start in zip(self.prompts, starts, strict=True):
                prompt.copy_(start)


class BareTokens:
    """SPT's prompts of block 0 start as tokens without position embedding."""

    def prepare(
        self,
        backbone: Backbone,
        images: torch.Tensor,
        labels: torch.Tensor,
        generator: torch.Generator,
    ) -> None:
        state = generator.get_state()
        super().prepare(backbone, images, labels, generator)
        kept, position = (
            [prompt.detach().clone() for prompt in self.parameters()],
            backbone.model.pos_embed,
        )
        embedding = position.detach().clone()
        with torch.no_grad():
            try:
                position.zero_()
                generator.set_state(state)
                super().prepare(backbone, images, labels, generator)
            finally:
                position.copy_(embedding)
            for prompt, start in list(zip(self.parameters(), kept, strict=True))[1:]:
                prompt.copy_(start)


class SmallStart:
    """DA-VPT's prompts start at 1/25 of VPT's bound, 0.0025 on ViT-B/16."""

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        with torch.no_grad():
            for prompt in self.prompts:
                prompt.div_(25)


class NormedMeans:
    """DA-VPT's class means pass a LayerNorm, here without weights, before clustering."""

    def recluster(self) -> None:
        counts = self.counts.clamp_min(1)[:, None]
        self.sums = F.layer_norm(self.sums / counts, self.sums.shape[1:]) * counts  # type: ignore[has-type]
        # the first are means as they are
        self.centroids.copy_(F.layer_norm(self.centroids, self.centroids.shape[1:]))
        super().recluster()

    @torch.no_grad()
    def after_epoch(self) -> None:
        self.recluster()


class Clusters1:
    """DA-VPT's classes are clustered anew from the second epoch on."""

    kept = 1  # epochs with the first clusters

    def prepare(
        self,
        backbone: Backbone,
        images: torch.Tensor,
        labels: torch.Tensor,
        generator: torch.Generator,
    ) -> None:
        self.__dict__["clustered"] = 0
        super().prepare(backbone, images, labels, generator)

    def recluster(self) -> None:
        before = self.__dict__["clustered"]  # by `prepare` first
        self.__dict__["clustered"] = before + 1
        if 0 < before <= self.kept:
            self.sums = None
        else:
            super().recluster()

    @torch.no_grad()
    def after_epoch(self) -> None:
        self.recluster()


class Clusters10(Clusters1):
    """DA-VPT's classes are clustered anew from the eleventh epoch on."""

    kept = 10


class UnitPrompts(Form):
    """DA-VPT's prompts are divided by their L2 norm where they enter a block."""

    def entering(self, index: int) -> torch.Tensor:
        return F.normalize(super().entering(index), dim=-1)


class GuidedAlone(Form):
    """DA-VPT has no prompts in the blocks that are not guided."""

    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]:
        others = {id(p) for index, p in enumerate(self.prompts) if index not in self.guided}
        return (p for p in super().parameters(recurse) if id(p) not in others)

    def extra(self, index: int, project: Project) -> KeysValues | None:
        return super().extra(index, project) if index in self.guided else None


class ClassQuery:
    """DA-VPT's class term compares the class token's query, not its attention output."""

    def before_block(self, index: int, x: torch.Tensor) -> torch.Tensor:
        x = super().before_block(index, x)
        if self.training and index in self.guided and self.prefix:
            self.__dict__.setdefault("entered", {})[index] = x[:, 0]
        return x

    def extra(self, index: int, project: Project) -> KeysValues | None:
        tokens = self.__dict__.get("entered", {}).pop(index, None)
        if tokens is not None:
            self.__dict__.setdefault("of_class", {})[index] = (
                project(tokens)[0].transpose(1, 2).flatten(2)[0]
            )
        return super().extra(index, project)

    def loss(self, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor | float:
        for index, query in self.__dict__.pop("of_class", {}).items():
            self.seen[index] = torch.cat([query[:, None], self.seen[index][:, 1:]], 1)
        return super().loss(features, labels)


class PatchMean:
    """DA-VPT's patch term compares one vector per image, the mean of its patches."""

    def loss(self, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor | float:
        for index, seen in self.seen.items():
            self.seen[index] = torch.cat(
                [seen[:, : self.prefix], seen[:, self.prefix :].mean(1, keepdim=True)], 1
            )
        return super().loss(features, labels)


OF_DA_VPT = {
    "averaged prompts": AveragedGuidedPrompts,
    "small start": SmallStart,
    "normed class means": NormedMeans,
    "class query": ClassQuery,
    "mean patch": PatchMean,
    "clusters from epoch 1": Clusters1,
    "clusters from epoch 10": Clusters10,
    "unit prompts": UnitPrompts,
    "guided prompts alone": GuidedAlone,
}
OF_E2VPT = {
    "keys and values by head": KeysValuesByHead,
    "strided pieces": StridedPieces,
    "signed score": SignedScore,
    "one mask": OneMask,
}
DIFFERENCES: dict[str, Any] = {  # method -> what a recipe names -> its class
    "ssf": {"normal start": NormalScales},
    "vp": {"normal start": NormalStart},
    "adaptformer": {"before the norm": BeforeTheNorm},
    "vpt-shallow": {"averaged prompts": AveragedPrompts},
    "vpt-deep": {"averaged prompts": AveragedLastPrompts},
    "gate-vpt": {"cut temperatures": CutTemperatures, "averaged prompts": AveragedPrompts},
    "e2vpt": OF_E2VPT,
    "provp": {"mostly new": MostlyNew, "bound of 14": BoundOf14},
    "spt-shallow": {"averaged prompts": AveragedPrompts, "bare tokens": BareTokens},
    "spt-deep": {
        "averaged prompts": AveragedLastPrompts,
        "bare tokens": BareTokens,
        "other images": OtherImages,
    },
    "da-vpt": OF_DA_VPT,
    "da-vpt-plus": OF_DA_VPT,
}


def named(slug: str, names: str) -> list[type]:
    """The classes of a method's differences, from their comma-separated names.

    Raises:
        BadInput: the method has no difference of that name.
    """
    known = DIFFERENCES.get(slug, {})
    wanted = list(dict.fromkeys(name.strip() for name in names.split(","))) if names else []
    if wanted and not known:
        raise BadInput(
            f"no difference of {slug} can be asked for; leave as_released out of the recipe."
        )
    return [known[choose(f"difference of {slug}", name, known)] for name in wanted]


def take(model: TunedModel, differences: list[type]) -> None:
    """Let a model's method take on these differences, and drop those it had before.

    Raises:
        BadInput: the model cannot have one of them.
    """
    for difference in differences:
        if issubclass(difference, Form) and (why := difference.unfit(model)):
            raise BadInput(f"{model.slug} cannot be as released here: {why}.")
    own = getattr(type(model.method), "plain", type(model.method))
    marks = {"__module__": own.__module__, "plain": own, "source": model.source}
    model.method.__class__ = type("Method", (*differences, own), marks) if differences else own


def form_of(model: TunedModel) -> str:
    """The comma-separated names of a model's forms, as `named` reads them."""
    known = DIFFERENCES.get(model.slug, {})
    return ", ".join(
        name
        for name, kind in known.items()
        if issubclass(kind, Form) and isinstance(model.method, kind)
    )
