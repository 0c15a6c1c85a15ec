"""A method's learning rate for the quick recipe: tried on one task, chosen by validation
accuracy."""

import functools
from collections.abc import Collection, Mapping, Sequence

from visprompt import paths
from visprompt.data.tasks import load_task
from visprompt.errors import choose
from visprompt.manifests import load_yaml
from visprompt.methods import METHODS, build_method
from visprompt.models.backbones import load_backbone
from visprompt.progress import progress
from visprompt.records import Record
from visprompt.training.loop import tune
from visprompt.training.recipe import Recipe

from .case import rate_name

NETWORK, TASK = "vit_micro_patch4_24", "position"  # where the methods differ most
TRIED = {"weights": (0.001, 0.003, 0.01, 0.03, 0.1), "prompts": (0.01, 0.03, 0.1, 0.3, 1.0)}
# methods that were tried with the rates of weights
WEIGHTS = ("bias", "lora", "adapter", "adaptformer", "ssf")
STEP = 5.0  # by which a search of a learning rate goes on outward
# Their rates were chosen for the chapter on AP, by block and by backbone.
ELSEWHERE = ("linear-probe", "full-finetune", "norm-tune", "vp", "ap")


def recipe_at(slug: str, rate: float | None) -> Recipe:
    """The quick recipe of a method at a rate; None: at its own. A method that is not in the recipe
    yet has the rest."""
    recipe = load_yaml(paths.MANIFESTS / "recipes.yaml")["quick"]
    own = recipe["vit"].get(slug, {})
    return Recipe(
        **{**recipe["common"], **own, **({} if rate is None else {rate_name(slug): rate})}
    )


@functools.cache
def where() -> tuple:
    """The backbone and the task that rates are tried on."""
    return load_backbone(NETWORK, "pretrained"), load_task(TASK)


def search(slug: str, rates: Sequence[float] = (), run: bool = True) -> dict[float, Record]:
    """Rate -> record of the run with it, seed 0; without `run` only those that there are.

    Args:
        rates: those to try; none: the five of its kind, or of both kinds for a method that was not
            searched before.

    Raises:
        BadInput: an unknown method, or an impossible rate.
    """
    choose("method", slug, METHODS)
    known = slug in load_yaml(paths.MANIFESTS / "recipes.yaml")["quick"]["vit"]
    both = sorted({*TRIED["weights"], *TRIED["prompts"]})
    rates = rates or (TRIED["weights" if slug in WEIGHTS else "prompts"] if known else both)
    recipes, (backbone, task), found = {rate: recipe_at(slug, rate) for rate in rates}, where(), {}
    for rate in progress(recipes, slug) if run else recipes:
        record = tune(build_method(slug, backbone, task.classes), task, recipes[rate], 0, run=run)
        if record is not None:
            found[rate] = record
    return found


def all_searched() -> dict[str, dict[float, Record]]:
    """Method -> rate -> record, of the runs that there are."""
    return {slug: search(slug, run=False) for slug in METHODS if slug not in ELSEWHERE}


def further(tried: Collection[float], best: float, middle: float, steps: int) -> float | None:
    """The learning rate with which a search goes on, beyond the end of `tried` that did best; None
    where that is no end, or `steps` away from the three around `middle`."""
    reach = STEP ** (steps + 0.5)
    if best == max(tried) and best < middle * reach:
        return float(f"{best * STEP:.6g}")
    if best == min(tried) and best > middle / reach:
        return float(f"{best / STEP:.6g}")
    return None


def below(tried: Mapping[float, float], taken: float) -> str:
    """By how many points the rate that was taken is below the best one of several, as text."""
    return f"{max(tried.values()) - tried[taken]:.1f}" if taken in tried and len(tried) > 1 else "–"
