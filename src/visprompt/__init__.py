"""Visual Prompting, Reproduced: visual prompt tuning on one block loop, and the records of what it gave."""

from .auditing import audit
from .backbones import load_backbone
from .errors import BadInput
from .manifests import artifacts, published
from .methods import METHODS, build_method
from .methods.saving import load_method, merged, save_method
from .metrics.cost import count_flops, count_parameters
from .results import claims
from .tasks import load_task
from .tuning import Recipe, tune
from .tuning import fit_model as fit

__all__ = [
    "METHODS", "BadInput", "Recipe", "artifacts", "audit", "build_method", "claims", "count_flops", "count_parameters",
    "fit", "load_backbone", "load_method", "load_task", "merged", "published", "save_method", "tune",
]  # fmt: skip
