"""How a method is fitted: the fields of a recipe, and the named recipes of `recipes.yaml`."""

import math
import typing
from dataclasses import asdict, dataclass, fields, replace
from typing import Literal

from .. import paths
from ..checks import NotNegative, Share, require
from ..data.originals import WHOLE_CROPS
from ..errors import BadInput, choose
from ..manifests import load_yaml
from ..methods import METHODS, TunedModel
from ..models import embedded, pooling

# other codes' words
HABITS = {"lr": "learning_rate", "wd": "weight_decay", "bs": "batch_size", "adamw": "adam"}


@dataclass(frozen=True)
class Recipe:
    """How a method is fitted.

    Normalisation, checkpoint, resize rule and the choice of the reported epoch differ silently in
    this field; they are fields here or in the record.

    Raises:
        BadInput: an unknown field, a value of the wrong type, or an impossible one.
    """

    # of the method's parameters; None: the method's own (recipes.yaml)
    learning_rate: float | None = None
    # on standardised features; a tenth leaves prompts below the linear probe; None: same
    head_rate: float | None = 0.02
    optimizer: str = "adam"  # AP Section 6.1
    weight_decay: float = 0.0  # "without weight decay" (AP, Appendix A)
    epochs: int = 15  # 375 steps on 800 images
    batch_size: int = 32  # AP uses 128 on sets of thousands; 800 images want more steps an epoch
    warmup: float = 0.1  # share of the steps
    # as on VTAB; "crop and flip" of the stored images; of the originals, see `data.originals`
    augmentation: str = "none"
    standardise: bool = True  # the head sees features with the training set's mean and scale
    selection: str = "last epoch"  # never the best epoch on the test set
    # "bf16" computes in it where autocast does; weights and their updates stay float32
    precision: str = "float32"
    cache_gib: float = 2.0  # larger activations are recomputed batch by batch
    # What published recipes ask besides: `recipe_extras.within` adds it around the plain loop.
    # the head's own weight decay (SPT, DA-VPT); None: weight_decay
    head_decay: NotNegative | None = None
    # what no weight decay falls on (VPT: head bias)
    spared: Literal["nothing", "head bias", "one-dimensional"] = "nothing"
    # "cosine" runs below the warm-up too; the others warm up first, then run a whole cosine. A
    # warm-up "from 0" takes its first step at rate 0; "by epoch" moves once an epoch
    schedule: Literal[
        "cosine",
        "warm-up, then cosine",
        "warm-up, then cosine, by epoch",
        "warm-up from 0, then cosine",  # SPT, DA-VPT
        "warm-up from 0, then cosine, by epoch",  # VPT
    ] = "cosine"
    final_rate: NotNegative = 0.0  # where such a whole cosine ends (SPT: 1e-8, DA-VPT: 1e-9)
    last_batch: Literal["kept", "dropped"] = "kept"  # of an epoch, if not full (SPT: dropped)
    # of prompts entering a block, of an adapter's bottleneck (VPT, Gate-VPT, AdaptFormer: 0.1)
    dropout: Share = 0.0
    drop_path: Share = 0.0  # of the last block's two branches, rising from 0 at the first (DA-VPT)
    # of deviation 0.01; 0.02 (SPT); He's, bias -4.6
    head_start: Literal["small", "truncated normal", "VPT's"] = "small"
    # the network goes through torch.compile, which on a GPU saves starts of kernels
    compile: bool = False
    # "by class": two images of each of the classes that a batch draws (DA-VPT)
    batches: Literal["shuffled", "by class"] = "shuffled"
    # each entry of a gradient is at most this far from 0 (DA-VPT: 10)
    clip: NotNegative | None = None
    # of a ViT that averages its tokens; on every other backbone it says nothing
    pooling: Literal[
        "norm, then mean",  # DA-VPT
        "mean, then norm",  # SPT, Gate-VPT, AdaptFormer
        "mean, then a fresh norm",  # VPT: the checkpoint's norm is replaced by an untrained one
    ] = "norm, then mean"
    # what is as released code has it: names of `released.DIFFERENCES`, by commas
    as_released: str = ""

    def __new__(cls, *args, **given):
        known = [f.name for f in fields(cls)]
        for name in given:
            if name not in known:
                choose("recipe field", HABITS.get(name, name), known)
                raise BadInput(f"unknown recipe field {name!r}. Write {HABITS[name]}.")
        if len(args) > len(known):
            raise BadInput(f"a recipe has {len(known)} fields; name each: Recipe({known[0]}=...).")
        return super().__new__(cls)

    def __post_init__(self):
        hints = typing.get_type_hints(type(self))
        for f in fields(self):
            require(f"recipe field {f.name}", getattr(self, f.name), hints[f.name])
        if self.optimizer in HABITS:
            raise BadInput(
                f"unknown optimizer {self.optimizer!r}. Write {HABITS[self.optimizer]!r}, "
                f"which decays weights so."
            )
        choose("optimizer", self.optimizer, ["adam", "sgd"])
        choose("selection", self.selection, ["last epoch"])
        choose("augmentation", self.augmentation, ["none", "crop and flip", *WHOLE_CROPS])
        choose("precision", self.precision, ["float32", "bf16"])
        for name in ("learning_rate", "head_rate", "epochs", "batch_size"):
            if getattr(self, name) is not None and not 0 < getattr(self, name) < math.inf:
                raise BadInput(f"recipe field {name} must be above 0, not {getattr(self, name)}.")
        for name in ("weight_decay", "cache_gib"):
            if getattr(self, name) < 0:
                raise BadInput(f"recipe field {name} must be 0 or more, not {getattr(self, name)}.")
        if not 0 <= self.warmup < 1:
            raise BadInput(
                f"recipe field warmup is a share of the steps, 0 to below 1, not {self.warmup}."
            )


def load_recipe(name: str, slug: str, is_vit: bool, **changes) -> Recipe:
    """A named recipe of `data_manifests/recipes.yaml`.

    Its common fields, then those of the method or of `other` methods, then the given changes.

    Raises:
        BadInput: unknown recipe or method, or an impossible value.
    """
    recipes = load_yaml(paths.MANIFESTS / "recipes.yaml")
    recipe = recipes[choose("recipe", name, recipes)]
    methods = recipe[
        choose(f"kind of backbone in recipe {name}", "vit" if is_vit else "resnet", recipe)
    ]
    choose(f"method of recipe {name}", slug, METHODS if "other" in methods else methods)
    return Recipe(**{**recipe["common"], **methods.get(slug, methods.get("other")), **changes})


def recorded_recipe(settings: dict) -> dict:
    """The recipe in a record's settings; a field newer than the record has its default."""
    return asdict(Recipe()) | settings["recipe"]


def settled(recipe: Recipe, slug: str, family: str) -> Recipe:
    """The recipe, with the method's own rate if it names none; see `Recipe.learning_rate`."""
    if recipe.learning_rate is not None or (
        slug == "linear-probe" and recipe.head_rate is not None
    ):
        return recipe  # a linear probe has no parameters but the head's
    return replace(
        recipe, learning_rate=load_recipe("quick", slug, family != "resnet").learning_rate
    )


def heeded(recipe: Recipe, averages: bool) -> Recipe:
    """The recipe, without an order of pooling where the backbone has none; see `pooling.averages`.

    So a run on such a backbone keeps its identity, whatever order its recipe states for others.
    """
    return recipe if averages else replace(recipe, pooling=pooling.NORM_FIRST)  # type: ignore[arg-type]


def with_own_rate(recipe: Recipe, model: TunedModel) -> Recipe:
    """The recipe, on a published network with the rate of recipe "paper" if it names none.

    The rates of recipe "quick", which `settled` takes, were chosen for the embedded networks.
    """
    if (
        recipe.learning_rate is not None
        or model.slug == "linear-probe"
        or model.source.name in embedded.networks()
    ):
        return recipe
    return replace(
        recipe,
        learning_rate=load_recipe(
            "paper", model.slug, model.source.family != "resnet"
        ).learning_rate,
    )
