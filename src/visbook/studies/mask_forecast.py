"""Operations that planned runs of segmentation take, in training and in the tests, for the
smallest pictures that a recipe allows."""

import functools

import torch
from torch.utils.flop_counter import FlopCounterMode

from visprompt.data import catalogue
from visprompt.data.mask_tasks import HELD_OUT, drawn_tasks
from visprompt.models.backbones import load_backbone
from visprompt.models.intermediates import grid, resized
from visprompt.records import recorded
from visprompt.training.decoders import build_decoder
from visprompt.training.segmentation_recipe import SegmentationRecipe
from visprompt.training.windows import starts

from .forecast import TRAINED_BACKWARD, Marks, backward_of
from .plan import Planned, mask_lab


def mask_operations(run: Planned) -> float | None:
    """Operations of a run of segmentation: every step and every test; None where no manifest has
    the pictures' number.

    A step counts the whole backbone, what flows back through it, and every head forward and twice
    back. A test picture is taken as a square, which has the fewest windows.
    """
    slug, ((train, val, test), classes) = run.run.method, pictures(run.run.task)
    if train is None:
        return None
    recipe = mask_lab(run.profile).resolve(run.run).recipe
    one = passes(run.run.backbone, recipe.crop, classes, recipe.decoder)
    forward = one["backbone"] * (1 + run.run.settings.get("prompt_tokens", 0) / one["tokens"])
    back = 0 if slug == "linear-probe" else backward_of(slug)
    step = forward * (1 + back) + one["heads"] * (1 + TRAINED_BACKWARD)
    many = windows(recipe, recipe.evaluation.scales) * (1 + recipe.evaluation.flip)
    seen = (test + val) * windows(recipe, (1.0,)) + test * many
    return recipe.iterations * recipe.batch_size * step + seen * (forward + one["primary"])


def pictures(task: str) -> tuple[tuple[int | None, int | None, int | None], int]:
    """Pictures of train, val and test of a task as `load_segmentation` splits it, None where no
    manifest says, and classes."""
    if task in drawn_tasks():
        return tuple(drawn_tasks()[task]["splits"]), len(drawn_tasks()[task]["classes"])
    about = catalogue.find(task).tasks[task]
    if not {"train", "val"} <= set(about.get("splits", ())):
        return (None, None, None), about["classes"]
    train, test = about["splits"]["train"], about["splits"]["val"]
    return (train - -(-train // HELD_OUT), -(-train // HELD_OUT), test), about["classes"]


def windows(recipe: SegmentationRecipe, scales: tuple[float, ...]) -> int:
    """How many windows cover a square test picture at all scales together."""
    short = recipe.short_side or recipe.crop
    sides = [max(round(scale * short), recipe.crop) for scale in scales]
    if recipe.evaluation.mode == "whole":
        return len(sides)
    return sum(len(starts(side, recipe.crop, recipe.evaluation.stride)) ** 2 for side in sides)


@functools.cache
def passes(name: str, size: int, classes: int, decoder) -> dict:
    """Operations of one picture of size x size forward, counted on shapes alone once, and kept as a
    record.

    Returns:
        {"backbone", "heads", "primary", "tokens"}: of the network, of all heads of the decoder, of
        the last of them, and the tokens that enter a block.
    """
    plain = name.partition(".")[0]

    def compute():
        backbone, marks = resized(load_backbone(plain, device="meta"), size), Marks()
        heads, (rows, columns) = (
            build_decoder(decoder, backbone, classes).to("meta"),
            grid(backbone),
        )
        backbone.trims = False  # every token is read
        with FlopCounterMode(display=False) as marks.counter, torch.no_grad():
            x = backbone.run(backbone.stem(torch.empty(1, 3, size, size, device="meta")))
            marks.before_block(0, x)
            for head in heads.eval():
                head(torch.empty(1, backbone.width, rows, columns, device="meta"))
                marks.before_block(0, x)
        found, all_heads = marks.seen[0], marks.seen[-1] - marks.seen[0]
        return {
            "backbone": found,
            "heads": all_heads,
            "primary": marks.seen[-1] - marks.seen[-2],
            "tokens": x.shape[1],
        }

    settings = {
        "what": "segmentation forward",
        "backbone": plain,
        "image_size": size,
        "classes": classes,
        "decoder": decoder,
    }
    return (
        recorded("count", settings, compute, run=False) or recorded("count", settings, compute)
    ).values
