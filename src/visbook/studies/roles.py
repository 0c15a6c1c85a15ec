"""What fills the roles of the studies under a recipe: the paper's checkpoints, and its numbers of
tokens a task."""

import functools
from dataclasses import replace

from visprompt.training.protocol import protocol

from .case import Usual
from .grids import Scope, scope_of


def recipe_scope(recipe: str, profile: str, **narrowed) -> Scope:
    """The scope of a profile under a recipe of `recipes.yaml`; see `under`.

    Args:
        narrowed: what else `grids.scope_of` takes. A backbone that is given stays.

    Raises:
        BadInput: unknown recipe or profile.
    """
    return under(recipe, scope_of(profile, **narrowed))


@functools.cache
def under(recipe: str, scope: Scope) -> Scope:
    """A scope under a recipe: outside of the quick profile with its checkpoints in the place of the
    profile's own."""
    prompts = {name: Usual(count) for name, count in scope.prompts.items()}
    if scope.profile == "quick":
        return replace(scope, prompts=prompts)
    usual, own = scope_of(scope.profile).backbones, protocol(recipe).checkpoints
    checkpoints = {
        part: own[part]
        for part, name in scope.backbones.items()
        if part in own and name == usual[part]
    }
    return replace(scope, prompts=prompts, backbones=scope.backbones | checkpoints)
