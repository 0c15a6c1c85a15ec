"""One picture a method, all in one style: `sketch` has the canvas, `scenes` what pictures share, a
module a family.

A recipe's docstring is the picture's alternative text. A method without a recipe of its own is
drawn by `hooked`.
"""

import inspect

from matplotlib.figure import Figure

from visprompt.errors import choose
from visprompt.methods import METHODS

from . import adapters, added, baselines, davpt, hooked, ivpt, prompts, spt  # noqa: F401 (each enters its recipes)
from .sketch import RECIPES, WIDTH

__all__ = ["RECIPES", "WIDTH", "alt", "draw"]


def recipe_of(name: str):
    """The recipe of a method, or of another entry of `RECIPES`. Raises: BadInput: there is no such
    picture."""
    choose("picture", name, [*RECIPES, *METHODS])
    return RECIPES.get(name) or hooked.recipe(name)


def draw(name: str) -> Figure:
    """The picture of a method, or of another entry of `RECIPES`. Raises: BadInput: there is no such
    picture."""
    return recipe_of(name)()


def alt(name: str) -> str:
    """What there is to see on a picture, in words."""
    return " ".join(inspect.getdoc(recipe_of(name)).split())
