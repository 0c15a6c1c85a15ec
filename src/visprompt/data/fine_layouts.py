"""Published layouts of larger sets: Cars, Birds, Dogs, ImageNet and iNaturalist."""

import json
from pathlib import Path

import numpy as np

from .published_parts import (
    Full,
    Pools,
    classes_of,
    every_tenth,
    folders_of,
    lines,
    matlab,
    pictures_of,
)
from .raw_layouts import Rows, inside, needed
from .unpacking import unpack


class Cars(Full):
    """Stanford Cars: the development kit names the classes; test labels are in a later file."""

    name, wants = "Stanford Cars", "cars_train_annos.mat and cars_test_annos_withlabels.mat"
    NAMES = (("cars_train_annos.mat",), ("cars_test_annos_withlabels.mat",))

    @classmethod
    def pools(cls, root: Path) -> Pools:
        def rows(split: str, file: str) -> Rows:
            folder = needed(root, f"cars_{split}", "*.jpg").parent
            annotations = np.atleast_1d(matlab(needed(root, file))["annotations"])
            return [(folder / str(one["fname"]), int(one["class"]) - 1) for one in annotations]

        train, test = (rows(split, parts[0]) for split, parts in zip(("train", "test"), cls.NAMES))
        names = [
            str(name)
            for name in np.atleast_1d(matlab(needed(root, "cars_meta.mat"))["class_names"])
        ]
        return names, train, None, test


class Birds(Full):
    """CUB-200-2011 and NABirds: tables of pictures, labels and parts, without empty classes."""

    name, wants = (
        "CUB-200-2011 and NABirds",
        "images.txt, image_class_labels.txt and train_test_split.txt",
    )
    NAMES = (("images.txt",), ("image_class_labels.txt",), ("train_test_split.txt",))

    @classmethod
    def pools(cls, root: Path) -> Pools:
        base = needed(root, "images.txt").parent
        table = lambda name: dict(line.split(maxsplit=1) for line in lines(base / name))
        files, labels, train = (table(parts[0]) for parts in cls.NAMES)
        used = sorted(set(labels.values()), key=int)
        names, place = table("classes.txt"), {label: number for number, label in enumerate(used)}
        rows = lambda wanted: [
            (base / "images" / f, place[labels[key]])
            for key, f in files.items()
            if train[key] == wanted
        ]
        return [names[label] for label in used], rows("1"), None, rows("0")


class Dogs(Full):
    """Stanford Dogs: lists in MATLAB files."""

    name, wants = "Stanford Dogs", "train_list.mat and test_list.mat"
    NAMES = (("train_list.mat",), ("test_list.mat",))

    @classmethod
    def pools(cls, root: Path) -> Pools:
        images, names = needed(root, "Images"), {}

        def rows(file: str) -> Rows:
            pictures, content = [], matlab(needed(root, file))
            for path, label in zip(
                np.atleast_1d(content["file_list"]), np.atleast_1d(content["labels"]), strict=True
            ):
                names[int(label) - 1] = str(path).split("/")[0]
                pictures.append((images / str(path), int(label) - 1))
            return pictures

        train, test = (rows(parts[0]) for parts in cls.NAMES)
        return [names.get(label, str(label)) for label in range(max(names) + 1)], train, None, test


class ImageNet(Full):
    """ImageNet: one folder per WordNet number; test is the published val, val every tenth of train.

    The published val is sorted into such folders, or flat, with the labels of the development kit.
    """

    name, wants = "ImageNet", "train/n01440764/*.JPEG and val"
    TRAIN, TEST = (("train",), ("ILSVRC2012_img_train",)), (("val",), ("ILSVRC2012_img_val",))

    @classmethod
    def fits(cls, root: Path) -> bool:
        return all(
            any(inside(root, *parts) for parts in places) for places in (cls.TRAIN, cls.TEST)
        )

    @classmethod
    def pools(cls, root: Path) -> Pools:
        train, test = (
            next(filter(None, (inside(root, *parts) for parts in places)))
            for places in (cls.TRAIN, cls.TEST)
        )
        for archive in sorted(train.glob("n*.tar")):  # the published archive holds one a class
            unpack(archive)
        names, every = classes_of(train)
        return names, *every_tenth(every), cls.tested(root, test, names)

    @classmethod
    def tested(cls, root: Path, folder: Path, names: list[str]) -> Rows:
        """The pictures of the published val."""
        if folders_of(folder):
            return [
                (file, names.index(path.name))
                for path in folders_of(folder)
                for file in pictures_of(path)
            ]
        synsets = np.atleast_1d(matlab(needed(root, "data", "meta.mat"))["synsets"])
        number = {int(one["ILSVRC2012_ID"]): str(one["WNID"]) for one in synsets}
        truth = lines(needed(root, "data", "ILSVRC2012_validation_ground_truth.txt"))
        return [
            (path, names.index(number[int(label)]))
            for path, label in zip(pictures_of(folder), truth, strict=True)
        ]


class INaturalist(Full):
    """iNaturalist 2018: the published val is test; every tenth picture of train is val."""

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
            return [
                (base / files[one["image_id"]], one["category_id"])
                for one in content["annotations"]
            ]

        every, test = (rows(parts) for parts in cls.NAMES)
        place = {label: number for number, label in enumerate(sorted(names))}
        every, test = ([(path, place[label]) for path, label in part] for part in (every, test))
        return [names[label] for label in sorted(names)], *every_tenth(every), test
