"""The segmentation study: methods x tasks x seeds of data_manifests/segmentation.yaml, at the rates
validation chooses."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from visprompt import paths
from visprompt.data.mask_tasks import drawn_tasks, load_segmentation
from visprompt.errors import BadInput, choose
from visprompt.manifests import load_yaml
from visprompt.methods import METHODS
from visprompt.models.backbones import load_backbone
from visprompt.models.intermediates import resized
from visprompt.records import Record, run_all
from visprompt.training.mask_loop import segment
from visprompt.training.segmentation_recipe import SegmentationRecipe, load_segmentation_recipe
from visprompt.training.segmenter import build_segmenter


@dataclass(frozen=True)
class Cell:
    """One method on one task with one seed."""

    variant: str
    task: str
    method: str
    settings: dict = field(default_factory=dict)
    rate: float | None = None  # in place of the recipe's
    seed: int = 0


def content() -> dict:
    """The study as written."""
    return load_yaml(paths.MANIFESTS / "segmentation.yaml")


class Study:
    """The runs of a profile; the backbone and every task are loaded once."""

    def __init__(
        self,
        profile: str = "quick",
        tasks: Sequence[str] = (),
        methods: Sequence[str] = (),
        data_dir: str | None = None,
        device: str = "cpu",
        weights: str | None = "pretrained",
        changes: dict | None = None,
    ):
        profiles = content()["profiles"]
        self.profile, self.about = profile, profiles[choose("profile", profile, profiles)]
        for task in tasks:
            choose("segmentation task", task, self.about["tasks"])
        for method in methods:
            choose("method", method, METHODS)
        self.only_tasks, self.only_methods = list(tasks), list(methods)
        self.data_dir, self.device, self.weights, self.changes = (
            data_dir,
            device,
            weights,
            dict(changes or {}),
        )
        self.backbones, self.tasks = {}, {}

    def cells(self) -> list[Cell]:
        """Every method on every task, with seed 0 and the recipe's rate.

        Raises:
            BadInput: the study has none of the methods that were asked for.
        """
        found, prompts = [], self.about["prompts"]
        for task in self.only_tasks or self.about["tasks"]:
            for variant, given in content()["variants"].items():
                settings = {
                    key: prompts.get(value, value)
                    for key, value in given.items()
                    if key != "method"
                }
                if not self.only_methods or given["method"] in self.only_methods:
                    found.append(Cell(variant, task, given["method"], settings))
        if not found:
            known = ", ".join(
                dict.fromkeys(given["method"] for given in content()["variants"].values())
            )
            raise BadInput(f"the study has none of {', '.join(self.only_methods)}; it has {known}.")
        return found

    def backbone(self, size: int):
        """The backbone for pictures of a size."""
        if not self.backbones:
            loaded = load_backbone(self.about["backbone"], self.weights, device=self.device)
            self.backbones[loaded.image_size] = loaded
        if size not in self.backbones:
            self.backbones[size] = resized(next(iter(self.backbones.values())), size)
        return self.backbones[size]

    def task(self, name: str):
        """A task by name."""
        if name not in self.tasks:
            self.tasks[name] = load_segmentation(name, self.data_dir)
        return self.tasks[name]

    def recipe(self, cell: Cell) -> SegmentationRecipe:
        """The recipe of a cell."""
        changes = dict(self.changes)
        if cell.rate is not None:
            changes["head_rate" if cell.method == "linear-probe" else "learning_rate"] = cell.rate
        return load_segmentation_recipe(self.about["tasks"][cell.task], cell.method, **changes)

    def rate(self, cell: Cell) -> float:
        """A cell's own rate: the decoder's for a linear probe, which trains nothing else."""
        recipe = self.recipe(cell)
        return recipe.head_rate if cell.method == "linear-probe" else recipe.learning_rate

    def do(self, cell: Cell, compute: bool = True) -> Record | None:
        """The record of a cell, from disk or, with `compute`, by doing it."""
        recipe, task = self.recipe(cell), self.task(cell.task)
        model = build_segmenter(
            cell.method, self.backbone(recipe.crop), task.classes, recipe.decoder, **cell.settings
        )
        # no path of a machine
        data = "embedded" if cell.task in drawn_tasks() else Path(self.data_dir).resolve().name
        return segment(
            model,
            task,
            recipe,
            cell.seed,
            compute,
            {"profile": self.profile, "data": data, "evidence": "trend"},
        )

    def tried(self, cell: Cell) -> list[Cell]:
        """A cell at each rate that validation chooses from, the recipe's own first."""
        factors = sorted(self.about["factors"], key=lambda factor: abs(np.log(factor)))
        return [replace(cell, rate=self.rate(cell) * factor) for factor in factors]

    def at_best_rate(self, cell: Cell) -> Cell | None:
        """A cell at the rate with the best mIoU on validation with seed 0; None where not all were
        tried."""
        trials = [
            (trial, self.do(trial, compute=False)) for trial in self.tried(replace(cell, seed=0))
        ]
        if not all(record for _, record in trials):
            return None
        return replace(max(trials, key=lambda pair: pair[1].values["val"])[0], seed=cell.seed)

    def run(self, seeds: Sequence[int] = (), compute: bool = True) -> pd.DataFrame:
        """A row a cell and seed that has a record; with `compute` those that have none are done
        first.

        Args:
            seeds: none: the profile's.

        Returns:
            Columns backbone, task, variant, method, seed, train_size, test, test_many, val,
            constant, rate, parameters, record and cell.

        Raises:
            BadInput: runs that failed, after the last.
        """
        cells, seeds = self.cells(), list(seeds) or self.about["seeds"]
        if compute:
            self.run_some([trial for cell in cells for trial in self.tried(cell)], "search")
        chosen = {cell.variant + cell.task: self.at_best_rate(cell) for cell in cells}
        wanted = [
            replace(best, seed=seed)
            for best in chosen.values()
            if best is not None
            for seed in seeds
        ]
        if compute:
            self.run_some(wanted, "segmentation")
        found = [(cell, self.do(cell, compute=False)) for cell in wanted]
        return pd.DataFrame(
            [self.row(cell, record) for cell, record in found if record is not None]
        )

    def run_some(self, cells: Sequence[Cell], label: str) -> None:
        """Do cells in turn."""
        named = [
            f"{cell.variant} on {cell.task}, rate {self.rate(cell):g}, seed {cell.seed}"
            for cell in cells
        ]
        run_all(
            [
                (name, lambda cell=cell: self.do(cell))
                for name, cell in zip(named, cells, strict=True)
            ],
            label,
        )

    def row(self, cell: Cell, record: Record) -> dict:
        """A row of `run`."""
        values = {name: record.values[name] for name in ("test", "test_many", "val", "constant")}
        about = {
            name: record.settings[name]
            for name in ("backbone", "task", "method", "seed", "train_size")
        }
        more = {
            "rate": self.rate(cell),
            "parameters": record.values["parameters"]["total"],
            "record": record,
            "cell": cell,
        }
        return {**about, "variant": cell.variant, **values, **more}
