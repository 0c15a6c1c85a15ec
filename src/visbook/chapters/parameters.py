"""The parameters of the pages that show studies."""

from dataclasses import dataclass

from visprompt.errors import BadInput, choose
from visprompt.methods import METHODS

from ..pages.parameters import FitParameters
from ..studies import grids


@dataclass(frozen=True)
class ChapterParameters(FitParameters):
    """What such a chapter takes. In the quick profile it runs its own methods on one task, and
    shows kept records."""

    # takes the role "supervised" in place of the profile's, and no other backbone is used
    backbone: str | None = None
    # or a file for the one backbone, or [NAME=FILE, ...]
    weights: str | list[str] | None = "pretrained"
    tasks: list[str] | None = None  # none but these
    methods: list[str] | None = None  # slugs; no variants but theirs
    # Those that are run here. None: all of the chapter, but in the quick profile only where
    # backbone, tasks, methods or search is given; else its own small part alone.
    studies: list[str] | None = None
    seeds: list[int] | None = None  # those that are run here
    kept_seeds: list[int] | None = None  # those that are shown where a record has them
    search: bool | None = None  # search learning rates here; None: only in the paper profile
    data_dir: str | None = None  # folder of the tasks that are not embedded

    def __post_init__(self):
        super().__post_init__()
        quick, rehearsal = self.profile == "quick", self.profile == "rehearsal"
        narrowed = self.search or any(
            given is not None for given in (self.backbone, self.tasks, self.methods)
        )
        defaults = {
            "seeds": [0] if quick or rehearsal else [0, 1, 2, 3, 4],
            "epochs": 1 if rehearsal else None,
            "kept_seeds": sorted({0, 1, 2, 3, 4, *(self.seeds or [])}),  # what is run is shown
            "search": not quick,
            "studies": [] if quick and not narrowed else None,
        }
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        for name in ("tasks", "methods", "seeds"):
            if getattr(self, name) == []:
                raise BadInput(
                    f"parameter {name} is an empty list; leave it out to take the profile's."
                )
        for method in self.methods or []:
            choose("method", method, METHODS)
        for name in self.studies or []:
            choose("study", name, grids.studies())
