"""Segmentation tasks, drawn or in folders of the official layout: images with a class per pixel."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from .. import paths
from ..errors import BadInput, choose
from ..manifests import Entries
from . import catalogue
from .folders import task_folder
from .pictures import reason, shown
from .raw_layouts import inside, needed
from .scenes import IGNORED, scenes

# of a folder's training pictures every 50th is for validation; the published validation split is
# the test
HELD_OUT = 50
Pair = tuple[torch.Tensor, torch.Tensor]  # a picture (3, H, W) uint8 and its mask (H, W) uint8


class Drawn(Sequence):
    """Images (N, 3, S, S) and masks (N, S, S), uint8, in memory and of one size."""

    def __init__(self, pictures: torch.Tensor, masks: torch.Tensor):
        self.pictures, self.masks = pictures, masks

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, number: int) -> Pair:  # type: ignore[override]
        return self.pictures[number], self.masks[number]

    def identity(self) -> bytes:
        """The bytes that identify its content."""
        return self.pictures.numpy().tobytes() + self.masks.numpy().tobytes()


class Files(Sequence):
    """Pairs of image and mask files, read on access."""

    def __init__(
        self,
        rows: list[tuple[Path, Path]],
        classes: int,
        read_mask: Callable[[Path], np.ndarray],
        root: Path,
    ):
        self.rows, self.classes, self.read_mask, self.root = rows, classes, read_mask, root

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> Pair:  # type: ignore[override]
        picture, mask = self.rows[number]
        where = f"picture {shown(picture)}"
        try:
            with Image.open(picture) as opened:
                pixels = torch.from_numpy(np.array(opened.convert("RGB"))).permute(2, 0, 1)
            where = f"mask {shown(mask)}"
            labels = torch.from_numpy(self.read_mask(mask))
        except (OSError, ValueError, SyntaxError) as error:
            if isinstance(error, BadInput):
                raise
            raise BadInput(
                f"{where} cannot be read ({reason(error)}); fetch the data set again."
            ) from error
        if labels.shape != pixels.shape[1:]:
            sizes = [f"{side.shape[-1]} x {side.shape[-2]}" for side in (labels, pixels)]
            raise BadInput(
                f"{where} is {sizes[0]} pixels and its picture {sizes[1]}; give a mask of "
                f"the picture's size."
            )
        return pixels, labels

    def identity(self) -> bytes:
        """Names and contents of the files: a gigabyte takes a second or two."""
        return "".join(
            f"{path.relative_to(self.root)} {sha256(path.read_bytes()).hexdigest()}\n"
            for row in self.rows
            for path in row
        ).encode()


@dataclass(frozen=True, eq=False)
class SegmentationTask:
    """Three splits of images with masks; a mask has labels from 0, or IGNORED."""

    name: str
    class_names: tuple[str, ...]
    train: Sequence[Pair]
    val: Sequence[Pair]
    test: Sequence[Pair]

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @cached_property
    def fingerprint(self) -> str:
        """Twelve hex digits over the name and all splits."""
        digest = sha256(self.name.encode())
        for split in (self.train, self.val, self.test):
            digest.update(split.identity())  # type: ignore[attr-defined]
        return digest.hexdigest()[:12]


def drawn_tasks() -> dict[str, dict]:
    """Name -> description of the drawn segmentation tasks of data_manifests/tasks.yaml."""
    return Entries(paths.MANIFESTS / "tasks.yaml", "segmentation")


def load_segmentation(name: str, data_dir: str | Path | None = None) -> SegmentationTask:
    """A drawn task, or one of a data set in data_dir, in a folder of its name or an alias.

    Raises:
        BadInput: unknown name, missing or unreadable files, an image without a mask or a mask
            without an image.
    """
    drawn = drawn_tasks()
    if name in drawn:
        about = drawn[name]
        splits = [
            stack(*scenes(name, count, about["seed"], stream))
            for stream, count in enumerate(about["splits"])
        ]
        return SegmentationTask(name, tuple(about["classes"]), *splits)
    known = {
        task: dataset
        for dataset in catalogue.datasets().values()
        if dataset.masks
        for task in dataset.tasks
    }
    dataset = known[choose("segmentation task", name, [*drawn, *known])]
    if data_dir is None:
        raise BadInput(
            f"{name} lies in a folder; give data_dir, and see: visprompt data info {dataset.name}."
        )
    own = next(
        (
            other
            for other in (name, dataset.name, *dataset.aliases)
            if (Path(data_dir) / other).is_dir()
        ),
        name,
    )
    root = task_folder(data_dir, own, drawn)
    raw = RAW[dataset.masks](root, dataset, name)
    names, read = raw.class_names(), raw.reader()
    train, test = (Files(rows, len(names), read, root) for rows in raw.splits())
    part = lambda wanted: Files(
        [row for i, row in enumerate(train.rows) if (i % HELD_OUT == 0) == wanted],
        len(names),
        read,
        root,
    )
    return SegmentationTask(name, tuple(names), part(False), part(True), test)


def stack(pictures: np.ndarray, masks: np.ndarray) -> Drawn:
    """Drawn images (N, S, S, 3) and masks (N, S, S) as a split."""
    return Drawn(torch.from_numpy(pictures.transpose(0, 3, 1, 2).copy()), torch.from_numpy(masks))


def pairs(
    pictures: Path, masks: Path, names: Sequence[str] | None = None, ending: str = ".png"
) -> list[tuple[Path, Path]]:
    """Each picture of a folder with the mask of the same name, sorted.

    Args:
        names: only these; None for all in either folder.
        ending: of the masks' file names.

    Raises:
        BadInput: one of a pair is missing, or there is none at all.
    """
    together = [
        {path.stem: path for path in folder.glob(f"*{end}")}
        for folder, end in ((pictures, ".jpg"), (masks, ending))
    ]
    names = sorted(together[0].keys() | together[1].keys()) if names is None else names
    for name, (mine, folder, what) in itertools.product(
        names, zip(together, (pictures, masks), ("picture", "mask"))
    ):
        if name not in mine:
            raise BadInput(
                f"{shown(folder)} has no {what} of {shown(name)}; fetch the data set "
                f"again, or take its pair away."
            )
    if not names:
        raise BadInput(f"{shown(pictures)} holds no picture; fetch the data set again.")
    return [(together[0][name], together[1][name]) for name in names]


def read_png(path: Path) -> np.ndarray:
    """The values of a single-channel PNG, (H, W)."""
    with Image.open(path) as opened:
        if opened.mode not in ("L", "P", "I", "I;16"):
            raise BadInput(
                f"mask {shown(path)} has colours (mode {opened.mode}); give one number a pixel."
            )
        return np.array(opened).astype(np.int64)


def relabelled(
    table: np.ndarray, read: Callable[[Path], np.ndarray]
) -> Callable[[Path], np.ndarray]:
    """A mask reader that maps values to labels by a table; -1 marks values that must not occur."""

    def reader(path: Path) -> np.ndarray:
        numbers = read(path)
        labels = np.full(numbers.shape, -1)
        known = (numbers >= 0) & (numbers < len(table))
        labels[known] = table[numbers[known]]
        if (labels < 0).any():
            wrong = int(numbers[labels < 0][0])
            raise BadInput(
                f"mask {shown(path)} has the unknown label {wrong}; the data set has 0 to "
                f"{len(table) - 1}."
            )
        return labels.astype(np.uint8)

    return reader


class Ade20k:
    """ADE20K: images/training/*.jpg, annotations/training/*.png, and validation; 0 is ignored."""

    def __init__(self, root: Path, dataset: catalogue.DataSet, task: str):
        self.root, self.classes = root, dataset.tasks[task]["classes"]

    def class_names(self) -> list[str]:
        """The last column of objectInfo150.txt."""
        lines = needed(self.root, "objectInfo150.txt").read_text(encoding="utf-8").splitlines()[1:]
        names = [line.split("\t")[-1].strip() for line in lines if line.strip()]
        if len(names) != self.classes:
            raise BadInput(
                f"objectInfo150.txt in {shown(self.root)} has {len(names)} classes, not "
                f"{self.classes}."
            )
        return names

    def reader(self) -> Callable[[Path], np.ndarray]:
        return relabelled(np.array([IGNORED, *range(self.classes)]), read_png)

    def splits(self) -> list[list[tuple[Path, Path]]]:
        """Pairs of the published training and validation splits."""
        parts = "training", "validation"
        return [
            pairs(needed(self.root, "images", p), needed(self.root, "annotations", p))
            for p in parts
        ]


class PascalContext:
    """PASCAL Context: VOC 2010's pictures and lists, with masks in one of two forms.

    trainval/*.mat has 459 labels, SegmentationClassContext/*.png 60. The 459 are mapped to the 59
    commonly used; all others are background, which is class 0 of 60 classes, or ignored with 59.
    """

    LABELS = 459

    def __init__(self, root: Path, dataset: catalogue.DataSet, task: str):
        self.root, self.ids, self.background = (
            root,
            dataset.ids,
            dataset.tasks[task]["classes"] == len(dataset.ids) + 1,
        )
        self.converted = inside(root, "SegmentationClassContext")

    def class_names(self) -> list[str]:
        """The manifest's names, in the order of their numbers."""
        names = sorted(self.ids, key=self.ids.get)
        return ["background", *names] if self.background else names

    def reader(self) -> Callable[[Path], np.ndarray]:
        labels = np.arange(len(self.ids) + 1)
        labels = labels if self.background else np.where(labels == 0, IGNORED, labels - 1)
        if self.converted:
            return relabelled(labels, read_png)
        table = np.full(self.LABELS + 1, labels[0])
        table[sorted(self.ids.values())] = labels[1:]
        return relabelled(table, read_mat)

    def splits(self) -> list[list[tuple[Path, Path]]]:
        """Pairs of VOC 2010's training and validation lists that have a mask."""
        folder, ending = (
            (self.converted, ".png") if self.converted else (needed(self.root, "trainval"), ".mat")
        )
        annotated = {path.stem for path in folder.glob(f"*{ending}")}
        pictures, parts = needed(self.root, "JPEGImages"), []
        for part in ("train", "val"):
            listed = needed(self.root, "ImageSets", "Main", f"{part}.txt").read_text().split()
            names = [name for name in listed if name in annotated]
            if not names:
                raise BadInput(
                    f"{shown(folder)} annotates no picture of {part}.txt; fetch the data set again."
                )
            parts.append(pairs(pictures, folder, names, ending))
        return parts


def read_mat(path: Path) -> np.ndarray:
    """The label map (H, W) of one of PASCAL Context's MATLAB files."""
    from scipy.io import loadmat  # slow to import

    content = loadmat(path)
    if "LabelMap" not in content:
        raise BadInput(f"mask {shown(path)} holds no LabelMap; fetch the data set again.")
    return content["LabelMap"].astype(np.int64)


# a manifest names its form under `masks`
RAW: dict[str, Any] = dict(zip(catalogue.MASKS, (Ade20k, PascalContext), strict=True))
