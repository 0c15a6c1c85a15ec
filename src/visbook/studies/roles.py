"""Who plays the parts of the studies under a recipe: the paper's checkpoints, and its numbers of
tokens a task."""

import functools
from dataclasses import replace

from visprompt.training.protocol import protocol

from .case import Usual
from .grids import Cast, cast


def cast_for(recipe: str, profile: str, **narrowed) -> Cast:
    """The cast of a profile under a recipe of `recipes.yaml`; see `under`.

    Args:
        narrowed: what else `grids.cast` takes. A backbone that is given stays.

    Raises:
        BadInput: unknown recipe or profile.
    """
    return under(recipe, cast(profile, **narrowed))


@functools.cache
def under(recipe: str, actors: Cast) -> Cast:
    """A cast under a recipe: outside of the quick profile with its checkpoints in the place of the
    profile's own."""
    prompts = {name: Usual(count) for name, count in actors.prompts.items()}
    if actors.profile == "quick":
        return replace(actors, prompts=prompts)
    usual, own = cast(actors.profile).backbones, protocol(recipe).checkpoints
    checkpoints = {
        part: own[part]
        for part, name in actors.backbones.items()
        if part in own and name == usual[part]
    }
    return replace(actors, prompts=prompts, backbones=actors.backbones | checkpoints)
