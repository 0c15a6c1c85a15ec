"""A tuned model for other programs: one graph, from pixels to logits."""

import copy
import importlib.util
import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..checks import require
from ..errors import BadInput
from .base import TunedModel


class Plain(nn.Module):
    """Images (B, 3, S, S), RGB of 0 to 255 -> logits (B, num_classes).

    Normalisation is inside, and the standardisation of features is folded into the head.
    """

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self, model: TunedModel) -> None:
        super().__init__()
        self.model = copy.deepcopy(model).cpu().eval().requires_grad_(False)
        head, model = self.model.head, self.model
        head.weight.div_(model.feature_scale)
        head.bias.sub_(head.weight @ model.feature_mean)
        for name in ("mean", "std"):
            values = torch.tensor(getattr(model.source, name))
            self.register_buffer(name, 255 * values.view(3, 1, 1))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Images (B, 3, S, S), RGB of 0 to 255 -> logits (B, num_classes)."""
        model = self.model
        return model.head(model.features(model.below((images - self.mean) / self.std)))


def export(model: TunedModel, path: str | Path) -> dict[str, str]:
    """Write a model as one graph: pixels (B, 3, S, S), float32 RGB of 0 to 255 -> logits.

    A .pt2 file is read by `torch.export.load`, an .onnx file by ONNX Runtime; the second needs the
    packages onnx and onnxscript. Any number of images is taken at once, and the graph computes on
    the processor.

    Returns:
        The file's metadata, all texts: `class_names` (JSON; of a model that was fitted to a task),
        `image_size`, `resize`, `method`, `backbone`. In a .pt2 file it is the extra file
        "visprompt.json", in an .onnx file `metadata_props`.
    """
    require("the model", model, TunedModel)
    require("the path of an exported model", path, str | Path)
    path, task = Path(path), model.task or {}
    if path.suffix not in (".pt2", ".onnx"):
        raise BadInput(f"give a file name that ends in .pt2 or .onnx, not {path.name!r}.")
    facts = {
        "class_names": json.dumps(task.get("class_names")),
        "image_size": str(model.source.image_size),
        "resize": task.get("resize", "direct"),
        "method": model.slug,
        "backbone": model.source.name,
    }
    side = model.source.image_size
    # two images, since a batch of one would be taken for a constant
    plain, images = Plain(model).eval(), torch.zeros(2, 3, side, side)
    shapes = ({0: torch.export.Dim("batch")},)
    if path.suffix == ".pt2":
        program = torch.export.export(plain, (images,), dynamic_shapes=shapes)
        torch.export.save(program, path, extra_files={"visprompt.json": json.dumps(facts)})
        return facts
    if importlib.util.find_spec("onnxscript") is None:
        why = "an .onnx file needs two packages; install them (pip install onnx onnxscript), or"
        raise BadInput(f"{why} give a name that ends in .pt2.")
    found: Any = torch.onnx.export(plain, (images,), dynamo=True, dynamic_shapes=shapes)
    found.model.metadata_props.update(facts)
    found.save(path)
    return facts
