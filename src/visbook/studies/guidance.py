"""Whether the prompts that DA-VPT guides stand for their classes after training (DA-VPT Figure
1)."""

from dataclasses import replace

import torch
from torch.nn import functional as F

from visprompt.data.tasks import normalise
from visprompt.measure.attention import attention_weights
from visprompt.records import Record
from visprompt.training.loop import fit

from .case import Run
from .insights import measured
from .lab import Lab


def class_guidance(run: Run, lab: Lab, pool: int = 200, compute: bool = True) -> Record | None:
    """How the prompts of the last block relate to the classes they stand for, over `pool` test
    images.

    A run of VPT-Deep is made as DA-VPT with both loss weights 0: the same training but for the
    order of images, while the same clustering gives its prompts classes that it does not know of.

    Returns:
        A record of kind "guidance" whose values hold "to_own" and "to_other", the class token's
        attention to the prompt of the image's class and to another prompt, on average (softmax over
        all tokens, meaned over heads); "own_patches" and "other_patches", cosine similarities of
        the prompts to patches of their own and of other classes, both as the first metric loss
        compares them; and "test".
    """
    if run.method == "vpt-deep":
        rate = lab.prepare(run)["recipe"].learning_rate
        run = replace(
            run, method="da-vpt", rate=rate, settings={**run.settings, "beta": 0.0, "lambda_": 0.0}
        )

    def measure(ready):
        values = fit(**ready)
        return {
            **relations(ready["model"], *(part[:pool] for part in ready["task"].test)),
            "test": values["test"],
        }

    return measured("guidance", run, lab, {"pool": pool}, measure, compute)


@torch.no_grad()
def relations(model, images: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """The four means of `class_guidance` for a model of DA-VPT, images as bytes (B, 3, H, W) and
    labels (B,)."""
    backbone, method, last, kept = model.source, model.method, model.source.depth - 1, []
    device = next(model.parameters()).device
    method.train()  # only then does the last block keep what the losses compare
    backbone.run(
        backbone.stem(normalise(images, backbone.mean, backbone.std).to(device)), method, keep=kept
    )
    patches = F.normalize(method.seen[last][:, backbone.prefix :], dim=-1)  # (B, N, D)
    similar = (patches @ F.normalize(method.proxies(last), dim=-1).T).mean(1)  # (B, M)
    method.eval()
    tokens = torch.cat([kept[last], method.entering(last).expand(len(images), -1, -1)], 1)
    # (B, M)
    attention = attention_weights(backbone, tokens, last).mean(1)[:, 0, kept[last].shape[1] :]
    own = F.one_hot(method.cluster[labels.to(device)], method.clusters).bool()
    return {
        "to_own": float(attention[own].mean()),
        "to_other": float(attention[~own].mean()),
        "own_patches": float(similar[own].mean()),
        "other_patches": float(similar[~own].mean()),
    }
