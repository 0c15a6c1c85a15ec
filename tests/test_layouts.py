"""Data sets as they lie on the disk, each written here in miniature in the form its authors
publish."""

import csv
import io
import json
import struct

import h5py
import numpy as np
import pytest
import torch
from PIL import Image

import visprompt as vp
from visprompt.data import catalogue, full_layouts, layouts, raw_layouts
from visprompt.errors import BadInput


def colour(path, *rgb, size=(12, 10)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, rgb).save(path)


def load(name, root, **more):
    return vp.load_task(name, root, **{"image_size": 8, **more})


def labels_by_red(split):
    """The label of each picture whose red is ten times the label, and of how many that is so."""
    images, labels = split
    return (images[:, 0].float().mean((1, 2)) / 10).round().long(), labels


def check_red(task):
    for split in (task.train, task.val, task.test):
        red, labels = labels_by_red(split)
        assert torch.equal(red, labels) and len(labels)


def clevr(root, solids):
    """The scenes of each split: for each picture how many solids, and the depth of the nearest."""
    for split, scenes in solids.items():
        found = []
        for number, (count, depth) in enumerate(scenes):
            name = f"CLEVR_{split}_{number:06d}.png"
            colour(root / "images" / split / name, (count - 3) * 10, 0, 0)
            objects = [{"pixel_coords": [1, 2, depth + place]} for place in range(count)]
            found.append({"image_filename": name, "objects": objects})
        (root / "scenes").mkdir(exist_ok=True)
        (root / "scenes" / f"CLEVR_{split}_scenes.json").write_text(json.dumps({"scenes": found}))


def test_clevr_counts_and_measures(tmp_path):
    scenes = [(3 + number % 8, [7.0, 8.0, 8.2, 9.0, 9.7, 12.0][number % 6]) for number in range(20)]
    clevr(tmp_path / "clevr" / "CLEVR_v1.0", {"train": scenes, "val": scenes[:8]})
    task = load("clevr_count", tmp_path)
    check_red(task)
    assert [len(split[1]) for split in (task.train, task.val, task.test)] == [18, 2, 8]
    assert task.class_names == tuple("3 4 5 6 7 8 9 10".split()) and task.test[1].tolist() == list(
        range(8)
    )
    distance = load("clevr_distance", tmp_path)
    # an edge belongs below it
    assert distance.classes == 6 and distance.test[1].tolist() == [0, 0, 1, 2, 4, 5, 0, 0]


def kitti(root, vehicles):
    """For each drive, the lines of its pictures."""
    lines, order, number = [], [], 0
    for drive, pictures in vehicles.items():
        for objects in pictures:
            colour(
                root / "data_object_image_2/training/image_2" / f"{number:06d}.png", 0, 0, number
            )
            label = root / "data_object_label_2/training/label_2" / f"{number:06d}.txt"
            label.parent.mkdir(parents=True, exist_ok=True)
            label.write_text(
                "".join(f"{kind} 0 0 0 1 1 2 2 1 1 1 0.5 1.5 {z} 0\n" for kind, z in objects)
            )
            lines.append(f"2011_09_26 {drive} {number:010d}")
            order.append(number + 1)
            number += 1
    mapping = root / "devkit_object" / "mapping"
    mapping.mkdir(parents=True)
    (mapping / "train_mapping.txt").write_text("\n".join(lines))
    (mapping / "train_rand.txt").write_text(",".join(map(str, order)))


def test_kitti_takes_the_nearest_vehicle_and_keeps_drives_together(tmp_path):
    pictures = [
        [("Car", 30.0), ("Van", 7.9), ("Pedestrian", 1.0)],
        [("Truck", 8.0)],
        [("Car", 8.1), ("DontCare", -1000.0)],
        [("Car", 20.5)],
        [("Pedestrian", 3.0)],
    ]
    kitti(tmp_path / "kitti", {f"drive_{number:02d}": pictures for number in range(20)})
    task = load("kitti", tmp_path)
    assert task.class_names == ("near", "middle", "far", "none")
    assert [len(split[1]) for split in (task.train, task.val, task.test)] == [80, 10, 10]
    assert task.test[1].tolist() == [0, 0, 1, 2, 3] * 2
    drives = [
        {number // 5 for number in split[0][:, 2, 0, 0].tolist()}
        for split in (task.train, task.val, task.test)
    ]
    assert len(set.union(*drives)) == sum(map(len, drives)) == 20
    (tmp_path / "kitti" / "devkit_object" / "mapping" / "train_rand.txt").unlink()
    with pytest.raises(BadInput, match="lacks mapping/train_rand.txt"):
        load("kitti", tmp_path)


def test_dsprites_bins_places_and_turns(tmp_path):
    (tmp_path / "dsprites").mkdir()
    columns = np.zeros((1280, 6), np.int64)
    # every place at every turn
    columns[:, 4], columns[:, 3] = (np.arange(1280) % 32, np.arange(1280) // 32)
    images = np.zeros((1280, 64, 64), np.uint8)
    images[np.arange(1280), :, 2 * columns[:, 4]] = images[
        np.arange(1280), :, 2 * columns[:, 4] + 1
    ] = 1
    with h5py.File(
        tmp_path / "dsprites" / "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.hdf5", "w"
    ) as file:
        file["imgs"], file["latents/classes"] = images, columns
    task = load("dsprites_label_x_position", tmp_path, image_size=64)
    assert [len(split[1]) for split in (task.train, task.val, task.test)] == [800, 128, 128]
    place = task.test[0][:, 0, 0].float().argmax(1)
    assert (
        torch.equal(place // 4, task.test[1]) and task.test[0].max() == 255 and task.classes == 16
    )
    turns = load("dsprites_label_orientation", tmp_path, image_size=4)
    every = torch.cat([turns.train[1], turns.val[1], turns.test[1]])
    assert every.unique().tolist() == list(range(16))
    steps = [turn * 16 // 40 for turn in range(40)]
    assert steps == [int(turn / 2.5) for turn in range(40)]  # the published code divides by a float


def norb(path, numbers, kind):
    """A matrix in the authors' own format."""
    numbers = np.asarray(numbers)
    sizes = list(numbers.shape) + [1] * (3 - numbers.ndim)
    path.parent.mkdir(parents=True, exist_ok=True)
    head = struct.pack(f"<II{len(sizes)}I", kind, numbers.ndim, *sizes)
    path.write_bytes(
        head + numbers.astype({0x1E3D4C55: np.uint8, 0x1E3D4C54: "<i4"}[kind]).tobytes()
    )


def test_smallnorb_reads_the_authors_format(tmp_path):
    for split, count in (("training", 36), ("testing", 72)):
        steps = np.arange(count)
        info = np.stack([steps * 0, steps % 9, 2 * (steps % 18), steps * 0], 1)
        images = np.zeros((count, 2, 16, 16), np.uint8)
        images[:, 0] = (10 * (steps % 18))[:, None, None]
        name = f"smallnorb/smallnorb-5x46789x9x18x6x2x96x96-{split}"
        norb(tmp_path / f"{name}-dat.mat", images, 0x1E3D4C55)
        norb(tmp_path / f"{name}-info.mat", info, 0x1E3D4C54)
    task = load("smallnorb_azimuth", tmp_path)
    check_red(task)
    assert [len(split[1]) for split in (task.train, task.val, task.test)] == [
        36,
        36,
        36,
    ] and task.classes == 18
    assert torch.equal(task.test[0][:, 0], task.test[0][:, 2])  # grey
    heights = load("smallnorb_elevation", tmp_path)
    assert heights.classes == 9 and heights.test[1].tolist() == [step % 9 for step in range(36)]
    norb(
        tmp_path / "smallnorb/smallnorb-5x46789x9x18x6x2x96x96-training-dat.mat", images, 0x1E3D4C55
    )
    path = tmp_path / "smallnorb/smallnorb-5x46789x9x18x6x2x96x96-training-info.mat"
    path.write_bytes(b"MATL" + path.read_bytes()[4:])
    with pytest.raises(BadInput, match="no type of small NORB's"):
        load("smallnorb_azimuth", tmp_path)


def test_patch_camelyon_keeps_its_splits(tmp_path):
    (tmp_path / "pcam").mkdir()  # an alias
    for split, count in (("train", 6), ("valid", 4), ("test", 5)):
        labels = np.arange(count) % 2
        with h5py.File(
            tmp_path / "pcam" / f"camelyonpatch_level_2_split_{split}_x.h5", "w"
        ) as file:
            file["x"] = np.broadcast_to(
                (10 * labels)[:, None, None, None], (count, 16, 16, 3)
            ).astype(np.uint8)
        with h5py.File(
            tmp_path / "pcam" / f"camelyonpatch_level_2_split_{split}_y.h5", "w"
        ) as file:
            file["y"] = labels.reshape(-1, 1, 1, 1)
    task = load("patch_camelyon", tmp_path)
    check_red(task)
    assert [len(split[1]) for split in (task.train, task.val, task.test)] == [6, 4, 5]
    assert task.test[1].tolist() == [0, 1, 0, 1, 0]


def test_patch_camelyon_is_whole_for_the_paper_that_takes_all_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(raw_layouts, "TRAIN", 2)
    monkeypatch.setattr(raw_layouts, "VAL", 1)
    for split, count in (("train", 6), ("valid", 4), ("test", 5)):
        for kind, values in (
            ("x", np.zeros((count, 16, 16, 3), np.uint8)),
            ("y", np.arange(count) % 2),
        ):
            path = tmp_path / "patch_camelyon" / f"camelyonpatch_level_2_split_{split}_{kind}.h5"
            path.parent.mkdir(exist_ok=True)
            with h5py.File(path, "w") as file:
                file[kind] = values
    for name, counts in (("patch_camelyon", [2, 1, 5]), ("patch_camelyon_full", [6, 4, 5])):
        task = load(name, tmp_path)
        assert [len(split[1]) for split in (task.train, task.val, task.test)] == counts


def number(value):
    """A number of a protocol buffer."""
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def part(key, content):
    """A field of a protocol buffer that holds bytes."""
    return number(key << 3 | 2) + number(len(content)) + content


def example(image, label, packed):
    values = part(1, number(label)) if packed else number(1 << 3) + number(label)
    kinds = {
        "image": part(1, part(1, image)),
        "filename": part(1, part(1, b"x.jpg")),
        "label": part(3, values),
    }
    return part(
        1, b"".join(part(1, part(1, name.encode()) + part(2, kind)) for name, kind in kinds.items())
    )


@pytest.mark.parametrize("packed", [True, False])
def test_dmlab_reads_tensorflow_records(tmp_path, packed):
    folder = tmp_path / "dmlab" / "dmlab"
    folder.mkdir(parents=True)
    for split, count in (("train", 12), ("validation", 6), ("test", 7)):
        for shard in range(2):
            with open(folder / f"dmlab-{split}.tfrecord-0000{shard}-of-00002", "wb") as file:
                for label in [place % 6 for place in range(count) if place % 2 == shard]:
                    image = io.BytesIO()
                    Image.new("RGB", (32, 24), (10 * label, 0, 0)).save(image, "PNG")
                    record = example(image.getvalue(), label, packed)
                    file.write(struct.pack("<QI", len(record), 0) + record + bytes(4))
    task = load("dmlab", tmp_path)
    check_red(task)
    assert [len(split[1]) for split in (task.train, task.val, task.test)] == [
        12,
        6,
        7,
    ] and task.classes == 6
    path = folder / "dmlab-test.tfrecord-00001-of-00002"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(BadInput, match="ends within a record"):
        load("dmlab", tmp_path)


def write_csv(path, head, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([head, *rows])


def test_retinopathy_takes_the_private_test_and_prepares_eyes(tmp_path):
    root = tmp_path / "retinopathy"
    y, x = np.mgrid[:120, :160]
    eye = np.where(((y - 60) ** 2 + (x - 80) ** 2 < 50**2)[..., None], [120, 60, 30], 0).astype(
        np.uint8
    )
    for name in ("train/1_left", "train/1_right", "test/2_left", "test/2_right"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(eye).save(root / f"{name}.jpeg")
    write_csv(root / "trainLabels.csv", ["image", "level"], [["1_left", 4], ["1_right", 1]])
    rows = [["2_left", 2, "Public"], ["2_right", 3, "Private"]]
    write_csv(root / "retinopathy_solution.csv", ["image", "level", "Usage"], rows)
    task = load("retinopathy", tmp_path, image_size=60)
    assert (
        sorted(task.train[1].tolist()) == [1, 4]
        and task.val[1].tolist() == [2]
        and task.test[1].tolist() == [3]
    )
    prepared = raw_layouts.Eye(root / "train" / "1_left.jpeg", 300)()
    assert prepared.shape[:2] == (540, 540)  # twice nine tenths of the radius
    middle, corner = prepared[200:340, 200:340].astype(int), prepared[:20, :20]
    # what does not vary is grey, as is the outside
    assert abs(middle - 128).max() < 12 and (corner == 128).all()
    (root / "test" / "2_right.jpeg").unlink()
    with pytest.raises(
        BadInput,
        match="split test: image .*2_right.jpeg does not exist; missing: 1 of 1 pictures of test",
    ):
        load("retinopathy", tmp_path)


def test_a_folder_a_split(tmp_path):
    for split, count in (("train", 10), ("test", 3)):
        for label, name in enumerate(["ant", "bee"]):
            for place in range(count):
                colour(tmp_path / "insects" / split / name / f"{place}.png", 10 * label, 0, 0)
    task = load("insects", tmp_path)
    check_red(task)
    assert task.class_names == ("ant", "bee")
    assert [len(split[1]) for split in (task.train, task.val, task.test)] == [16, 4, 6]
    colour(tmp_path / "insects" / "val" / "bee" / "1.png", 10, 0, 0)
    assert (
        load("insects", tmp_path).val[1].tolist() == [1]
        and len(load("insects", tmp_path).train[1]) == 20
    )
    colour(tmp_path / "insects" / "test" / "been" / "1.png", 10, 0, 0)
    with pytest.raises(BadInput, match="Did you mean 'bee'"):
        load("insects", tmp_path)


def test_a_folder_a_class(tmp_path):
    for label, name in enumerate(["ant", "bee", "cow"]):
        for place in range(5 + 5 * label):
            colour(tmp_path / "mine" / name / f"{place}.png", 10 * label, 0, place)
    task = load("mine", tmp_path)
    check_red(task)
    assert [split[1].bincount().tolist() for split in (task.train, task.val, task.test)] == [
        [3, 6, 9],
        [1, 2, 3],
        [1, 2, 3],
    ]
    assert load("mine", tmp_path).fingerprint == task.fingerprint


def test_lists_come_before_folders_and_aliases_are_found(tmp_path):
    root = tmp_path / "cub200"
    for label in range(2):
        for place in range(3):
            colour(root / f"class{label}" / f"{place}.png", 10 * label, 0, 0)
    for place, name in enumerate(["train800.txt", "val200.txt", "test.txt"]):
        (root / name).write_text(f"class0/{place}.png 0\nclass1/{place}.png 1\n")
    task = load("cub_200_2011", tmp_path)
    assert task.name == "cub_200_2011" and len(task.test[1]) == 2
    (root / "val200.txt").unlink()
    # part of the lists is not one folder per class
    with pytest.raises(BadInput, match="val200.txt is missing"):
        load("cub_200_2011", tmp_path)


def test_lists_of_one_task_are_not_taken_for_another(tmp_path):
    root = tmp_path / "oxford_flowers102"  # VTAB and FGVC both make a task of it
    for place, name in enumerate(["train800.txt", "val200.txt", "test.txt"]):
        colour(root / f"{place}.png", 0, 0, 0)
        (root / name).write_text(f"{place}.png 0\n")
    with pytest.raises(
        BadInput, match="may be another task's; rename the folder oxford_flowers if"
    ):
        load("oxford_flowers", tmp_path)
    root.rename(tmp_path / "oxford_pets")
    assert len(load("pets", tmp_path).test[1]) == 1
    with pytest.raises(BadInput, match="rename the folder pets_full"):
        load("pets_full", tmp_path)
    (tmp_path / "oxford_pets").rename(tmp_path / "pets")
    with pytest.raises(BadInput, match="Did you mean 'pets'"):
        load("pets_full", tmp_path)


def test_a_raw_task_says_what_its_folder_lacks(tmp_path):
    (tmp_path / "clevr").mkdir()
    with pytest.raises(
        BadInput, match="nor scenes/CLEVR_train_scenes.json; see: visprompt data info clevr_count"
    ):
        load("clevr_count", tmp_path)
    (tmp_path / "clevr" / "scenes").mkdir()
    (tmp_path / "clevr" / "scenes" / "CLEVR_train_scenes.json").write_text('{"scenes": [{}]}')
    with pytest.raises(BadInput, match="is not as CLEVR publishes it .*fetch it again"):
        load("clevr_count", tmp_path)
    clevr(tmp_path / "clevr", {"train": [(3, 8.0)] * 10, "val": [(3, 8.0)] * 2})
    with pytest.raises(BadInput, match="Allowed: clevr_count, clevr_distance"):
        load("clevr", tmp_path)


def test_every_raw_layout_belongs_to_a_data_set():
    named = {found.layout for found in catalogue.datasets().values()} - {""}
    raw = {*raw_layouts.RAW, *full_layouts.FULL}
    unread = sorted(named - raw)
    assert not unread, (
        f"enter {unread[0]} in FULL of data/full_layouts.py, or in RAW of data/raw_layouts.py"
    )
    assert raw <= set(layouts.LAYOUTS)
    loose = sorted(raw - named)
    assert not loose, f"name {loose[0]} as the layout of a data set in data_manifests/datasets/"


def test_every_raw_layout_is_tried_here():
    untried = [
        name
        for name in raw_layouts.RAW
        if not any(test.startswith(f"test_{name}_") for test in globals())
    ]
    assert not untried, f"write test_{untried[0]}_... in this file, on a tiny set of its own"
