"""Miniature data sets for a rehearsal: made-up pictures of every class, in the real layouts.

A data set whose labels are derived from its raw files (RAW) is written in its published layout;
other tasks of VTAB-1k, fine-grained ones, and those with more than ten classes as the three lists;
all others as folders of splits, which are read before raw files.
"""

import csv
import io
import json
import struct
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from PIL import Image

from visprompt.data.catalogue import DataSet
from visprompt.data.layouts import set_of
from visprompt.data.raw_layouts import DSprites, SmallNorb

LEAST = 8  # training images of a task with few classes
PIXELS = 16  # of a side
# classes that have images, the first ones and the last; the most guided prompts that DA-VPT has
MOST = 60


def write_tasks(names: Iterable[str], folder: Path) -> list[Path]:
    """Write the data behind some tasks of the catalogue; return their folders."""
    written = {}
    for name in names:
        dataset = set_of(name)
        about = dataset.tasks.get(name) or next(iter(dataset.tasks.values()))
        # whole data sets have raw layouts, too, and are rehearsed in folders or by lists
        raw = RAW.get(dataset.layout)
        root = folder / (dataset.name if raw else name)
        if root not in written:
            root.mkdir(parents=True, exist_ok=True)
            lists = (name in dataset.tasks and about["benchmark"] != "full") or about[
                "classes"
            ] > 10
            write = raw or (write_lists if lists else write_split_folders)
            write(root, dataset, about["classes"])
            written[root] = name
    return list(written)


def picture(label: int, number: int, size: int = PIXELS) -> np.ndarray:
    """A picture (S, S, 3) of noise around a colour that depends on the label."""
    random = np.random.Generator(np.random.PCG64([label, number]))
    return np.clip(
        random.integers(0, 256, 3) + random.normal(0, 40, (size, size, 3)), 0, 255
    ).astype(np.uint8)


def save(path: Path, label: int, number: int) -> None:
    """Write a picture; the format follows from the name's ending."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture(label, number)).save(path)


def splits_of(classes: int, *names: str, most: int = MOST) -> Iterable[tuple[str, int, int]]:
    """(split, label, number) of every picture; each number occurs once."""
    number, shown = 0, sorted({*range(min(classes, most) - 1), classes - 1})
    for split, each in zip(names, (max(-(-LEAST // classes), 1), 1, 1), strict=True):
        for label in [label for label in shown for _ in range(each)]:
            yield split, label, number
            number += 1


def write_lists(root: Path, dataset: DataSet, classes: int) -> None:
    """Write a data set as pictures and the three lists."""
    lines = {"train800.txt": [], "val200.txt": [], "test.txt": []}
    for name, label, number in splits_of(classes, *lines):
        save(root / "images" / f"{number}.jpg", label, number)
        lines[name].append(f"images/{number}.jpg {label}\n")
    for name, rows in lines.items():
        (root / name).write_text("".join(rows))
    both = [*lines["train800.txt"], *lines["val200.txt"]]
    (root / "train800val200.txt").write_text("".join(both))
    (root / "classes.txt").write_text("".join(f"class {label}\n" for label in range(classes)))


def write_split_folders(root: Path, dataset: DataSet, classes: int) -> None:
    """Write SPLIT/CLASS/picture; the folders name the classes, so each has pictures."""
    for split, label, number in splits_of(classes, "train", "val", "test", most=classes):
        save(root / split / f"class_{label:04d}" / f"{number}.jpg", label, number)


def write_clevr(root: Path, dataset: DataSet, classes: int) -> None:
    """Write scenes with 3 to 10 objects, the nearest at every depth."""
    scenes = [(3 + number % 8, 7.5 + number % 6 / 2 + 0.1) for number in range(48)]
    for split, some in {"train": scenes, "val": scenes[:24]}.items():
        written = []
        for number, (count, depth) in enumerate(some):
            name = f"CLEVR_{split}_{number:06d}.png"
            save(root / "CLEVR_v1.0" / "images" / split / name, count, number)
            solids = [{"pixel_coords": [1, 2, depth + place]} for place in range(count)]
            written.append({"image_filename": name, "objects": solids})
        file = root / "CLEVR_v1.0" / "scenes" / f"CLEVR_{split}_scenes.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"scenes": written}))


def write_kitti(root: Path, dataset: DataSet, classes: int) -> None:
    """Write twenty drives, each with a vehicle near, in the middle, far, and none."""
    rows = ["Car 0 0 0 1 1 2 2 1 1 1 0.5 1.5 {} 0", "Pedestrian 0 0 0 1 1 2 2 1 1 1 0.5 1.5 3.0 0"]
    lines = [rows[0].format(7.0), rows[0].format(15.0), rows[0].format(30.0), rows[1]]
    for number in range(20 * len(lines)):
        save(
            root / "data_object_image_2/training/image_2" / f"{number:06d}.png", number % 4, number
        )
        label = root / "data_object_label_2/training/label_2" / f"{number:06d}.txt"
        label.parent.mkdir(parents=True, exist_ok=True)
        label.write_text(f"{lines[number % 4]}\n")
    mapping = root / "devkit_object" / "mapping"
    mapping.mkdir(parents=True, exist_ok=True)
    drives = [f"2011_09_26 drive_{number // 4:02d} {number:010d}" for number in range(20 * 4)]
    (mapping / "train_mapping.txt").write_text("\n".join(drives))
    (mapping / "train_rand.txt").write_text(
        ",".join(str(number + 1) for number in range(len(drives)))
    )


def write_dsprites(root: Path, dataset: DataSet, classes: int) -> None:
    """Write every position and every orientation, as one file."""
    import h5py

    columns = np.zeros((80, 6), np.int64)
    columns[:, 4], columns[:, 3] = np.arange(80) % 32, np.arange(80) * 7 % 40
    images = np.stack([picture(0, number)[..., 0] > 127 for number in range(len(columns))]).astype(
        np.uint8
    )
    with h5py.File(
        root / DSprites.wants.replace("*", "ndarray_co1sh3sc6or40x32y32_64x64"), "w"
    ) as file:
        file["imgs"], file["latents/classes"] = images, columns


def write_patch_camelyon(root: Path, dataset: DataSet, classes: int) -> None:
    """Write two files per split."""
    import h5py

    for split, count in (("train", 16), ("valid", 8), ("test", 8)):
        labels = np.arange(count) % 2
        with h5py.File(root / f"camelyonpatch_level_2_split_{split}_x.h5", "w") as file:
            file["x"] = np.stack(
                [picture(label, number) for number, label in enumerate(labels.tolist())]
            )
        with h5py.File(root / f"camelyonpatch_level_2_split_{split}_y.h5", "w") as file:
            file["y"] = labels.reshape(-1, 1, 1, 1)


def write_smallnorb(root: Path, dataset: DataSet, classes: int) -> None:
    """Write toys from every side and height, in the authors' format."""
    kinds = {numpy: kind for kind, numpy in SmallNorb.TYPES.items()}
    for split, count in (("training", 36), ("testing", 72)):
        steps = np.arange(count)
        info = np.stack([steps * 0, steps % 9, 2 * (steps % 18), steps * 0], 1).astype(np.int32)
        images = np.stack(
            [picture(number % 18, number)[None, ..., 0].repeat(2, 0) for number in range(count)]
        )
        for what, numbers in (("dat", images), ("info", info)):
            sizes = [*numbers.shape, *[1] * (3 - numbers.ndim)]
            head = struct.pack(f"<II{len(sizes)}I", kinds[numbers.dtype.type], numbers.ndim, *sizes)
            (root / f"smallnorb-5x46789x9x18x6x2x96x96-{split}-{what}.mat").write_bytes(
                head + numbers.tobytes()
            )


def write_dmlab(root: Path, dataset: DataSet, classes: int) -> None:
    """Write TFRecords, one file per split, with zeros for checksums."""

    def number(value: int) -> bytes:
        return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + number(value >> 7)

    def part(key: int, content: bytes) -> bytes:
        return number(key << 3 | 2) + number(len(content)) + content

    for split, count in (("train", 12), ("validation", 6), ("test", 12)):
        with open(root / f"dmlab-{split}.tfrecord-00000-of-00001", "wb") as file:
            for place in range(count):
                image = io.BytesIO()
                Image.fromarray(picture(place % classes, place)).save(image, "PNG")
                kinds = {
                    "image": part(1, part(1, image.getvalue())),
                    "label": part(3, part(1, number(place % classes))),
                }
                record = part(
                    1,
                    b"".join(
                        part(1, part(1, name.encode()) + part(2, kind))
                        for name, kind in kinds.items()
                    ),
                )
                file.write(struct.pack("<QI", len(record), 0) + record + bytes(4))


def write_retinopathy(root: Path, dataset: DataSet, classes: int) -> None:
    """Write the competition's pictures with its two lists."""
    for count, folder, file in (
        (8, "train", "trainLabels.csv"),
        (10, "test", "retinopathy_solution.csv"),
    ):
        with open(root / file, "w", newline="") as opened:
            rows = csv.writer(opened)
            rows.writerow(["image", "level", *(["Usage"] if folder == "test" else [])])
            for number in range(count):
                name, grade = f"{number}_left", number % classes
                save(root / folder / f"{name}.jpeg", grade, number)
                usage = ["Public" if number < classes else "Private"] if folder == "test" else []
                rows.writerow([name, grade, *usage])


RAW = {
    "clevr": write_clevr,
    "kitti": write_kitti,
    "dsprites": write_dsprites,
    "patch_camelyon": write_patch_camelyon,
    "smallnorb": write_smallnorb,
    "dmlab": write_dmlab,
    "retinopathy": write_retinopathy,
}
