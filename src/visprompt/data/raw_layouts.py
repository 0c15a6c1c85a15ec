"""Published layouts of VTAB's data sets, with the labels that VTAB derives from their annotations.

Definitions are those of Zhai et al. (2019) and of their code. Which images are among the 1,000
cannot be derived from the raw files: see `layouts`.
"""

import csv
import io
import json
import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ..errors import BadInput, choose
from .catalogue import used_whole
from .pictures import shown

TRAIN, VAL = 800, 200  # VTAB-1k's
# a file, or what gives the picture when it is needed
# pictures, each a file or a function that gives it as an array or an image, with their labels
Rows = list[tuple[Any, int]]
Splits = tuple[list[str], list[Rows]]


def few(rows: Sequence, count: int) -> list:
    """The first `count` rows of a fixed random permutation."""
    order = np.random.Generator(np.random.PCG64(0)).permutation(len(rows))[:count]
    return [rows[number] for number in order]


def inside(root: Path, *parts: str) -> Path | None:
    """The first path of these parts in a folder or up to three folders deeper, as archives nest."""
    for depth in range(4):
        for path in sorted(root.glob("/".join(["*"] * depth + list(parts)))):
            return path
    return None


def needed(root: Path, *parts: str) -> Path:
    """As `inside`.

    Raises:
        BadInput: there is no such path.
    """
    path = inside(root, *parts)
    if path is None:
        raise BadInput(
            f"{shown(root)} lacks {'/'.join(parts)}; fetch the data set again, or put it there."
        )
    return path


def bin_of(value: float, edges: Sequence[float]) -> int:
    """Number of edges below a value; a value at an edge belongs below it."""
    return sum(edge < value for edge in edges)


class Clevr:
    """CLEVR. Count: 3 to 10 objects. Distance: depth of the nearest. The published val is test."""

    name, wants = "CLEVR", "scenes/CLEVR_train_scenes.json"
    DEPTHS = (8.0, 8.5, 9.0, 9.5, 10.0)

    @staticmethod
    def fits(root: Path) -> bool:
        return inside(root, "scenes", "CLEVR_*_scenes.json") is not None

    @classmethod
    def splits(cls, root: Path, task: str) -> Splits:
        choose("task of CLEVR", task, ("clevr_count", "clevr_distance"))
        count = task == "clevr_count"
        names = (
            [str(number) for number in range(3, 11)]
            if count
            else [f"d{bin}" for bin in range(len(cls.DEPTHS) + 1)]
        )

        def rows(split: str) -> Rows:
            pictures = []
            scenes = needed(root, "scenes", f"CLEVR_{split}_scenes.json")
            for scene in json.loads(scenes.read_text(encoding="utf-8"))["scenes"]:
                solids = scene["objects"]
                nearest = min(solid["pixel_coords"][2] for solid in solids)
                label = len(solids) - 3 if count else bin_of(nearest, cls.DEPTHS)
                if not 0 <= label < len(names):
                    raise BadInput(
                        f"{shown(scenes)}: {scene['image_filename']} has {len(solids)} "
                        f"solids, not 3 to 10."
                    )
                pictures.append(
                    (scenes.parents[1] / "images" / split / scene["image_filename"], label)
                )
            return pictures

        pool = rows("train")
        cut = len(pool) * 9 // 10
        return names, [few(pool[:cut], TRAIN), few(pool[cut:], VAL), rows("val")]


class Kitti:
    """KITTI: distance of the nearest vehicle, to 8 m, to 20 m, farther, none; split by drives."""

    name, wants = "KITTI", "training/label_2"
    EDGES = (8.0, 20.0, 999.0)
    VEHICLES = ("Car", "Van", "Truck")
    # percent of the drives for val and for test, and the seed of the published code
    SHARE, SEED = (10, 123)

    @staticmethod
    def fits(root: Path) -> bool:
        return inside(root, "training", "label_2") is not None

    @classmethod
    def splits(cls, root: Path, task: str) -> Splits:
        labels, pictures = needed(root, "training", "label_2"), needed(root, "training", "image_2")
        parts = [[], [], []]
        for number, part in enumerate(cls.part_of_each(root)):
            lines = [
                line.split() for line in (labels / f"{number:06d}.txt").read_text().splitlines()
            ]
            nearest = min(
                (float(line[13]) for line in lines if line[0] in cls.VEHICLES), default=1000.0
            )
            parts[part].append((pictures / f"{number:06d}.png", bin_of(nearest, cls.EDGES)))
        return ["near", "middle", "far", "none"], [
            few(parts[0], TRAIN),
            few(parts[1], VAL),
            parts[2],
        ]

    @classmethod
    def part_of_each(cls, root: Path) -> list[int]:
        """The split of each picture, by its drive: 0 (train), 1 (val) or 2 (test)."""
        order = [
            int(word) - 1
            for word in needed(root, "mapping", "train_rand.txt").read_text().split(",")
        ]
        lines = needed(root, "mapping", "train_mapping.txt").read_text().splitlines()
        drives = [lines[place].split()[1] for place in order]
        rest, dealt, random = sorted(set(drives)), {}, np.random.RandomState(cls.SEED)
        share = max(1, len(rest) * cls.SHARE // 100)
        for part in (2, 1):
            taken = random.choice(rest, share, replace=False)
            dealt |= dict.fromkeys(taken.tolist(), part)
            rest = [drive for drive in rest if drive not in dealt]
        return [dealt.get(drive, 0) for drive in drives]


class DSprites:
    """dSprites: horizontal position or orientation in 16 bins; a random tenth is test."""

    name, wants = "dSprites", "dsprites_*.hdf5"
    BINS = 16
    # column of latents/classes, and its steps
    FACTORS = {"x_position": (4, 32), "orientation": (3, 40)}

    @classmethod
    def fits(cls, root: Path) -> bool:
        return inside(root, cls.wants) is not None

    @classmethod
    def splits(cls, root: Path, task: str) -> Splits:
        column, steps = cls.FACTORS[
            choose("factor", task.removeprefix("dsprites_label_"), cls.FACTORS)
        ]
        import h5py

        path = needed(root, cls.wants)
        with h5py.File(path) as file:
            labels = file["latents"]["classes"][:, column].astype(int) * cls.BINS // steps
        order = np.random.Generator(np.random.PCG64(0)).permutation(len(labels))
        cuts = len(order) * 8 // 10, len(order) * 9 // 10
        parts = np.split(order, cuts)
        sizes = (TRAIN, VAL, None)
        rows = lambda numbers: [
            (partial(cls.picture, path, number), labels[number]) for number in numbers.tolist()
        ]
        return [f"bin{number}" for number in range(cls.BINS)], [
            rows(part[:size]) for part, size in zip(parts, sizes)
        ]

    @staticmethod
    def picture(path: Path, number: int) -> np.ndarray:
        """Image (64, 64) uint8, white on black."""
        return opened(path)["imgs"][number] * np.uint8(255)


OPEN: dict[Path, object] = {}  # HDF5 files stay open: one holds every picture


def opened(path: Path):
    """An open HDF5 file."""
    import h5py

    if path not in OPEN:
        OPEN[path] = h5py.File(path)
    return OPEN[path]


class PatchCamelyon:
    """PatchCamelyon: whether a patch's centre has a tumour; the published splits."""

    name, wants = "PatchCamelyon", "camelyonpatch_level_2_split_train_x.h5"

    @classmethod
    def fits(cls, root: Path) -> bool:
        return inside(root, "camelyonpatch_level_2_split_*_x.h5") is not None

    @classmethod
    def splits(cls, root: Path, task: str) -> Splits:
        def rows(split: str) -> Rows:
            x, y = (needed(root, f"camelyonpatch_level_2_split_{split}_{kind}.h5") for kind in "xy")
            labels = np.asarray(opened(y)["y"]).reshape(-1).tolist()
            return [(partial(cls.picture, x, number), label) for number, label in enumerate(labels)]

        parts = [rows(split) for split in ("train", "valid", "test")]
        few_images = not used_whole(task)  # else all of the authors' parts
        return ["none", "tumour"], [
            few(parts[0], TRAIN),
            few(parts[1], VAL),
            parts[2],
        ] if few_images else parts

    @staticmethod
    def picture(path: Path, number: int) -> np.ndarray:
        """Image (96, 96, 3) uint8."""
        return opened(path)["x"][number]


class SmallNorb:
    """SmallNORB: azimuth in 18 or elevation in 9 classes.

    Val and test are the halves of the published test split.
    """

    name, wants = "small NORB", "smallnorb-*-training-dat.mat"
    # the first number of a file says what it holds
    TYPES = {0x1E3D4C55: np.uint8, 0x1E3D4C54: np.int32}

    @classmethod
    def fits(cls, root: Path) -> bool:
        return inside(root, cls.wants) is not None

    @classmethod
    def splits(cls, root: Path, task: str) -> Splits:
        azimuth = choose(
            "task of small NORB", task, ("smallnorb_azimuth", "smallnorb_elevation")
        ).endswith("azimuth")

        def rows(split: str) -> Rows:
            info = cls.matrix(needed(root, f"smallnorb-*-{split}-info.mat"))
            # instance, elevation, azimuth (0, 2, … 34), lighting
            labels = info[:, 2] // 2 if azimuth else info[:, 1]
            path = needed(root, f"smallnorb-*-{split}-dat.mat")
            count = len(cls.matrix(path))
            if count != len(labels):
                raise BadInput(
                    f"{shown(path)} holds {count} pictures, and its info {len(labels)}; "
                    f"fetch it again."
                )
            return [
                (partial(cls.picture, path, number), int(label))
                for number, label in enumerate(labels)
            ]

        names = (
            [f"{20 * step} degrees" for step in range(18)]
            if azimuth
            else [f"{30 + 5 * step} degrees" for step in range(9)]
        )
        test = rows("testing")
        return names, [
            few(rows("training"), TRAIN),
            few(test[: len(test) // 2], VAL),
            test[len(test) // 2 :],
        ]

    @classmethod
    def picture(cls, path: Path, number: int) -> np.ndarray:
        """Image of the first of the two cameras, (96, 96) uint8."""
        return np.asarray(cls.matrix(path)[number, 0])

    @classmethod
    def matrix(cls, path: Path) -> np.ndarray:
        """An array in the authors' format: type, number of dimensions, their sizes, values."""
        with open(path, "rb") as file:
            kind, count = struct.unpack("<II", file.read(8))
            if kind not in cls.TYPES:
                raise BadInput(
                    f"{shown(path)} begins with {kind:#x}, no type of small NORB's; fetch it again."
                )
            sizes = struct.unpack(f"<{max(count, 3)}I", file.read(4 * max(count, 3)))[:count]
        return np.memmap(path, cls.TYPES[kind], "r", 8 + 4 * max(count, 3), tuple(sizes))


class DMLab:
    """DMLab: distance (near, far, very far) and value (good, bad) of what is in view; TFRecords."""

    name, wants = "DMLab", "dmlab-train.tfrecord*"

    @classmethod
    def fits(cls, root: Path) -> bool:
        return inside(root, cls.wants) is not None

    @classmethod
    def splits(cls, root: Path, task: str) -> Splits:
        def rows(split: str) -> Rows:
            pictures = []
            folder = needed(root, f"dmlab-{split}.tfrecord*").parent
            for path in sorted(folder.glob(f"dmlab-{split}.tfrecord*")):
                for start, length, entry in records(path):
                    pictures.append(
                        (partial(cls.picture, path, start, length), int(entry["label"]))
                    )
            return pictures

        return [str(number) for number in range(6)], [
            few(rows("train"), TRAIN),
            few(rows("validation"), VAL),
            rows("test"),
        ]

    @staticmethod
    def picture(path: Path, start: int, length: int) -> Image.Image:
        """The picture of a record."""
        with open(path, "rb") as file:
            file.seek(start)
            return Image.open(io.BytesIO(features(file.read(length))["image"]))  # type: ignore[arg-type]


def records(path: Path) -> Iterator[tuple[int, int, dict]]:
    """Start, length and features of each record of a TFRecord file; checksums are not verified."""
    with open(path, "rb") as file:
        while head := file.read(12):  # length, and a checksum of it
            if len(head) < 12:
                raise BadInput(f"{shown(path)} ends within a record; fetch it again.")
            (length,), start = struct.unpack("<Q", head[:8]), file.tell()
            content = file.read(length + 4)
            if len(content) < length + 4:
                raise BadInput(f"{shown(path)} ends within a record; fetch it again.")
            yield start, length, features(content[:length])


def features(record: bytes) -> dict[str, bytes | int]:
    """First value of each feature of a tf.train.Example: bytes or an integer."""
    values = {}
    for _, all_features in fields(record):
        for _, entry in fields(all_features):
            parts = dict(fields(entry))
            for kind, content in fields(parts[2]):
                for _, value in fields(content):
                    # packed or not
                    number = value if isinstance(value, int) or kind == 1 else varint(value, 0)[0]
                    values.setdefault(parts[1].decode(), number)
    return values


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Number and content of each field of a protocol buffer message."""
    place = 0
    while place < len(message):
        key, place = varint(message, place)
        length, place = varint(message, place)
        if key & 7 == 0:  # a number itself
            yield key >> 3, length
        elif key & 7 == 2:
            yield key >> 3, message[place : place + length]
            place += length
        else:
            raise BadInput(
                f"a record holds a field of kind {key & 7}, which DMLab has not; fetch the "
                f"data set again."
            )


def varint(message: bytes, place: int) -> tuple[int, int]:
    """An integer of seven bits per byte, and the position after it."""
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place


class Retinopathy:
    """Diabetic retinopathy in 5 grades.

    Train, val and test are the competition's training, public and private test pictures.
    """

    name, wants = "Retinopathy", "trainLabels.csv"
    RADIUS = 300  # pixels of an eyeball, before the rim is cut off

    @classmethod
    def fits(cls, root: Path) -> bool:
        return inside(root, cls.wants) is not None

    @classmethod
    def splits(cls, root: Path, task: str) -> Splits:
        def rows(file: str, folder: str) -> dict[str, Rows]:
            pictures = defaultdict(list)
            with open(needed(root, file), encoding="utf-8", newline="") as opened_file:
                for entry in csv.DictReader(opened_file):
                    picture = needed(root, folder) / f"{entry['image']}.jpeg"
                    pictures[entry.get("Usage", "")].append(
                        (Eye(picture, cls.RADIUS), int(entry["level"]))
                    )
            return pictures

        test = rows("retinopathy_solution.csv", "test")
        parts = [
            few(rows("trainLabels.csv", "train")[""], TRAIN),
            few(test["Public"], VAL),
            test["Private"],
        ]
        return [f"grade {number}" for number in range(5)], parts


class Eye:
    """A picture of a retina, preprocessed as by the competition's winner and by VTAB.

    Scaled to a fixed eyeball radius, local average removed (4 × picture − 4 × blurred + 128), and
    cut to 90 % of the radius. VTAB stores the result as JPEG of quality 72, which is not done here.
    """

    def __init__(self, path: Path, radius: int):
        self.path, self.radius = path, radius

    def is_file(self) -> bool:
        """Whether there is such a picture."""
        return self.path.is_file()

    def __call__(self) -> np.ndarray:
        from scipy.ndimage import gaussian_filter

        with Image.open(self.path) as image:
            image = image.convert("RGB")
        middle = np.asarray(image)[image.height // 2].sum(axis=1, dtype=float)
        radius = (middle > middle.mean() / 10).sum() / 2
        scale = self.radius / (radius if radius >= 1 else image.height / 2)
        image = image.resize([max(1, round(side * scale)) for side in image.size], Image.BILINEAR)
        pixels = np.asarray(image, np.float32)
        blurred = gaussian_filter(pixels, (self.radius / 30, self.radius / 30, 0), mode="mirror")
        pixels = np.clip(4 * pixels - 4 * blurred + 128, 0, 255)
        inner = int(0.9 * self.radius)
        (high, wide), y, x = pixels.shape[:2], *np.ogrid[: pixels.shape[0], : pixels.shape[1]]
        far = (y - high // 2) ** 2 + (x - wide // 2) ** 2 > inner**2
        pixels[far] = 128
        rows, columns = (
            slice(max(side // 2 - inner, 0), side // 2 + inner) for side in (high, wide)
        )
        return pixels[rows, columns].round().astype(np.uint8)


RAW = {
    "clevr": Clevr,
    "kitti": Kitti,
    "dsprites": DSprites,
    "patch_camelyon": PatchCamelyon,
    "smallnorb": SmallNorb,
    "dmlab": DMLab,
    "retinopathy": Retinopathy,
}
