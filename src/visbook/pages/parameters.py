"""The parameters of a notebook, checked."""

import ast
import typing
from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
import yaml
from IPython import get_ipython

from visprompt import paths
from visprompt.checks import fits, require
from visprompt.errors import BadInput, choose
from visprompt.words import PROFILES

INJECTED = "# Parameters\n"  # how papermill begins the cell that it adds after the parameters cell


@dataclass(frozen=True)
class Parameters:
    """What every notebook takes; a notebook adds its own fields in a subclass."""

    profile: str = "quick"  # runs anywhere; "paper" wants the papers' backbones and data
    device: str = "cpu"  # the quick profile must not depend on an accelerator

    def __post_init__(self):
        choose("profile", self.profile, PROFILES)
        if (self.profile == "rehearsal") != paths.REHEARSAL:
            there = "in this folder, where numbers mean nothing, only the profile rehearsal runs"
            raise BadInput(
                f"{there}."
                if paths.REHEARSAL
                else "the profile rehearsal runs on a stage of its own: make rehearsal."
            )
        choose("device", self.device.split(":")[0], ["cpu", "cuda", "mps"])
        if self.device != "cpu":
            try:
                torch.empty(0, device=self.device)
            except (RuntimeError, AssertionError):  # torch asserts that it was built for the device
                raise BadInput(
                    f"torch finds no device {self.device!r} on this machine; give -p device cpu."
                ) from None

    @property
    def plan(self) -> str:
        """The profile whose lists of runs are followed: a rehearsal follows the paper's."""
        return "paper" if self.profile == "rehearsal" else self.profile


@dataclass(frozen=True)
class FitParameters(Parameters):
    """What every notebook that trains takes: fields of the recipes in place of their own."""

    epochs: int | None = None
    # None: the recipe's, or bf16 for the paper profile on a GPU
    precision: str | None = None
    compile: bool = False  # networks go through torch.compile

    @property
    def changes(self) -> dict:
        """The fields that are given."""
        given = {name: getattr(self, name) for name in ("epochs", "precision", "compile")}
        return {name: value for name, value in given.items() if value not in (None, False)}


def read_parameters(settings: type, namespace: dict, cells: Sequence[str] | None = None):
    """Turn the parameters among a notebook's variables into `settings`, a frozen dataclass.

    Only the names of `settings` are read, so that the cell that calls this can run again. Papermill
    just logs a parameter that the notebook does not know; here it is an error.

    Args:
        namespace: the notebook's `globals()`.
        cells: sources of the cells run so far, oldest first; None: those that IPython remembers.

    Raises:
        BadInput: a name that `settings` lacks, or a value of the wrong type.
    """
    hints = typing.get_type_hints(settings)
    known = [field.name for field in fields(settings)]
    for name in given_names(cells_run() if cells is None else cells):
        choose("notebook parameter", name, known)
    given = {name: namespace[name] for name in known if name in namespace}
    for name, value in given.items():
        if isinstance(value, str) and not fits(value, hints[name]):
            given[name] = value = parse(value)  # papermill -p seeds '[0]' hands over the text "[0]"
        require(f"parameter {name}", value, hints[name])
    return settings(**given)


def cells_run() -> list[str]:
    """The sources of the cells that IPython has run, oldest first; none outside of IPython."""
    history = getattr(get_ipython(), "history_manager", None)
    return list(history.input_hist_parsed) if history else []


def given_names(cells: Sequence[str]) -> list[str]:
    """The names that the newest parameters cell and papermill's newest injected cell assign.

    The variables themselves do not tell: what papermill was given as `np` is a module after the
    next cell.
    """
    injected, own = [], []
    for source in cells:
        names = assigned(source)
        if source.startswith(INJECTED):
            injected = names
        elif "profile" in names:
            own = names
    return [*own, *injected]


def assigned(source: str) -> list[str]:
    """The names that a cell of plain assignments assigns; none of any other cell."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return []
    if not all(isinstance(node, (ast.Assign, ast.AnnAssign)) for node in body):
        return []
    targets = [
        target for node in body for target in getattr(node, "targets", None) or [node.target]
    ]
    return (
        [target.id for target in targets]
        if all(isinstance(target, ast.Name) for target in targets)
        else []
    )


def parse(text: str):
    """A list or number written as text; the text itself when it is neither."""
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):  # yaml takes 2024-13-45 for a date
        return text
