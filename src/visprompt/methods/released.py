"""What released code does in training where a paper says otherwise or nothing: one class a difference.

The methods follow the papers and know nothing of this; `training.as_asked` puts such a class before a method's own while
a recipe that names it is fitted. What a method computes from a given state is not touched, so it is saved as ever.
"""

import torch
from torch.nn import functional as F


class NormalStart:
    """VP's frame starts as normal numbers."""

    def reset(self, generator):
        with torch.no_grad():
            self.delta.copy_(torch.randn(self.delta.shape, generator=generator, dtype=torch.float32))


class NarrowKeyValues:
    """E2VPT's prompts on keys and values start within 0.137, whatever the width."""

    def reset(self, generator):
        super().reset(generator)
        with torch.no_grad():
            self.key_values.mul_(0.137 / self.bound)


class CutTemperatures:
    """Gate-VPT's temperatures themselves are cut off at their bounds, so that one at a bound goes on learning."""

    def before_block(self, index, x):
        if index == 0:
            with torch.no_grad():
                self.temperatures.clamp_(self.settings.lowest, self.settings.highest)
        return super().before_block(index, x)


class OtherImages:
    """SPT-Deep's start draws other images for every block."""

    def prepare(self, backbone, images, labels, generator):
        found = []
        for index in range(len(self.prompts)):
            super().prepare(backbone, images, labels, generator)
            found.append(self.prompts[index].detach().clone())
        with torch.no_grad():
            for prompt, start in zip(self.prompts, found, strict=True):
                prompt.copy_(start)


class SmallStart:
    """DA-VPT's prompts start as a 25th of VPT's, which is 0.0025 on ViT-B/16."""

    def reset(self, generator):
        super().reset(generator)
        with torch.no_grad():
            for prompt in self.prompts:
                prompt.div_(25)


class NormedMeans:
    """DA-VPT's class means pass a LayerNorm, here without weights, before they are clustered."""

    def recluster(self):
        counts = self.counts.clamp_min(1)[:, None]
        self.sums = F.layer_norm(self.sums / counts, self.sums.shape[1:]) * counts
        self.centroids.copy_(F.layer_norm(self.centroids, self.centroids.shape[1:]))  # the first are means as they are
        super().recluster()

    @torch.no_grad()
    def after_epoch(self):
        self.recluster()


class ClassQuery:
    """DA-VPT's class term compares the class token's query, not what attention gives it."""

    def before_block(self, index, x):
        x = super().before_block(index, x)
        if self.training and index in self.guided and self.prefix:
            self.__dict__.setdefault("entered", {})[index] = x[:, 0]
        return x

    def extra(self, index, project):
        tokens = self.__dict__.get("entered", {}).pop(index, None)
        if tokens is not None:
            self.__dict__.setdefault("of_class", {})[index] = project(tokens)[0].transpose(1, 2).flatten(2)[0]
        return super().extra(index, project)

    def loss(self, features, labels):
        for index, query in self.__dict__.pop("of_class", {}).items():
            self.seen[index] = torch.cat([query[:, None], self.seen[index][:, 1:]], 1)
        return super().loss(features, labels)


class PatchMean:
    """DA-VPT's patch term compares one vector an image, the mean of its patches."""

    def loss(self, features, labels):
        for index, seen in self.seen.items():
            self.seen[index] = torch.cat([seen[:, : self.prefix], seen[:, self.prefix :].mean(1, keepdim=True)], 1)
        return super().loss(features, labels)


OF_DA_VPT = {
    "small start": SmallStart,
    "normed class means": NormedMeans,
    "class query": ClassQuery,
    "mean patch": PatchMean,
}
DIFFERENCES = {  # method -> what a recipe names -> its class
    "vp": {"normal start": NormalStart},
    "e2vpt": {"narrow keys and values": NarrowKeyValues},
    "gate-vpt": {"cut temperatures": CutTemperatures},
    "spt-deep": {"other images": OtherImages},
    "da-vpt": OF_DA_VPT,
    "da-vpt-plus": OF_DA_VPT,
}
