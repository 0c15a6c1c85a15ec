"""How a segmenter is fitted and tested: fields, and the recipes of `segmentation_recipes.yaml`."""

import math
import typing
from dataclasses import dataclass, field, fields
from typing import Any

from .. import paths
from ..checks import require
from ..errors import BadInput, choose
from ..manifests import load_yaml
from .decoders import Decoder
from .windows import Evaluation

AUGMENTATIONS = ("none", "scale, crop, flip and colours")


@dataclass(frozen=True)
class SegmentationRecipe:
    """Steps, rates, images and inference of a segmenter.

    Images have the backbone's own normalisation.

    Raises:
        BadInput: a value of the wrong type, or an impossible one.
    """

    iterations: int = 160_000
    batch_size: int = 16
    crop: int = 512  # pixels of a side that the network sees, in training and in a window
    # pictures are brought to it before they are cut; None: as they are
    short_side: int | None = None
    long_side: int | None = None  # which they may not exceed then
    learning_rate: float | None = 0.001  # of the method's parameters
    head_rate: float = 0.01  # of the decoder
    last_rate: float = 0.0  # below which the poly schedule does not fall
    power: float = 0.9  # of the poly schedule
    schedule: str = "poly"
    warmup: float = 0.0  # share of the steps
    optimizer: str = "sgd"  # with momentum 0.9; "adam" is AdamW
    weight_decay: float = 0.0
    augmentation: str = "none"
    precision: str = "float32"
    seen_first: int = 1000  # training pictures that a method sees before the first step
    decoder: Decoder = field(default_factory=Decoder)
    evaluation: Evaluation = field(default_factory=Evaluation)

    def __post_init__(self):
        hints = typing.get_type_hints(type(self))
        for f in fields(self):
            require(f"recipe field {f.name}", getattr(self, f.name), hints[f.name])
        choose("optimizer", self.optimizer, ["adam", "sgd"])
        choose("schedule", self.schedule, ["poly"])
        choose("augmentation", self.augmentation, AUGMENTATIONS)
        choose("precision", self.precision, ["float32", "bf16"])
        above = (
            "iterations",
            "batch_size",
            "crop",
            "short_side",
            "long_side",
            "learning_rate",
            "head_rate",
            "power",
        )
        for name in (*above, "seen_first"):
            if getattr(self, name) is not None and not 0 < getattr(self, name) < math.inf:
                raise BadInput(f"recipe field {name} must be above 0, not {getattr(self, name)}.")
        for name in ("last_rate", "weight_decay"):
            if getattr(self, name) < 0:
                raise BadInput(f"recipe field {name} must be 0 or more, not {getattr(self, name)}.")
        if not 0 <= self.warmup < 1:
            raise BadInput(
                f"recipe field warmup is a share of the steps, 0 to below 1, not {self.warmup}."
            )
        if self.long_side is not None and self.long_side < (self.short_side or math.inf):
            raise BadInput(
                f"recipe field long_side needs a short_side that is no longer, not "
                f"{self.short_side}."
            )


def recipes() -> dict[str, dict]:
    """Name -> recipe as written in the file."""
    return load_yaml(paths.MANIFESTS / "segmentation_recipes.yaml")


def load_segmentation_recipe(name: str, slug: str, **changes) -> SegmentationRecipe:
    """A named recipe: common fields, those of the method or of `other` methods, then changes.

    Raises:
        BadInput: unknown recipe or field, or an impossible value.
    """
    known = recipes()
    entry = known[choose("segmentation recipe", name, known)]
    for change in changes:
        choose("recipe field", change, [f.name for f in fields(SegmentationRecipe)])
    methods = entry["methods"]
    tupled: Any = lambda part: {
        key: tuple(v) if isinstance(v, list) else v for key, v in entry[part].items()
    }
    parts = {
        "decoder": Decoder(**tupled("decoder")),
        "evaluation": Evaluation(**tupled("evaluation")),
    }
    values = {**entry["common"], **methods.get(slug, methods["other"]), **parts}
    return SegmentationRecipe(**{**values, **changes})
