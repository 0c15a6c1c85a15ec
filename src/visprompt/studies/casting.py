"""Who plays the parts of the studies under a recipe: the paper's checkpoints, and its numbers of tokens a task."""

from dataclasses import replace

from ..training.protocol import protocol
from .grids import Cast, cast
from .sweeps import Usual


def cast_for(recipe: str, profile: str, **narrowed) -> Cast:
    """The cast of a profile; in the paper profile with the checkpoints of a recipe.

    Args:
        recipe: a name in `recipes.yaml`.
        narrowed: what else `grids.cast` takes. A backbone that is given stays.

    Raises:
        BadInput: unknown recipe or profile.
    """
    found, own = cast(profile, **narrowed), protocol(recipe)
    prompts = {name: Usual(count) for name, count in found.prompts.items()}
    if profile != "paper" or narrowed.get("backbone") is not None:
        return replace(found, prompts=prompts)
    checkpoints = {part: name for part, name in own.checkpoints.items() if part in found.backbones}
    return replace(found, prompts=prompts, backbones=found.backbones | checkpoints)
