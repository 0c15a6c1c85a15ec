"""What a record describes, built again: its network, images, model and recipe, and the run itself
by today's code."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace

from visprompt import records
from visprompt.data.joining import joined
from visprompt.data.mask_tasks import load_segmentation
from visprompt.data.resizing import load_resized
from visprompt.data.tasks import Task, embedded_tasks
from visprompt.errors import BadInput
from visprompt.methods import build_method
from visprompt.models.backbones import Backbone
from visprompt.models.loading import load_backbone
from visprompt.training.decoders import Decoder
from visprompt.training.loop import tune
from visprompt.training.mask_loop import segment
from visprompt.training.recipe import Recipe
from visprompt.training.segmentation_recipe import SegmentationRecipe
from visprompt.training.segmenter import build_segmenter
from visprompt.training.windows import Evaluation

from ..timing.method_cost import measured_cost
from ..timing.side_by_side import speeds_in_turns, variants_in_turns
from . import guidance, insights

# Measurements on a run: kind -> what does it, and the settings that it takes beside those of the
# run.
MEASURED: dict[str, tuple[Callable, tuple[str, ...]]] = {
    "attention": (insights.attention_maps, ("images", "pool")),
    "clustering": (insights.clustering_times, ()),
    "epochs": (insights.test_by_epoch, ()),
    "guidance": (guidance.class_guidance, ("pool",)),
    "noise": (insights.under_noise, ("levels",)),
    "prompts": (insights.prompts_and_patches, ("images",)),
}
# those that can be run again from what their records say
KINDS = ("tune", "cost", "turns", "segment", *MEASURED)


def backbone_of(record: records.Record, weights: Mapping[str, str]) -> Backbone:
    """The backbone of a record, with the weights that it names.

    Raises:
        BadInput: these weights are not here.
    """
    name = record.settings["backbone"]
    chosen = None if record.weights.startswith("random") else weights.get(name, "pretrained")
    backbone = load_backbone(name, chosen)
    if backbone.is_vit and backbone.image_size != record.settings["image_size"]:
        backbone = load_backbone(name, chosen, image_size=record.settings["image_size"])
    # a recipe may have had other statistics than the checkpoint's
    normed = record.settings["normalisation"]
    backbone.mean, backbone.std = tuple(normed["mean"]), tuple(normed["std"])
    if backbone.fingerprint != record.weights:
        raise BadInput(
            f"record {record.id} was made with weights {record.weights} of {name}; here "
            f"are {backbone.fingerprint}. "
            f"Give the file: --weights {name}=FILE."
        )
    return backbone


def tasks_of(record: records.Record, data_dir: str | None) -> tuple[Task, Task | None]:
    """The task of a record, and the one it was prepared on or None.

    Raises:
        BadInput: their images are not those of the record.
    """
    s = record.settings

    def load(name, **size):
        resize = "direct" if s["resize"] == "none" else s["resize"]
        folder = None if name in embedded_tasks() else data_dir
        return load_resized(name, folder, image_size=s["image_size"], resize=resize, **size)

    task = load(s["task"])
    if "trained_on" in record.about:
        task = joined(task)
    elif len(task.train[1]) != s["train_size"]:
        task = load(s["task"], train_size=s["train_size"])
    other = load(s["prepared_on"]) if "prepared_on" in s else None
    if record.data.split(",")[0] != task.fingerprint:
        raise BadInput(
            f"record {record.id} was made with other images of {task.name}. Give their "
            f"folder: --data-dir."
        )
    return task, other


def ready(record: records.Record, weights: Mapping[str, str], data_dir: str | None) -> dict:
    """What `tune` and `fit` take, for a record of kind tune."""
    s = record.settings
    backbone, (task, other) = backbone_of(record, weights), tasks_of(record, data_dir)
    chosen = plain(s["method_settings"])
    model = build_method(s["method"], backbone, task.classes, **chosen)
    return {
        "model": model,
        "task": task,
        "recipe": Recipe(**s["recipe"]),
        "seed": s["seed"],
        "prepared_on": other,
    }


def again(
    record: records.Record,
    weights: Mapping[str, str] = {},
    data_dir: str | None = None,
    run: bool | str = True,
) -> records.Record:
    """The record of what an older one's settings describe, by today's code; `run` as of
    `records.recorded`."""
    if record.kind == "tune":
        return tune(**ready(record, weights, data_dir), about=record.about, run=run)
    if record.kind in MEASURED:
        return measured_again(record, weights, data_dir)
    if record.kind == "segment":
        return segmented_again(record, weights)
    s = dict(record.settings)
    if record.kind == "cost":
        return measured_cost(s.pop("backbone"), s.pop("method"), **s.pop("method_settings"), **s)
    if "variants" in s:
        return variants_in_turns(s.pop("backbone"), s.pop("variants"), **s)
    return speeds_in_turns(s.pop("backbone"), s.pop("methods"), **s)


def measured_again(
    record: records.Record, weights: Mapping[str, str], data_dir: str | None
) -> records.Record:
    """The record of a measurement on a run: the record stands for the run, and a lab that knows
    this run alone for the lab."""
    measure, names = MEASURED[record.kind]
    s = record.settings
    run = SimpleNamespace(method=s["method"], seed=s["seed"])
    given = ready(record, weights, data_dir)
    case = SimpleNamespace(about=record.about, ready=lambda: given)
    lab = SimpleNamespace(resolve=lambda run: case, prepare=lambda run: given)
    return measure(run, lab, **{name: s[name] for name in names})


def segmented_again(record: records.Record, weights: Mapping[str, str]) -> records.Record:
    """The record of a run on masks.

    Raises:
        BadInput: its images are not here, or others.
    """
    s = record.settings
    backbone, task = backbone_of(record, weights), load_segmentation(s["task"])
    if task.fingerprint != record.data:
        raise BadInput(f"record {record.id} was made with other images of {task.name}.")
    decoder, evaluation = plain(s["recipe"]["decoder"]), plain(s["recipe"]["evaluation"])
    recipe = plain(s["recipe"]) | {
        "decoder": Decoder(**decoder),
        "evaluation": Evaluation(**evaluation),
    }
    model = build_segmenter(
        s["method"], backbone, task.classes, recipe["decoder"], **s["method_settings"]
    )
    return segment(model, task, SegmentationRecipe(**recipe), s["seed"], about=record.about)


def plain(settings: Mapping) -> dict:
    """Settings as JSON has them, with lists as tuples."""
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()
    }
