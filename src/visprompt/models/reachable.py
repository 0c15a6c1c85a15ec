"""Ask for unreachable weights once per run of the book, not once per notebook."""

import os
from pathlib import Path

import torch

from .. import paths
from ..errors import BadInput
from ..records import write_whole
from .backbones import Backbone
from .loading import load_backbone

RUN = "VISPROMPT_RUN"  # names a run of the book; the Snakefile sets it


def backbone_once(
    name: str, weights: str | Path | None = None, *, device: str | torch.device = "cpu", **more
) -> Backbone:
    """`load_backbone`, not tried again once fetching weights has failed in this run of the book.

    Raises:
        BadInput: as `load_backbone`.
    """
    run, note = os.environ.get(RUN), paths.ROOT / "build" / "unreachable" / name
    if run and weights == "pretrained" and note.is_file():
        asked, _, why = note.read_text(encoding="utf-8").partition("\n")
        if asked == run:
            raise BadInput(why)
    try:
        return load_backbone(name, weights, device=device, **more)
    except BadInput as error:
        if run and weights == "pretrained" and "cannot be fetched" in str(error):
            write_whole(note, f"{run}\n{error}")
        raise
