"""Published layouts of whole data sets: those of AP's Table A1; larger ones are in `fine_layouts`.

Each class reads one published form: class names, and the pictures of train, of val if there is one,
and of test. `published_parts.shares` takes from them what a benchmark uses. The counts of AP's
Table A1 are those of the lists that came with CoOp (Zhou et al., 2022), `split_zhou_*.json`: if
such a file is in the folder, it decides.
"""

import csv
import io
import json
import pickle
import pickletools
import threading
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from ..errors import BadInput
from .fine_layouts import Birds, Cars, Dogs, ImageNet, INaturalist
from .pictures import shown
from .published_parts import (
    Full,
    Pools,
    classes_of,
    drawn,
    fifths,
    folders_of,
    lines,
    matlab,
    pictures_of,
)
from .raw_layouts import Rows, inside, needed
from .unpacking import unpack


class Listed(Full):
    """CoOp's lists: path, label and class name of each picture of train, val and test."""

    name, wants = "CoOp's lists", "split_zhou_*.json"
    NAMES = ((wants,),)

    @classmethod
    def pools(cls, root: Path) -> Pools:
        path = needed(root, cls.wants)
        content = json.loads(path.read_text(encoding="utf-8"))
        first = content["train"][0][0]
        parts = first.split("/")
        base = needed(root, *parts).parents[len(parts) - 1]
        names = {
            label: name for part in ("train", "val", "test") for _, label, name in content[part]
        }
        if sorted(names) != list(range(len(names))):
            raise BadInput(f"{shown(path)} leaves out labels below {max(names)}; fetch it again.")
        every = [
            [(base / file, label) for file, label, _ in content[part]]
            for part in ("train", "val", "test")
        ]
        return [names[label] for label in sorted(names)], *every  # type: ignore[return-value]


READING = threading.Lock()


class Arrays(pickle.Unpickler):
    """Unpickles arrays, texts, numbers, lists and dictionaries, and nothing that runs code."""

    KNOWN = {
        "_reconstruct": ("numpy._core.multiarray",),
        "ndarray": ("numpy",),
        "dtype": ("numpy",),
        "encode": ("_codecs",),
    }

    def __init__(self, path: Path, content: bytes):
        super().__init__(io.BytesIO(content), encoding="bytes")
        self.path = path

    def find_class(self, module: str, name: str):
        home = module.replace("numpy.core", "numpy._core")
        if home not in self.KNOWN.get(name, ()):
            what = shown(f"{module}.{name}")
            raise BadInput(
                f"{shown(self.path)} names {what}, which no such file does; do not use it."
            )
        return super().find_class(home, name)


@lru_cache(maxsize=2)
def batch(path: Path) -> dict:
    """A CIFAR file, its pictures as (N, 3072) uint8.

    Raises:
        BadInput: it is damaged, or would run code.
    """
    content = path.read_bytes()
    try:
        for code, number, _ in pickletools.genops(content):
            # for which Python would take memory
            if code.name.endswith("PUT") and number > len(content):
                raise ValueError(f"it has no {number:,} parts")
        entries = {key.decode(): value for key, value in Arrays(path, content).load().items()}
        pictures = entries.get("data", np.empty((0, 3072), np.uint8))
        if pictures.dtype != np.uint8 or pictures.shape != (len(pictures), 3072):
            raise ValueError("its pictures are not 32 x 32 x 3 bytes each")
        return entries
    except BadInput:
        raise
    except Exception as error:  # a damaged pickle raises all kinds
        what = shown(str(error) or type(error).__name__)
        raise BadInput(
            f"{shown(path)} is a damaged file of CIFAR ({what}); fetch the data set again."
        ) from error


class Cifar10(Full):
    """CIFAR-10: five files of ten thousand pictures, and one for test."""

    name, wants = "CIFAR-10", "cifar-10-batches-py/data_batch_1"
    NAMES = (("cifar-10-batches-py", "data_batch_1"),)
    FILES, NAMED, LABELS = (
        ("data_batch_[1-5]", "test_batch"),
        ("batches.meta", "label_names"),
        "labels",
    )

    @classmethod
    def pools(cls, root: Path) -> Pools:
        folder = needed(root, *cls.NAMES[0]).parent
        every = [sorted(folder.glob(pattern)) for pattern in cls.FILES]
        if not every[1]:
            raise BadInput(f"{shown(folder)} lacks {cls.FILES[1]}; fetch the data set again.")
        meta = batch(needed(folder, cls.NAMED[0]))
        train, test = (
            [
                (partial(cls.picture, path, number), int(label))
                for path in paths
                for number, label in zip(
                    range(len(batch(path)["data"])), batch(path)[cls.LABELS], strict=True
                )
            ]
            for paths in every
        )
        return [name.decode() for name in meta[cls.NAMED[1]]], train, None, test

    @staticmethod
    def picture(path: Path, number: int) -> np.ndarray:
        """Image (32, 32, 3) uint8."""
        with READING:
            return batch(path)["data"][number].reshape(3, 32, 32).transpose(1, 2, 0)


class Cifar100(Cifar10):
    """CIFAR-100: one file for train, one for test; the finer of its two labels."""

    name, wants = "CIFAR-100", "cifar-100-python/train"
    NAMES = (("cifar-100-python", "train"),)
    FILES, NAMED, LABELS = ("train", "test"), ("meta", "fine_label_names"), "fine_labels"


@lru_cache(maxsize=2)
def house_numbers(path: Path) -> dict:
    """Content of an SVHN file."""
    return matlab(path)


class Svhn(Full):
    """SVHN, cropped digits; its label 10 is the digit 0."""

    name, wants = "SVHN", "train_32x32.mat"
    NAMES = (("train_32x32.mat",), ("test_32x32.mat",))

    @classmethod
    def pools(cls, root: Path) -> Pools:
        def rows(split: str) -> Rows:
            path = needed(root, f"{split}_32x32.mat")
            labels = np.atleast_1d(house_numbers(path)["y"]).astype(int) % 10
            return [
                (partial(cls.picture, path, number), label)
                for number, label in enumerate(labels.tolist())
            ]

        return [str(digit) for digit in range(10)], rows("train"), None, rows("test")

    @staticmethod
    def picture(path: Path, number: int) -> np.ndarray:
        """Image (32, 32, 3) uint8."""
        with READING:
            return house_numbers(path)["X"][..., number]


class Gtsrb(Full):
    """GTSRB: a folder per sign, thirty pictures per drive past it.

    Drives are not split; val is the last tenth of the drives.
    """

    name, wants = "GTSRB", "Final_Training/Images/00000 and GT-final_test.csv"
    TRAINING = (("Final_Training", "Images"), ("GTSRB", "Training"))

    @classmethod
    def fits(cls, root: Path) -> bool:
        return (
            any(inside(root, *parts) for parts in cls.TRAINING)
            and inside(root, "GT-final_test.csv") is not None
        )

    @classmethod
    def pools(cls, root: Path) -> Pools:
        folder = next(filter(None, (inside(root, *parts) for parts in cls.TRAINING)))
        names, every = classes_of(folder)
        drives = {(path.parent, path.name.split("_")[0]) for path, _ in every}
        of_class = {
            parent: sorted(drive for there, drive in drives if there == parent)
            for parent, _ in drives
        }
        held = {
            (parent, drive)
            for parent, all_ in of_class.items()
            for drive in all_[len(all_) - max(1, len(all_) // 10) :]
        }
        train, val = [], []
        for path, label in every:
            (val if (path.parent, path.name.split("_")[0]) in held else train).append((path, label))
        answers = needed(root, "GT-final_test.csv")
        images = needed(root, "Final_Test", "Images")
        with open(answers, encoding="utf-8", newline="") as file:
            test = [
                (images / row["Filename"], int(row["ClassId"]))
                for row in csv.DictReader(file, delimiter=";")
            ]
        return names, train, val, test


class Flowers(Full):
    """Oxford Flowers, 102 classes: 1,020 pictures each for train and val; the rest is test."""

    name, wants = "Oxford 102 Flowers", "jpg/image_00001.jpg, imagelabels.mat and setid.mat"
    NAMES = (("imagelabels.mat",), ("setid.mat",))

    @classmethod
    def pools(cls, root: Path) -> Pools:
        labels, sets = (
            matlab(needed(root, "imagelabels.mat"))["labels"],
            matlab(needed(root, "setid.mat")),
        )
        folder = needed(root, "jpg")
        rows = lambda key: [
            (folder / f"image_{n:05d}.jpg", int(labels[n - 1]) - 1)
            for n in np.atleast_1d(sets[key]).tolist()
        ]
        return (
            [f"flower {number}" for number in range(1, int(labels.max()) + 1)],
            rows("trnid"),
            rows("valid"),
            rows("tstid"),
        )


class Textures(Full):
    """DTD: the first of its ten partitions into three equal parts."""

    name, wants = "DTD", "labels/train1.txt"
    NAMES = (("labels", "train1.txt"),)

    @classmethod
    def pools(cls, root: Path) -> Pools:
        labels = needed(root, *cls.NAMES[0]).parent
        images = needed(labels.parent, "images")
        names = [path.name for path in folders_of(images)]

        def rows(split: str) -> Rows:
            return [
                (images / line, names.index(line.split("/")[0]))
                for line in lines(needed(labels, f"{split}1.txt"))
            ]

        return names, rows("train"), rows("val"), rows("test")


class Pets(Full):
    """Oxford-IIIT Pets, 37 breeds: trainval and test."""

    name, wants = "Oxford-IIIT Pet", "annotations/trainval.txt"
    NAMES = (("annotations", "trainval.txt"),)

    @classmethod
    def pools(cls, root: Path) -> Pools:
        images, names = needed(root, "images"), {}

        def rows(split: str) -> Rows:
            pictures = []
            for line in lines(needed(root, "annotations", f"{split}.txt")):
                picture, label = line.split()[:2]
                names[int(label) - 1] = picture.rsplit("_", 1)[0]
                pictures.append((images / f"{picture}.jpg", int(label) - 1))
            return pictures

        train, test = rows("trainval"), rows("test")
        return [names.get(label, str(label)) for label in range(max(names) + 1)], train, None, test


class Food(Full):
    """Food-101: the lists of meta/."""

    name, wants = "Food-101", "meta/train.json"
    NAMES = (("meta", "train.json"), ("meta", "test.json"))

    @classmethod
    def pools(cls, root: Path) -> Pools:
        meta = needed(root, *cls.NAMES[0]).parent
        train, test = (
            json.loads((meta / f"{split}.json").read_text()) for split in ("train", "test")
        )
        names = sorted(train)
        rows = lambda part: [
            (meta.parent / "images" / f"{p}.jpg", names.index(name))
            for name in sorted(part)
            for p in part[name]
        ]
        return names, rows(train), None, rows(test)


class Waterbirds(Full):
    """Waterbirds: land or water birds; metadata.csv has each picture's split."""

    name, wants = "Waterbirds", "metadata.csv"
    NAMES = (("metadata.csv",),)

    @classmethod
    def pools(cls, root: Path) -> Pools:
        table, parts = needed(root, "metadata.csv"), ([], [], [])
        with open(table, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                parts[int(row["split"])].append((table.parent / row["img_filename"], int(row["y"])))
        return ["landbird", "waterbird"], *parts


class Folders(Full):
    """One folder per class, no splits."""

    PLACE: tuple[str, ...] = ()
    ARCHIVE = ""  # in the published archive, which is unpacked here
    cuts = staticmethod(fifths)

    @classmethod
    def fits(cls, root: Path) -> bool:
        return inside(root, *cls.PLACE) is not None or bool(
            cls.ARCHIVE and inside(root, cls.ARCHIVE)
        )

    @classmethod
    def pools(cls, root: Path) -> Pools:
        return drawn(
            *classes_of(inside(root, *cls.PLACE) or unpack(needed(root, cls.ARCHIVE))), cls.cuts
        )


class Caltech(Folders):
    """Caltech-101: 30 pictures per class to train on, five of them for val; the rest is test."""

    name, wants = "Caltech-101", "101_ObjectCategories/CLASS/image_0001.jpg"
    PLACE, ARCHIVE = ("101_ObjectCategories",), "101_ObjectCategories.tar.gz"

    @staticmethod
    def cuts(count: int) -> tuple[int, int]:
        known = min(30, count - 1)
        return known - known // 6, known


class EuroSat(Folders):
    """EuroSAT, its coloured pictures."""

    name, wants = "EuroSAT", "2750/CLASS/CLASS_1.jpg"
    PLACE = ("2750",)


class Resisc(Folders):
    """NWPU-RESISC45."""

    name, wants = "NWPU-RESISC45", "NWPU-RESISC45/CLASS/CLASS_001.jpg"
    PLACE = ("NWPU-RESISC45",)


class Sun(Full):
    """SUN397: the first of its ten partitions, from a second archive; else random splits."""

    name, wants = "SUN397", "ClassName.txt, and perhaps Training_01.txt and Testing_01.txt"
    NAMES = (("ClassName.txt",),)

    @classmethod
    def pools(cls, root: Path) -> Pools:
        names = [line.lstrip("/") for line in lines(needed(root, "ClassName.txt"))]
        folder, label = (
            needed(root, "a").parent,
            {name: number for number, name in enumerate(names)},
        )
        parts = [inside(root, f"{split}_01.txt") for split in ("Training", "Testing")]
        if not all(parts):
            return drawn(
                names,
                [(file, label[name]) for name in names for file in pictures_of(folder / name)],
            )
        paths = ([line.lstrip("/") for line in lines(part)] for part in parts)
        train, test = (
            [(folder / path, label[path.rsplit("/", 1)[0]]) for path in part] for part in paths
        )
        return names, train, None, test


FULL = {
    "cifar10": Cifar10,
    "cifar100": Cifar100,
    "svhn": Svhn,
    "gtsrb": Gtsrb,
    "flowers": Flowers,
    "dtd": Textures,
    "pets": Pets,
    "food101": Food,
    "waterbirds": Waterbirds,
    "caltech101": Caltech,
    "eurosat": EuroSat,
    "resisc45": Resisc,
    "sun397": Sun,
    "stanford_cars": Cars,
    "birds": Birds,
    "stanford_dogs": Dogs,
    "imagenet": ImageNet,
    "inaturalist2018": INaturalist,
}
