"""Visual Prompting, Reproduced: visual prompt tuning on one block loop, and the records of what it gave.

The rooms, each of which imports only those before it: `errors`, `progress`, `checks`, `chance`, `paths`, `words`;
`manifests`, `records`, `papers`, `data`, `models`, `methods`, `training`, `measure`, `theory`, `auditing`, `studies`,
`pages`, `chapters`, `site`.
"""

import importlib

HOMES = {  # what `import visprompt as vp` offers, each loaded when it is first asked for
    "METHODS": "methods",
    "build_method": "methods",
    "BadInput": "errors",
    "Recipe": "training.recipe",
    "artifacts": "papers",
    "published": "papers",
    "audit": "auditing",
    "claims": "site.results",
    "count_flops": "measure.cost",
    "count_parameters": "methods.parameters",
    "fit": "training.loop",
    "load_backbone": "models.loading",
    "load_method": "methods.saving",
    "merged": "methods.saving",
    "save_method": "methods.saving",
    "load_task": "data.tasks",
    "make_task": "data.datasets",
    "predict": "training.prediction",
    "runs": "studies.runs",
    "tune": "training.loop",
}
RENAMED = {"fit": "fit_model"}
CHECKED = ("count_flops", "count_parameters", "fit", "tune")  # what they are given is looked at first
OF_A_TASK = ("fit", "tune")  # whose images may have been changed in place
__all__ = sorted(HOMES)


def __getattr__(name: str):
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f".{HOMES[name]}", __name__), RENAMED.get(name, name))
    if name in OF_A_TASK:
        found = importlib.import_module(".data.tasks", __name__).seen_anew(found)
    if name in CHECKED:
        found = importlib.import_module(".checks", __name__).checked(name, found)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *HOMES})
