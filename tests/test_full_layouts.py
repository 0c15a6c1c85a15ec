"""Whole data sets as their authors publish them, each written here in miniature."""

import csv
import json
import pickle
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import savemat
from test_layouts import check_red, colour, load

import visprompt as vp
from visbook.studies import case, lab
from visprompt.data import catalogue, full_layouts
from visprompt.errors import BadInput


def sizes(task):
    return [len(labels) for _, labels in (task.train, task.val, task.test)]


def red(label):
    """A square picture (32, 32, 3) whose red tells the label."""
    return np.broadcast_to(np.array([10 * label, 0, 0], np.uint8), (32, 32, 3))


def every_label(task):
    return torch.cat([labels for _, labels in (task.train, task.val, task.test)]).unique().tolist()


def cifar(folder, files, labels_key, meta, names):
    folder.mkdir(parents=True)
    for name, labels in files.items():
        data = np.stack([red(label).transpose(2, 0, 1).reshape(-1) for label in labels])
        (folder / name).write_bytes(
            pickle.dumps({b"data": data, labels_key: list(labels)}, protocol=2)
        )
    (folder / meta[0]).write_bytes(
        pickle.dumps({meta[1]: [name.encode() for name in names]}, protocol=2)
    )


def test_cifar_holds_a_tenth_out(tmp_path):
    files = {f"data_batch_{number}": [place % 10 for place in range(20)] for number in range(1, 6)}
    folder = tmp_path / "cifar10" / "cifar-10-python" / "cifar-10-batches-py"
    names = [f"thing {number}" for number in range(10)]
    cifar(
        folder,
        files | {"test_batch": range(10)},
        b"labels",
        ("batches.meta", b"label_names"),
        names,
    )
    task = load("cifar10", tmp_path, image_size=32)
    check_red(task)
    assert (
        sizes(task) == [90, 10, 10]
        and task.class_names == tuple(names)
        and every_label(task) == list(range(10))
    )
    (folder / "test_batch").unlink()
    with pytest.raises(BadInput, match="lacks test_batch"):
        load("cifar10", tmp_path)


@pytest.mark.parametrize("printed, joins", [(100, True), (90, False)])
def test_final_runs_on_a_whole_data_set_have_the_images_that_the_paper_has(
    tmp_path, monkeypatch, printed, joins
):
    """Where the authors have no val, a tenth of train chooses and is trained on in the end; a share
    is of both."""
    folder = tmp_path / "cifar10" / "cifar-10-python" / "cifar-10-batches-py"
    files = {f"data_batch_{k}": [label for label in range(10) for _ in "ab"] for k in range(1, 6)}
    cifar(
        folder,
        files | {"test_batch": range(10)},
        b"labels",
        ("batches.meta", b"label_names"),
        map(str, range(10)),
    )
    entry = {**catalogue.entry_of("cifar10"), "splits": {"train": printed, "test": 10}}
    monkeypatch.setattr(case, "entry_of", lambda name: entry)
    made = lab.Lab(lab.LabSettings("paper", data_dir=str(tmp_path), profile="paper"))
    run = lab.Run("vit_micro_patch4_24", "cifar10", "linear-probe", rate=0.1)
    counts = [
        len(made.resolve(replace(run, **more)).task.train[1])
        for more in ({}, {"train_size": 50}, {"trial": True})
    ]
    assert counts == ([100, 50, 90] if joins else [90, 50, 90])
    every = replace(run, train_size=100)
    if joins:
        assert (
            len(made.resolve(every).task.train[1]) == 100
            and made.resolve(every).facts.settings["train_size"] == 100
        )
        assert len(made.resolve(replace(every, trial=True)).task.train[1]) == 90  # val chooses
    else:
        with pytest.raises(
            vp.BadInput, match="train_size must be 1 to cifar10's 90 training images, not 100"
        ):
            made.resolve(every).task


def test_one_raw_folder_serves_both_tasks_of_cifar100(tmp_path):
    folder = tmp_path / "cifar100" / "cifar-100-python"
    files = {"train": [place % 20 for place in range(1200)], "test": range(20)}
    cifar(folder, files, b"fine_labels", ("meta", b"fine_label_names"), map(str, range(20)))
    few, whole = (
        load("cifar100", tmp_path, image_size=2),
        load("cifar100_full", tmp_path, image_size=2),
    )
    check_red(few), check_red(whole)
    assert sizes(few) == [800, 200, 20] and sizes(whole) == [1080, 120, 20]


def test_a_file_of_cifar_runs_no_code(tmp_path):
    folder = tmp_path / "cifar10" / "cifar-10-batches-py"
    cifar(
        folder,
        {"data_batch_1": [0], "test_batch": [0]},
        b"labels",
        ("batches.meta", b"label_names"),
        ["a"],
    )

    class Bomb:
        def __reduce__(self):
            return print, ("boom",)

    (folder / "data_batch_1").write_bytes(pickle.dumps({b"labels": Bomb()}))
    full_layouts.batch.cache_clear()
    with pytest.raises(
        BadInput, match="data_batch_1 names builtins.print, which no such file does"
    ):
        load("cifar10", tmp_path)


def cifar_pickles(folder, protocol=2):
    """A small CIFAR-10 as published: text of Python 2, written by protocol 2, with names of
    files."""
    names = [f"thing {number}" for number in range(10)]
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        data = np.stack([red(label).transpose(2, 0, 1).reshape(-1) for label in range(10)])
        held = {
            b"data": data,
            b"labels": list(range(10)),
            b"filenames": [f"{n}.png".encode() for n in range(300)],
        }
        (folder / name).write_bytes(pickle.dumps(held, protocol=protocol))
    (folder / "batches.meta").write_bytes(
        pickle.dumps({b"label_names": [name.encode() for name in names]}, protocol=protocol)
    )


def said_of(folder, tmp_path):
    """What is said of a damaged CIFAR, one line; None where all of it can be read."""
    full_layouts.batch.cache_clear()
    try:
        load("cifar10", tmp_path, image_size=32)
    except BadInput as error:
        assert "\n" not in str(error) and str(folder.parent) in str(error)
        return str(error)
    return None


@pytest.mark.refused
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("protocol", [2, 4])
def test_a_damaged_file_of_cifar_is_one_line(tmp_path, monkeypatch, protocol, part):
    """A file is cut, or some of its bytes are others, a hundred times; what still reads has
    pictures and labels."""
    folder = tmp_path / "cifar10" / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    cifar_pickles(folder, protocol)
    random, refused = np.random.default_rng([part, protocol]), 0
    for number in range(10):
        path = folder / ("batches.meta", "data_batch_1", "test_batch")[number % 3]
        whole = path.read_bytes()
        content, edges = (
            bytearray(whole),
            [*range(min(120, len(whole))), *range(max(0, len(whole) - 6000), len(whole))],
        )
        if number % 5 == 0:
            content = content[: random.integers(len(whole))]
        else:
            for place in random.choice(edges, number % 5):
                content[place] = random.integers(256)
        path.write_bytes(content)
        refused += said_of(folder, tmp_path) is not None
        path.write_bytes(whole)
    assert refused and said_of(folder, tmp_path) is None


GOOD = {b"data": np.zeros((10, 3072), np.uint8), b"labels": list(range(10))}
ODD_PICKLES = {
    "nothing": b"",
    "a web page": b"<!doctype html>",
    "a text": pickle.dumps("text"),
    "a list": pickle.dumps([1]),
    "nothing named": pickle.dumps({}),
    "a number as a name": pickle.dumps({5: 5}),
    "a name in no encoding": pickle.dumps({b"\xff": 5}),
    "labels alone": pickle.dumps({b"labels": [0]}),
    "data alone": pickle.dumps({b"data": GOOD[b"data"]}),
    "fewer labels": pickle.dumps({**GOOD, b"labels": [0]}),
    "labels that are none": pickle.dumps({**GOOD, b"labels": [None] * 10}),
    "labels without end": pickle.dumps({**GOOD, b"labels": 5}),
    "a label too high": pickle.dumps({**GOOD, b"labels": [99] * 10}),
    "data of another shape": pickle.dumps({**GOOD, b"data": np.zeros((10, 5), np.uint8)}),
    "data of no shape": pickle.dumps({**GOOD, b"data": np.uint8(5).reshape(())}),
    "numbers that are no bytes": pickle.dumps({**GOOD, b"data": np.zeros((10, 3072))}),
    "data that are none": pickle.dumps({**GOOD, b"data": b"x" * 30720}),
    "a list in itself": b"\x80\x02]q\x00h\x00a.",
    "a memo larger than memory": b"\x80\x02]r\xff\xff\xff\x0f.",
    "a memo larger than memory, in words": b"]p268435455\n.",
    "bytes larger than memory": b"\x80\x04\x8e" + b"\xff" * 7 + b"\x0f.",
    "a frame larger than memory": b"\x80\x04\x95" + b"\xff" * 7 + b"\x0f].",
    "an array larger than memory": b"\x80\x02cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I999999999999\ntU\x01btR.",
    "lists in lists without end": b"(" * 10**5 + b"l" * 10**5 + b".",
    "a stack that is empty": b"\x80\x02a.",
    "no end": b"\x80\x02]",
    "another protocol": b"\x80\x63].",
    "another file's number": b"\x80\x02P5\n.",
    "an extension": b"\x80\x02\x82\x01.",
    "an encoding that is none": b"\x80\x02c_codecs\nencode\n(U\x01xU\x04nonetR.",
    "a function as a type": b"\x80\x02cnumpy._core.multiarray\n_reconstruct\n(c_codecs\nencode\n(I0\ntU\x01btR.",
    "a state of something else": b"\x80\x02cnumpy\ndtype\n(U\x02u1tR(I3\nU\x01|tb.",
    "a number of many digits": b"I" + b"9" * 5000 + b"\n.",
}


@pytest.mark.refused
@pytest.mark.parametrize("name", ["data_batch_1", "batches.meta"])
@pytest.mark.parametrize("what", ODD_PICKLES)
def test_an_odd_file_of_cifar_is_one_line(tmp_path, what, name):
    folder = tmp_path / "cifar10" / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    cifar_pickles(folder)
    (folder / name).write_bytes(ODD_PICKLES[what])
    assert said_of(folder, tmp_path)


@pytest.mark.refused
@pytest.mark.parametrize("names", [5, [5], None, b"label", [b"\xff"] * 10, [b"one"]])
def test_names_of_cifar_that_are_none_are_one_line(tmp_path, names):
    folder = tmp_path / "cifar10" / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    cifar_pickles(folder)
    (folder / "batches.meta").write_bytes(pickle.dumps({b"label_names": names}))
    assert said_of(folder, tmp_path)


@pytest.mark.refused
@pytest.mark.parametrize(
    "content",
    [
        b"cos\nsystem\n(S'touch RAN'\ntR.",
        b"\x80\x02c__builtin__\neval\nU\x01x\x85R.",
        b"\x80\x04\x8c\x08builtins\x8c\x04exec\x93\x8c\x01x\x85R.",
        b"\x80\x02cnumpy\nload\nU\x01x\x85R.",
        b"\x80\x02cnumpy._core.multiarray\nfromfile\nU\x01x\x85R.",
        b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93.",
        b"(S'touch RAN'\nios\nsystem\n.",
    ],
)
def test_a_file_of_cifar_that_would_run_something_is_refused(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "cifar10" / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    cifar_pickles(folder)
    (folder / "data_batch_1").write_bytes(content)
    assert "which no such file does; do not use it" in said_of(folder, tmp_path)
    assert not (tmp_path / "RAN").exists()


def test_svhn_counts_ten_as_nought(tmp_path):
    (tmp_path / "svhn").mkdir()
    for split, count in (("train", 30), ("test", 10)):
        labels = np.arange(count) % 10
        images = np.stack([red(label) for label in labels], -1)
        savemat(
            tmp_path / "svhn" / f"{split}_32x32.mat",
            {"X": images, "y": np.where(labels, labels, 10)[:, None]},
        )
    task = load("svhn_full", tmp_path, image_size=32)
    check_red(task)
    assert sizes(task) == [27, 3, 10] and task.test[1].tolist() == list(range(10))


@pytest.mark.parametrize(
    "place",
    [
        "GTSRB_Final_Training_Images/GTSRB/Final_Training/Images",
        "GTSRB-Training_fixed/GTSRB/Training",
    ],
)
def test_gtsrb_keeps_drives_together(tmp_path, place):
    root = tmp_path / "gtsrb"
    for label in range(3):
        for drive in range(4):
            for frame in range(3):
                colour(
                    root / place / f"{label:05d}" / f"{drive:05d}_{frame:05d}.ppm",
                    10 * label,
                    0,
                    drive,
                )
    test = root / "GTSRB_Final_Test_Images" / "GTSRB" / "Final_Test" / "Images"
    for number in range(3):
        colour(test / f"{number:05d}.ppm", 10 * number, 0, 0)
    (root / "GTSRB_Final_Test_GT").mkdir()
    with open(root / "GTSRB_Final_Test_GT" / "GT-final_test.csv", "w", newline="") as file:
        csv.writer(file, delimiter=";").writerows(
            [("Filename", "ClassId"), *((f"{n:05d}.ppm", n) for n in range(3))]
        )
    task = load("gtsrb", tmp_path)
    check_red(task)
    assert sizes(task) == [27, 9, 3]
    drives = [
        {(label, int(image[2, 0, 0])) for image, label in zip(*split)}
        for split in (task.train, task.val)
    ]
    drives = [{(int(label), drive) for label, drive in some} for some in drives]
    assert not drives[0] & drives[1] and {drive for _, drive in drives[1]} == {3}


def test_flowers_have_val_of_their_own(tmp_path):
    root = tmp_path / "oxford_flowers102"
    for number in range(1, 31):
        colour(root / "102flowers" / "jpg" / f"image_{number:05d}.png", 10 * (number % 3), 0, 0)
        (root / "102flowers" / "jpg" / f"image_{number:05d}.png").rename(
            root / "102flowers" / "jpg" / f"image_{number:05d}.jpg"
        )
    savemat(
        root / "imagelabels.mat",
        {"labels": np.array([[number % 3 + 1 for number in range(1, 31)]])},
    )
    sets = {"trnid": [1, 2, 3], "valid": [4, 5, 6, 7], "tstid": list(range(8, 31))}
    savemat(root / "setid.mat", {key: np.array([value]) for key, value in sets.items()})
    for name in ("flowers102", "oxford_flowers", "flowers102_full"):
        task = load(name, tmp_path)
        check_red(task)
        assert sizes(task) == [3, 4, 23] and task.classes == 3


def test_dtd_takes_its_first_partition(tmp_path):
    root = tmp_path / "dtd" / "dtd-r1.0.1" / "dtd"
    (root / "labels").mkdir(parents=True)
    for split, count in (("train", 4), ("val", 2), ("test", 3)):
        rows = []
        for label, name in enumerate(("banded", "dotted")):
            for number in range(count):
                colour(root / "images" / name / f"{split}_{number}.png", 10 * label, 0, 0)
                rows.append(f"{name}/{split}_{number}.png")
        (root / "labels" / f"{split}1.txt").write_text("\n".join(rows))
    task = load("dtd", tmp_path)
    check_red(task)
    assert sizes(task) == [8, 4, 6] and task.class_names == ("banded", "dotted")


def test_pets_are_named_by_their_files(tmp_path):
    root = tmp_path / "oxford_iiit_pet"
    (root / "annotations" / "annotations").mkdir(parents=True)
    for split, count in (("trainval", 10), ("test", 2)):
        rows = []
        for label, name in enumerate(("Abyssinian", "great_pyrenees")):
            for number in range(count):
                path = root / "images" / "images" / f"{name}_{split}{number}.jpg"
                colour(path, 0, 0, 0)
                Image.new("RGB", (8, 8), (80 * label, 0, 0)).save(path)
                rows.append(f"{name}_{split}{number} {label + 1} 1 1")
        (root / "annotations" / "annotations" / f"{split}.txt").write_text("\n".join(rows))
    with pytest.raises(
        BadInput, match="split train: image .*images/Abyssinian_trainval\\d.jpg does not exist"
    ):
        # an archive holds a folder of its own name, which `unpack` takes away
        load("pets_full", tmp_path)
    (root / "images" / "images").rename(root / "pictures")
    (root / "images").rmdir()
    (root / "pictures").rename(root / "images")
    task = load("pets_full", tmp_path)
    assert sizes(task) == [18, 2, 4] and task.class_names == ("Abyssinian", "great_pyrenees")
    assert torch.equal(task.train[0][:, 0].float().mean((1, 2)) > 40, task.train[1] == 1)


def test_food_follows_its_lists(tmp_path):
    root = tmp_path / "food101" / "food-101"
    (root / "meta").mkdir(parents=True)
    names = {"waffles": 10, "apple_pie": 0}
    for split, count in (("train", 10), ("test", 3)):
        content = {name: [f"{name}/{split}{number}" for number in range(count)] for name in names}
        (root / "meta" / f"{split}.json").write_text(json.dumps(content))
        for paths in content.values():
            for path in paths:
                colour(root / "images" / f"{path}.png", names[path.split("/")[0]], 0, 0)
                (root / "images" / f"{path}.png").rename(root / "images" / f"{path}.jpg")
    task = load("food101", tmp_path)
    check_red(task)
    assert sizes(task) == [18, 2, 6] and task.class_names == ("apple_pie", "waffles")


def test_waterbirds_say_their_part_in_a_table(tmp_path):
    root = tmp_path / "waterbirds" / "waterbird_complete95_forest2water2"
    rows = [("img_id", "img_filename", "y", "split", "place")]
    for number, split in enumerate((0, 0, 0, 0, 1, 1, 2, 2, 2)):
        colour(root / "001.Bird" / f"{number}.png", 10 * (number % 2), 0, 0)
        rows.append((number, f"001.Bird/{number}.png", number % 2, split, 0))
    with open(root / "metadata.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    task = load("waterbirds", tmp_path)
    check_red(task)
    assert sizes(task) == [4, 2, 3] and task.class_names == ("landbird", "waterbird")


def folders(root, count, names=("Alpha", "beta")):
    for label, name in enumerate(names):
        for number in range(count):
            colour(root / name / f"{name}_{number}.png", 10 * label, 0, number)


def test_caltech_comes_in_an_archive_within_an_archive(tmp_path):
    folders(tmp_path / "101_ObjectCategories", 40)
    inner = tmp_path / "caltech101" / "caltech-101"
    inner.mkdir(parents=True)
    with tarfile.open(inner / "101_ObjectCategories.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "101_ObjectCategories", "101_ObjectCategories")
    for _ in range(2):
        task = load("caltech101", tmp_path)
        check_red(task)
        assert sizes(task) == [50, 10, 20] and task.class_names == ("Alpha", "beta")


@pytest.mark.parametrize(
    ("name", "task", "place"),
    [
        ("eurosat", "eurosat_full", "EuroSAT/2750"),
        ("eurosat", "eurosat", "2750"),
        ("resisc45", "resisc45", "NWPU-RESISC45"),
    ],
)
def test_a_published_folder_a_class_is_drawn_class_by_class(tmp_path, name, task, place):
    folders(tmp_path / name / place, 20)
    task = load(task, tmp_path)
    check_red(task)
    assert sizes(task) == [28, 4, 8] and task.test[1].bincount().tolist() == [4, 4]
    pictures = [
        {(int(l), int(i[2, 0, 0])) for i, l in zip(*split)}
        for split in (task.train, task.val, task.test)
    ]
    assert len(set.union(*pictures)) == 40


def sun(root, parts):
    names = ("a/abbey", "c/control_tower/indoor")
    for label, name in enumerate(names):
        for number in range(10):
            colour(root / "SUN397" / name / f"sun_{number}.png", 10 * label, 0, 0)
    (root / "SUN397" / "ClassName.txt").write_text("".join(f"/{name}\n" for name in names))
    if parts:
        (root / "Partitions").mkdir()
        for part, numbers in (("Training", range(5)), ("Testing", range(5, 8))):
            rows = [f"/{name}/sun_{number}.png\n" for name in names for number in numbers]
            (root / "Partitions" / f"{part}_01.txt").write_text("".join(rows))


def test_sun_takes_its_partition_where_it_is(tmp_path):
    sun(tmp_path / "one" / "sun397", True), sun(tmp_path / "two" / "sun397", False)
    for folder, expected in (("one", [8, 2, 6]), ("two", [14, 2, 4])):
        task = load("sun397", tmp_path / folder)
        check_red(task)
        assert sizes(task) == expected and task.class_names[1] == "c/control_tower/indoor"


def structs(**columns):
    """A MATLAB struct array."""
    found = np.zeros(len(next(iter(columns.values()))), [(name, object) for name in columns])
    for name, values in columns.items():
        found[name] = values
    return found[None]


def test_cars_read_the_development_kit(tmp_path):
    root = tmp_path / "stanford_cars"
    for split, file, count in (
        ("train", "cars_train_annos", 20),
        ("test", "cars_test_annos_withlabels", 4),
    ):
        names = [f"{number:05d}.jpg" for number in range(1, count + 1)]
        labels = [number % 2 + 1 for number in range(count)]
        for name, label in zip(names, labels):
            colour(root / f"cars_{split}" / f"cars_{split}" / name, 0, 0, 0)
            Image.new("RGB", (8, 8), (80 * (label - 1), 0, 0)).save(
                root / f"cars_{split}" / f"cars_{split}" / name
            )
        savemat(root / f"{file}.mat", {"annotations": structs(fname=names, **{"class": labels})})
    (root / "car_devkit").mkdir()
    meta = np.array([["AM General Hummer", "Acura RL"]], object)
    savemat(root / "car_devkit" / "cars_meta.mat", {"class_names": meta})
    task = load("stanford_cars", tmp_path)
    assert sizes(task) == [18, 2, 4] and task.class_names == ("AM General Hummer", "Acura RL")
    assert task.test[1].tolist() == [0, 1, 0, 1]
    assert torch.equal(task.train[0][:, 0].float().mean((1, 2)) > 40, task.train[1] == 1)


@pytest.mark.parametrize(("name", "first"), [("cub_200_2011", 1), ("nabirds", 293)])
def test_birds_come_in_tables(tmp_path, name, first):
    root, rows = tmp_path / name / "CUB_200_2011", []
    for number in range(40):
        colour(root / "images" / f"{number % 2}" / f"{number}.png", 10 * (number % 2), 0, 0)
        rows.append(
            (
                f"id{number}",
                f"{number % 2}/{number}.png",
                first + 2 * (number % 2),
                int(number < 30),
            )
        )
    for file, column in (("images", 1), ("image_class_labels", 2), ("train_test_split", 3)):
        (root / f"{file}.txt").write_text("".join(f"{row[0]} {row[column]}\n" for row in rows))
    (root / "classes.txt").write_text("".join(f"{first + n} bird number {n}\n" for n in range(4)))
    task = load(name, tmp_path)
    check_red(task)
    assert sizes(task) == [27, 3, 10] and task.class_names == ("bird number 0", "bird number 2")


def test_dogs_come_in_lists(tmp_path):
    root = tmp_path / "stanford_dogs"
    for split, count in (("train", 10), ("test", 4)):
        files = [f"n0{number % 2}-Dog{number % 2}/{split}{number}.png" for number in range(count)]
        for number, file in enumerate(files):
            colour(root / "images" / "Images" / file, 10 * (number % 2), 0, 0)
        listed = np.array(files, object)[:, None]
        (root / "lists").mkdir(exist_ok=True)
        savemat(
            root / "lists" / f"{split}_list.mat",
            {"file_list": listed, "labels": [[n % 2 + 1] for n in range(count)]},
        )
    task = load("stanford_dogs", tmp_path)
    check_red(task)
    assert sizes(task) == [9, 1, 4] and task.class_names == ("n00-Dog0", "n01-Dog1")


@pytest.mark.parametrize("flat", [True, False])
def test_imagenet_sorted_or_as_it_comes(tmp_path, flat):
    root, names = tmp_path / "imagenet", ("n01440764", "n01443537")
    for label, name in enumerate(names):
        for number in range(20):
            colour(tmp_path / "pictures" / name / f"{name}_{number}.png", 10 * label, 0, 0)
    (root / "ILSVRC2012_img_train").mkdir(parents=True)
    if flat:
        for name in names:
            with tarfile.open(root / "ILSVRC2012_img_train" / f"{name}.tar", "w") as archive:
                for path in sorted((tmp_path / "pictures" / name).iterdir()):
                    archive.add(path, path.name)
        truth = [2, 1, 2]
        for number, label in enumerate(truth):
            colour(
                root / "ILSVRC2012_img_val" / f"ILSVRC2012_val_{number:08d}.png",
                10 * (2 - label),
                0,
                0,
            )
        kit = root / "ILSVRC2012_devkit_t12" / "data"
        kit.mkdir(parents=True)
        (kit / "ILSVRC2012_validation_ground_truth.txt").write_text(
            "".join(f"{label}\n" for label in truth)
        )
        savemat(
            kit / "meta.mat", {"synsets": structs(ILSVRC2012_ID=[1, 2], WNID=list(names[::-1]))}
        )
    else:
        (root / "ILSVRC2012_img_train").rmdir()
        (tmp_path / "pictures").rename(root / "train")
        for label, name in enumerate(names):
            colour(root / "val" / name / "1.png", 10 * label, 0, 0)
    task = load("imagenet", tmp_path)
    check_red(task)
    assert sizes(task) == [36, 4, 3 if flat else 2] and task.class_names == names


def test_inaturalist_reads_the_lists_of_the_competition(tmp_path):
    root = tmp_path / "inaturalist2018"
    for split, count in (("train", 20), ("val", 4)):
        images, notes = [], []
        for number in range(count):
            file = f"train_val2018/Aves/{number % 2 + 5}/{split}{number}.png"
            colour(root / file, 10 * (number % 2), 0, 0)
            images.append({"id": number, "file_name": file})
            notes.append({"image_id": number, "category_id": number % 2 + 5})
        kinds = [{"id": 5, "name": "Corvus corax"}, {"id": 6, "name": "Pica pica"}]
        (root / f"{split}2018.json").write_text(
            json.dumps({"images": images, "annotations": notes, "categories": kinds})
        )
    task = load("inaturalist2018", tmp_path)
    check_red(task)
    assert sizes(task) == [18, 2, 4] and task.class_names == ("Corvus corax", "Pica pica")


def test_lists_of_coop_decide_for_a_whole_data_set_and_for_no_other(tmp_path):
    root = tmp_path / "eurosat"
    folders(root / "2750", 20)
    rows = [
        [f"{name}/{name}_{number}.png", label, f"the {name}"]
        for label, name in enumerate(("Alpha", "beta"))
        for number in range(20)
    ]
    listed = {"train": rows[::4], "val": rows[1::4], "test": rows[2::4]}
    (root / "split_zhou_EuroSAT.json").write_text(json.dumps(listed))
    task = load("eurosat_full", tmp_path)
    check_red(task)
    assert sizes(task) == [10, 10, 10] and task.class_names == ("the Alpha", "the beta")
    assert sizes(load("eurosat", tmp_path)) == [28, 4, 8]
    (root / "2750" / "beta" / "beta_0.png").unlink()
    with pytest.raises(BadInput, match=r"missing: 1 of 10 pictures of train"):
        load("eurosat_full", tmp_path)
    listed["test"][0][1] = 7
    (root / "split_zhou_EuroSAT.json").write_text(json.dumps(listed))
    with pytest.raises(BadInput, match="leaves out labels below 7"):
        load("eurosat_full", tmp_path)


def test_ucf101_is_frames_in_folders_or_by_lists(tmp_path):
    folders(tmp_path / "ucf101" / "UCF-101-midframes", 4)
    rows = [
        [f"{name}/{name}_{number}.png", label, name]
        for label, name in enumerate(("Alpha", "beta"))
        for number in range(4)
    ]
    listed = {"train": rows[::2], "val": rows[1::4], "test": rows[3::4]}
    (tmp_path / "ucf101" / "split_zhou_UCF101.json").write_text(json.dumps(listed))
    task = load("ucf101", tmp_path)
    check_red(task)
    assert sizes(task) == [4, 2, 2]


@pytest.mark.refused
@pytest.mark.parametrize(
    "name",
    sorted({"cifar10", "svhn", "gtsrb", "food101", "waterbirds", "cub_200_2011", "imagenet"}),
)
def test_an_empty_folder_says_what_it_wants(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(
        BadInput, match=f"nor one folder per class, nor .*; see: visprompt data info {name}"
    ) as caught:
        load(name, tmp_path)
    assert "\n" not in str(caught.value)


def test_every_full_layout_is_tried_here():
    text, sets = Path(__file__).read_text(encoding="utf-8"), catalogue.datasets()
    names = {
        name: [name, *(slug for slug, found in sets.items() if found.layout == name)]
        for name in full_layouts.FULL
    }
    untried = [
        name for name, known in names.items() if not any(f'"{word}' in text for word in known)
    ]
    assert not untried, f"write a test of {untried[0]} in this file, on a tiny set of its own"
