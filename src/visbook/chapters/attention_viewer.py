"""The attention viewer: every kept map of the class token and of the prompts, for a reader to leaf
through."""

import base64
import html
import io
import json
from collections.abc import Mapping

import numpy as np
from PIL import Image

from visprompt.records import Record

from .chapter import Chapter
from .davpt_attention import assigned, maps

# prompts of a run that can be looked at, beside those of the images' own classes: a page must stay
# light
MOST = 10
WITHOUT = (
    "With scripts, the maps of all blocks, prompts and kept test images can be leafed through here."
)


def viewer(chapter: Chapter, kept: Mapping[str, Record]) -> str:
    """Where a reader chooses a run, an image and a block, as HTML.

    Args:
        kept: name of a run -> its record of kind "attention".
    """
    runs = {
        name: {**packed(record), "pictures": pictures(chapter, record)}
        for name, record in kept.items()
    }
    given = json.dumps(runs).replace("<", r"\u003c")
    return (
        f'<div class="vp-maps"><script '
        f'type="application/json">{given}</script><p>{html.escape(WITHOUT)}</p></div>'
    )


def packed(record: Record) -> dict:
    """Maps as bytes, 255 for the largest weight of each: [image][block][class token,
    prompts][patch], with those weights."""
    labels, blocks = record.values["labels"], len(record.values["entropy"])
    found = np.array(
        [[np.vstack(maps(record, i, block)) for block in range(blocks)] for i in range(len(labels))]
    )
    own = [assigned(record, i) for i in range(len(labels))]
    prompts = sorted({*range(found.shape[2] - 1)[:MOST], *own} - {None})
    found = found[:, :, [0, *(1 + prompt for prompt in prompts)]]
    most = found.max(-1, keepdims=True)
    levels = (
        np.divide(255 * found, most, out=np.zeros_like(found), where=most > 0)
        .round()
        .astype(np.uint8)
    )
    return {
        "shape": found.shape,
        "levels": base64.b64encode(levels.tobytes()).decode(),
        "most": most[..., 0].round(4).tolist(),
        "labels": labels,
        "own": own,
        "prompts": prompts,
    }


def pictures(chapter: Chapter, record: Record) -> list[str]:
    """The test images of a record, as addresses that hold the picture itself."""
    size, found = chapter.lab.backbone(record.settings["backbone"]).image_size, []
    for image in chapter.lab.task(record.settings["task"], size).test[0][record.settings["images"]]:
        buffer = io.BytesIO()
        Image.fromarray(np.asarray(image.permute(1, 2, 0))).save(buffer, "PNG")
        found.append(f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}")
    return found


def show(chapter: Chapter, kept: Mapping[str, Record]) -> None:
    """Display the viewer with its evidence."""
    chapter.page.present(
        viewer(chapter, kept),
        evidence="trend",
        how="Softmax weights, mean over heads.",
        records=[*kept.values()],
        caption="Attention to the patches, each map from 0 to its own largest weight, "
        "which is printed below it.",
        cell="maps",
    )
