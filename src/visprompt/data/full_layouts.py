"""Whole data sets as their authors publish them: those of AP's Table A1, FGVC's, ImageNet and iNaturalist.

Each class knows one published form: names of the classes, and the pictures of train, of val where there is one, and of
test. `shares` makes of them what a benchmark asks for. The counts of AP's Table A1 are those of the lists that came with
CoOp (Zhou et al., 2022), `split_zhou_*.json`: where such a file lies in the folder, it decides.
"""

import csv
import json
import pickle
import threading
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from ..errors import BadInput
from . import catalogue
from .pictures import shown
from .raw_layouts import TRAIN, VAL, Rows, Splits, few, inside, needed
from .unpacking import unpack

ENDINGS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".webp", ".tif", ".tiff", ".gif")
Pools = tuple[list[str], Rows, Rows | None, Rows]  # names, train, val if the authors have one, test


def shares(task: str, train: Rows, val: Rows | None, test: Rows) -> list[Rows]:
    """The pictures of train, val and test that a benchmark takes.

    VTAB-1k draws 800 and 200, here not the ones that it drew; test is whole everywhere. Others take the authors' val,
    or else hold out as large a share of train as the paper did, a tenth where it does not say.
    """
    found = next((found.tasks[task] for found in catalogue.datasets().values() if task in found.tasks), {})
    few_images, counts = found.get("benchmark") == "vtab-1k", found.get("splits", {})
    if few_images and val:
        return [few(train, TRAIN), few(val, VAL), test]
    if val:
        return [train, val, test]
    if few_images:
        held, left = VAL, TRAIN
        if len(train) < held + left:
            held, left = max(1, len(train) // 5), None
    else:
        share = counts["val"] / (counts["train"] + counts["val"]) if "val" in counts else 0.1
        held, left = max(1, round(share * len(train))), None
    order = few(range(len(train)), len(train))
    chosen = order[held:] if left is None else order[held : held + left]
    rows = lambda numbers: [train[number] for number in sorted(numbers)]  # in the order of the files
    return [rows(chosen), rows(order[:held]), test]


class Full:
    """A published form: `NAMES` are files or folders that show it, `pools` reads it."""

    name, wants = "", ""
    NAMES: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def fits(cls, root: Path) -> bool:
        """Whether a folder holds it."""
        return all(inside(root, *parts) is not None for parts in cls.NAMES)

    @classmethod
    def splits(cls, root: Path, task: str) -> Splits:
        """Names of the classes, and the pictures of train, val and test."""
        names, train, val, test = cls.pools(root)
        return names, shares(task, train, val, test)

    @classmethod
    def pools(cls, root: Path) -> Pools:
        """What the authors publish."""
        raise NotImplementedError


def lines(path: Path) -> list[str]:
    """The lines of a text file that are not blank."""
    return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def matlab(path: Path) -> dict:
    """A MATLAB file, its lists as arrays without needless dimensions."""
    from scipy.io import loadmat

    return loadmat(path, squeeze_me=True)


def pictures_of(folder: Path) -> list[Path]:
    """The pictures in a folder and below, in the order of their names."""
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS)


def folders_of(folder: Path) -> list[Path]:
    """The folders in a folder."""
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def classes_of(folder: Path) -> tuple[list[str], Rows]:
    """A folder a class: names, and all pictures."""
    every = folders_of(folder)
    return [path.name for path in every], [(file, label) for label, path in enumerate(every) for file in pictures_of(path)]


def every_tenth(rows: Rows) -> tuple[Rows, Rows]:
    """The other rows, and every tenth."""
    return [row for number, row in enumerate(rows) if number % 10], rows[::10]


class Listed(Full):
    """CoOp's lists: path, label and name of the class for each picture of train, val and test."""

    name, wants = "CoOp's lists", "split_zhou_*.json"
    NAMES = ((wants,),)

    @classmethod
    def pools(cls, root: Path) -> Pools:
        path = needed(root, cls.wants)
        content = json.loads(path.read_text(encoding="utf-8"))
        first = content["train"][0][0]
        parts = first.split("/")
        base = needed(root, *parts).parents[len(parts) - 1]
        names = {label: name for part in ("train", "val", "test") for _, label, name in content[part]}
        if sorted(names) != list(range(len(names))):
            raise BadInput(f"{shown(path)} leaves out labels below {max(names)}; fetch it again.")
        every = [[(base / file, label) for file, label, _ in content[part]] for part in ("train", "val", "test")]
        return [names[label] for label in sorted(names)], *every


READING = threading.Lock()


class Arrays(pickle.Unpickler):
    """Reads a pickle that holds arrays, texts, numbers, lists and dictionaries of these, and nothing that runs."""

    KNOWN = {"_reconstruct": ("numpy._core.multiarray",), "ndarray": ("numpy",), "dtype": ("numpy",), "encode": ("_codecs",)}

    def find_class(self, module: str, name: str):
        home = module.replace("numpy.core", "numpy._core")
        if home not in self.KNOWN.get(name, ()):
            raise BadInput(f"a file of CIFAR names {module}.{name}, which no such file does; do not use it.")
        return super().find_class(home, name)


@lru_cache(maxsize=2)
def batch(path: Path) -> dict:
    """A file of CIFAR."""
    with open(path, "rb") as file:
        return {key.decode(): value for key, value in Arrays(file, encoding="bytes").load().items()}


class Cifar10(Full):
    """Five files of ten thousand pictures, and one for test."""

    name, wants = "CIFAR-10", "cifar-10-batches-py/data_batch_1"
    NAMES = (("cifar-10-batches-py", "data_batch_1"),)
    FILES, NAMED, LABELS = ("data_batch_[1-5]", "test_batch"), ("batches.meta", "label_names"), "labels"

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
                for number, label in enumerate(batch(path)[cls.LABELS])
            ]
            for paths in every
        )
        return [name.decode() for name in meta[cls.NAMED[1]]], train, None, test

    @staticmethod
    def picture(path: Path, number: int) -> np.ndarray:
        """(32, 32, 3) bytes."""
        with READING:
            return batch(path)["data"][number].reshape(3, 32, 32).transpose(1, 2, 0)


class Cifar100(Cifar10):
    """One file for train, one for test; the finer of its two labels."""

    name, wants = "CIFAR-100", "cifar-100-python/train"
    NAMES = (("cifar-100-python", "train"),)
    FILES, NAMED, LABELS = ("train", "test"), ("meta", "fine_label_names"), "fine_labels"


@lru_cache(maxsize=2)
def house_numbers(path: Path) -> dict:
    """A file of SVHN."""
    return matlab(path)


class Svhn(Full):
    """Cropped digits; the digit 0 has the label 10 there."""

    name, wants = "SVHN", "train_32x32.mat"
    NAMES = (("train_32x32.mat",), ("test_32x32.mat",))

    @classmethod
    def pools(cls, root: Path) -> Pools:
        def rows(split: str) -> Rows:
            path = needed(root, f"{split}_32x32.mat")
            labels = np.atleast_1d(house_numbers(path)["y"]).astype(int) % 10
            return [(partial(cls.picture, path, number), label) for number, label in enumerate(labels.tolist())]

        return [str(digit) for digit in range(10)], rows("train"), None, rows("test")

    @staticmethod
    def picture(path: Path, number: int) -> np.ndarray:
        """(32, 32, 3) bytes."""
        with READING:
            return house_numbers(path)["X"][..., number]


class Gtsrb(Full):
    """A folder a sign, thirty pictures a drive past it, which stay together: the last tenth of the drives is val."""

    name, wants = "GTSRB", "Final_Training/Images/00000 and GT-final_test.csv"
    TRAINING = (("Final_Training", "Images"), ("GTSRB", "Training"))

    @classmethod
    def fits(cls, root: Path) -> bool:
        return any(inside(root, *parts) for parts in cls.TRAINING) and inside(root, "GT-final_test.csv") is not None

    @classmethod
    def pools(cls, root: Path) -> Pools:
        folder = next(filter(None, (inside(root, *parts) for parts in cls.TRAINING)))
        names, every = classes_of(folder)
        drives = {(path.parent, path.name.split("_")[0]) for path, _ in every}
        of_class = {parent: sorted(drive for there, drive in drives if there == parent) for parent, _ in drives}
        held = {(parent, drive) for parent, all_ in of_class.items() for drive in all_[len(all_) - max(1, len(all_) // 10) :]}
        train, val = [], []
        for path, label in every:
            (val if (path.parent, path.name.split("_")[0]) in held else train).append((path, label))
        answers = needed(root, "GT-final_test.csv")
        images = needed(root, "Final_Test", "Images")
        with open(answers, encoding="utf-8", newline="") as file:
            test = [(images / row["Filename"], int(row["ClassId"])) for row in csv.DictReader(file, delimiter=";")]
        return names, train, val, test


class Flowers(Full):
    """102 flowers: 1,020 pictures each for train and val, and the larger rest for test."""

    name, wants = "Oxford 102 Flowers", "jpg/image_00001.jpg, imagelabels.mat and setid.mat"
    NAMES = (("imagelabels.mat",), ("setid.mat",))

    @classmethod
    def pools(cls, root: Path) -> Pools:
        labels, sets = matlab(needed(root, "imagelabels.mat"))["labels"], matlab(needed(root, "setid.mat"))
        folder = needed(root, "jpg")
        rows = lambda key: [(folder / f"image_{n:05d}.jpg", int(labels[n - 1]) - 1) for n in np.atleast_1d(sets[key]).tolist()]
        return [f"flower {number}" for number in range(1, int(labels.max()) + 1)], rows("trnid"), rows("valid"), rows("tstid")


class Textures(Full):
    """DTD, the first of its ten partitions into three equal parts."""

    name, wants = "DTD", "labels/train1.txt"
    NAMES = (("labels", "train1.txt"),)

    @classmethod
    def pools(cls, root: Path) -> Pools:
        labels = needed(root, *cls.NAMES[0]).parent
        images = needed(labels.parent, "images")
        names = [path.name for path in folders_of(images)]

        def rows(split: str) -> Rows:
            return [(images / line, names.index(line.split("/")[0])) for line in lines(needed(labels, f"{split}1.txt"))]

        return names, rows("train"), rows("val"), rows("test")


class Pets(Full):
    """37 breeds; trainval and test."""

    name, wants = "Oxford-IIIT Pet", "annotations/trainval.txt"
    NAMES = (("annotations", "trainval.txt"),)

    @classmethod
    def pools(cls, root: Path) -> Pools:
        images, names = needed(root, "images"), {}

        def rows(split: str) -> Rows:
            found = []
            for line in lines(needed(root, "annotations", f"{split}.txt")):
                picture, label = line.split()[:2]
                names[int(label) - 1] = picture.rsplit("_", 1)[0]
                found.append((images / f"{picture}.jpg", int(label) - 1))
            return found

        train, test = rows("trainval"), rows("test")
        return [names.get(label, str(label)) for label in range(max(names) + 1)], train, None, test


class Food(Full):
    """101 dishes; the lists of meta/."""

    name, wants = "Food-101", "meta/train.json"
    NAMES = (("meta", "train.json"), ("meta", "test.json"))

    @classmethod
    def pools(cls, root: Path) -> Pools:
        meta = needed(root, *cls.NAMES[0]).parent
        train, test = (json.loads((meta / f"{split}.json").read_text()) for split in ("train", "test"))
        names = sorted(train)
        rows = lambda part: [
            (meta.parent / "images" / f"{p}.jpg", names.index(name)) for name in sorted(part) for p in part[name]
        ]
        return names, rows(train), None, rows(test)


class Waterbirds(Full):
    """Land or water birds; metadata.csv says of each picture in which part it is."""

    name, wants = "Waterbirds", "metadata.csv"
    NAMES = (("metadata.csv",),)

    @classmethod
    def pools(cls, root: Path) -> Pools:
        table, parts = needed(root, "metadata.csv"), ([], [], [])
        with open(table, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                parts[int(row["split"])].append((table.parent / row["img_filename"], int(row["y"])))
        return ["landbird", "waterbird"], *parts


def fifths(count: int) -> tuple[int, int]:
    """Of so many pictures of a class, where train and val end: a fifth is for test, a tenth for val."""
    return count * 7 // 10, count * 8 // 10


def drawn(names: list[str], every: Rows, cuts=fifths) -> Pools:
    """Parts of a data set that has none, drawn class by class."""
    parts, of_class = ([], [], []), [[] for _ in names]
    for row in every:
        of_class[row[1]].append(row)
    for rows in of_class:
        order, (first, second) = few(range(len(rows)), len(rows)), cuts(len(rows))
        for part, numbers in zip(parts, (order[:first], order[first:second], order[second:])):
            part += [rows[number] for number in sorted(numbers)]
    return names, *parts


class Folders(Full):
    """A folder a class and no parts."""

    PLACE: tuple[str, ...] = ()
    ARCHIVE = ""  # in the published archive, which is unpacked here
    cuts = staticmethod(fifths)

    @classmethod
    def fits(cls, root: Path) -> bool:
        return inside(root, *cls.PLACE) is not None or bool(cls.ARCHIVE and inside(root, cls.ARCHIVE))

    @classmethod
    def pools(cls, root: Path) -> Pools:
        return drawn(*classes_of(inside(root, *cls.PLACE) or unpack(needed(root, cls.ARCHIVE))), cls.cuts)


class Caltech(Folders):
    """Caltech-101: of each of 102 classes 30 pictures to train on, five of them for val, and the rest for test."""

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
    """SUN397: the first of its ten partitions, of a second archive; without that, parts that are drawn."""

    name, wants = "SUN397", "ClassName.txt, and perhaps Training_01.txt and Testing_01.txt"
    NAMES = (("ClassName.txt",),)

    @classmethod
    def pools(cls, root: Path) -> Pools:
        names = [line.lstrip("/") for line in lines(needed(root, "ClassName.txt"))]
        folder, label = needed(root, "a").parent, {name: number for number, name in enumerate(names)}
        parts = [inside(root, f"{split}_01.txt") for split in ("Training", "Testing")]
        if not all(parts):
            return drawn(names, [(file, label[name]) for name in names for file in pictures_of(folder / name)])
        paths = ([line.lstrip("/") for line in lines(part)] for part in parts)
        train, test = ([(folder / path, label[path.rsplit("/", 1)[0]]) for path in part] for part in paths)
        return names, train, None, test


class Cars(Full):
    """Stanford Cars: the development kit names the cars; labels of test came later, in a file of their own."""

    name, wants = "Stanford Cars", "cars_train_annos.mat and cars_test_annos_withlabels.mat"
    NAMES = (("cars_train_annos.mat",), ("cars_test_annos_withlabels.mat",))

    @classmethod
    def pools(cls, root: Path) -> Pools:
        def rows(split: str, file: str) -> Rows:
            folder = needed(root, f"cars_{split}", "*.jpg").parent
            found = np.atleast_1d(matlab(needed(root, file))["annotations"])
            return [(folder / str(one["fname"]), int(one["class"]) - 1) for one in found]

        train, test = (rows(split, parts[0]) for split, parts in zip(("train", "test"), cls.NAMES))
        names = [str(name) for name in np.atleast_1d(matlab(needed(root, "cars_meta.mat"))["class_names"])]
        return names, train, None, test


class Birds(Full):
    """CUB-200-2011 and NABirds: tables of pictures, labels and parts; classes that hold no picture are left out."""

    name, wants = "CUB-200-2011 and NABirds", "images.txt, image_class_labels.txt and train_test_split.txt"
    NAMES = (("images.txt",), ("image_class_labels.txt",), ("train_test_split.txt",))

    @classmethod
    def pools(cls, root: Path) -> Pools:
        base = needed(root, "images.txt").parent
        table = lambda name: dict(line.split(maxsplit=1) for line in lines(base / name))
        files, labels, train = (table(parts[0]) for parts in cls.NAMES)
        used = sorted(set(labels.values()), key=int)
        names, place = table("classes.txt"), {label: number for number, label in enumerate(used)}
        rows = lambda wanted: [(base / "images" / f, place[labels[key]]) for key, f in files.items() if train[key] == wanted]
        return [names[label] for label in used], rows("1"), None, rows("0")


class Dogs(Full):
    """Stanford Dogs: lists in MATLAB files."""

    name, wants = "Stanford Dogs", "train_list.mat and test_list.mat"
    NAMES = (("train_list.mat",), ("test_list.mat",))

    @classmethod
    def pools(cls, root: Path) -> Pools:
        images, names = needed(root, "Images"), {}

        def rows(file: str) -> Rows:
            found, content = [], matlab(needed(root, file))
            for path, label in zip(np.atleast_1d(content["file_list"]), np.atleast_1d(content["labels"]), strict=True):
                names[int(label) - 1] = str(path).split("/")[0]
                found.append((images / str(path), int(label) - 1))
            return found

        train, test = (rows(parts[0]) for parts in cls.NAMES)
        return [names.get(label, str(label)) for label in range(max(names) + 1)], train, None, test


class ImageNet(Full):
    """A folder a WordNet number; the published val is test, and every tenth picture of train is val.

    Val is sorted into such folders, or lies flat, as published, with the labels of the development kit.
    """

    name, wants = "ImageNet", "train/n01440764/*.JPEG and val"
    TRAIN, TEST = (("train",), ("ILSVRC2012_img_train",)), (("val",), ("ILSVRC2012_img_val",))

    @classmethod
    def fits(cls, root: Path) -> bool:
        return all(any(inside(root, *parts) for parts in places) for places in (cls.TRAIN, cls.TEST))

    @classmethod
    def pools(cls, root: Path) -> Pools:
        train, test = (next(filter(None, (inside(root, *parts) for parts in places))) for places in (cls.TRAIN, cls.TEST))
        for archive in sorted(train.glob("n*.tar")):  # the published archive holds one a class
            unpack(archive)
        names, every = classes_of(train)
        return names, *every_tenth(every), cls.tested(root, test, names)

    @classmethod
    def tested(cls, root: Path, folder: Path, names: list[str]) -> Rows:
        """The pictures of the published val."""
        if folders_of(folder):
            return [(file, names.index(path.name)) for path in folders_of(folder) for file in pictures_of(path)]
        synsets = np.atleast_1d(matlab(needed(root, "data", "meta.mat"))["synsets"])
        number = {int(one["ILSVRC2012_ID"]): str(one["WNID"]) for one in synsets}
        truth = lines(needed(root, "data", "ILSVRC2012_validation_ground_truth.txt"))
        return [(path, names.index(number[int(label)])) for path, label in zip(pictures_of(folder), truth, strict=True)]


class INaturalist(Full):
    """iNaturalist 2018: the lists of its competition, whose val is test here; every tenth picture of train is val."""

    name, wants = "iNaturalist 2018", "train2018.json and val2018.json"
    NAMES = (("train2018.json",), ("val2018.json",))

    @classmethod
    def pools(cls, root: Path) -> Pools:
        names: dict[int, str] = {}

        def rows(parts: tuple[str, ...]) -> list[tuple[Path, int]]:
            path = needed(root, *parts)
            content = json.loads(path.read_text(encoding="utf-8"))
            names.update({one["id"]: one["name"] for one in content["categories"]})
            files = {one["id"]: one["file_name"] for one in content["images"]}
            base = needed(root, "train_val2018").parent
            return [(base / files[one["image_id"]], one["category_id"]) for one in content["annotations"]]

        every, test = (rows(parts) for parts in cls.NAMES)
        place = {label: number for number, label in enumerate(sorted(names))}
        every, test = ([(path, place[label]) for path, label in part] for part in (every, test))
        return [names[label] for label in sorted(names)], *every_tenth(every), test


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
