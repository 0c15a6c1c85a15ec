"""Visual Prompting, Reproduced: visual prompt tuning on one block loop, with records of each run.

The rooms, each of which imports only those before it: `errors`, `progress`, `checks`, `chance`,
`paths`, `words`; `manifests`, `records`, `papers`, `data`, `models`, `methods`, `training`,
`measure`. The book that is built on them is a package of its own, `visbook`; where it is installed,
`audit`, `claims` and `runs` are here too.
"""

import importlib
import importlib.util

HOMES = {  # what `import visprompt as vp` offers, each loaded when it is first asked for
    "METHODS": "methods",
    "build_method": "methods",
    "BadInput": "errors",
    "Recipe": "training.recipe",
    "artifacts": "papers",
    "published": "papers",
    "count_flops": "measure.cost",
    "count_parameters": "methods.parameters",
    "evaluate": "training.own_code",
    "export": "methods.exporting",
    "fit": "training.own_code",
    "load_backbone": "models.loading",
    "load_method": "methods.saving",
    "merged": "methods.saving",
    "save_method": "methods.saving",
    "load_task": "data.tasks",
    "make_task": "data.datasets",
    "name_classes": "training.own_code",
    "normalise": "data.tasks",
    "predict": "training.prediction",
    "search": "training.own_code",
    "standardise": "training.standardising",
    "tune": "training.loop",
}
# the same of visbook
OF_THE_BOOK = {"audit": "auditing", "claims": "site.results", "runs": "studies.runs"}
# what they are given is looked at first
CHECKED = ("count_flops", "count_parameters", "evaluate", "fit", "name_classes", "search")
CHECKED += ("standardise", "tune")
OF_A_TASK = ("evaluate", "fit", "search", "tune")  # whose images may have been changed in place
__all__ = sorted(HOMES)


def home(name: str) -> str:
    """The module that exports a name of `HOMES` or `OF_THE_BOOK`."""
    return f"visbook.{OF_THE_BOOK[name]}" if name in OF_THE_BOOK else f"{__name__}.{HOMES[name]}"


def __getattr__(name: str):
    if name not in {**HOMES, **OF_THE_BOOK}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in OF_THE_BOOK and importlib.util.find_spec("visbook") is None:
        raise AttributeError(
            f"vp.{name} is of the book's package. "
            f"{importlib.import_module('.errors', __name__).INSTALL_BOOK}"
        )
    found = getattr(importlib.import_module(home(name)), name)
    if name in OF_A_TASK:
        found = importlib.import_module(".data.tasks", __name__).seen_anew(found)
    if name in CHECKED:
        found = importlib.import_module(".checks", __name__).checked(name, found)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(
        {*globals(), *HOMES, *(OF_THE_BOOK if importlib.util.find_spec("visbook") else ())}
    )
