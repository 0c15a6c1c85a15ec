"""A model that was fitted names pictures; data sets of other libraries become tasks."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import small_vit, tiny_task
from PIL import Image

import visprompt as vp
from visprompt.errors import BadInput

RECIPE = vp.Recipe(learning_rate=0.01, epochs=20)


def picture(images, number):
    return Image.fromarray(images[number].permute(1, 2, 0).numpy())


@pytest.fixture(scope="module")
def fitted():
    task, backbone = tiny_task(), small_vit()
    model = vp.build_method("vpt-shallow", backbone, task.classes, prompt_tokens=2)
    values = vp.fit(model, task, RECIPE)
    return model, task, backbone, values


def test_predictions_are_those_of_the_test_accuracy(fitted, tmp_path):
    """From PIL images, from files and from a folder, and by the model as it was saved and
    loaded."""
    model, task, backbone, values = fitted
    images, labels = task.test
    given = [picture(images, number) for number in range(len(labels))]
    for number, image in enumerate(given):
        image.save(tmp_path / f"{number:02}.png")
    (tmp_path / "notes.txt").write_text("no picture")
    vp.save_method(model, tmp_path / "one.safetensors")
    loaded = vp.load_method(tmp_path / "one.safetensors", backbone)
    for one in (model, loaded):
        for pictures in (given, tmp_path, str(tmp_path), sorted(tmp_path.glob("*.png"))):
            found = vp.predict(one, pictures)
            right = [
                name == task.class_names[label]
                for name, label in zip(found["class"], labels, strict=True)
            ]
            assert 100 * np.mean(right) == pytest.approx(values["test"], abs=1e-3)
    assert loaded.task == {
        "name": "tiny",
        "class_names": ["a", "b", "c"],
        "image_size": 16,
        "resize": "none",
    }
    three = vp.predict(loaded, given[0], top=3)
    assert sorted(three["class"]) == ["a", "b", "c"] and three.probability.is_monotonic_decreasing
    assert three.probability.sum() == pytest.approx(1)


@pytest.mark.refused
@pytest.mark.parametrize(
    "pictures, top, said",
    [
        (3, 1, "not a int"),
        ([], 1, "no picture"),
        ("nowhere.png", 1, "nowhere.png does not exist"),
        (".", 0, "top must be 1 to 3"),
        (".", 4, "top must be 1 to 3"),
        (".", True, "top must be 1 to 3"),
    ],
)
def test_what_cannot_be_predicted_is_one_line(fitted, pictures, top, said):
    with pytest.raises(BadInput, match=said) as told:
        vp.predict(fitted[0], pictures, top)
    assert "\n" not in str(told.value)


def test_a_model_without_a_task_says_so(vit):
    with pytest.raises(BadInput, match="fit it with vp.fit"):
        vp.predict(vp.build_method("linear-probe", vit, 3), Image.new("RGB", (4, 4)))


class Listed(list):
    """A data set as torchvision or Hugging Face has them."""


def data_set(kind: str, count: int = 30):
    images, labels = tiny_task(per_split=(count, 3, 3)).train
    pairs = [(picture(images, number), int(labels[number])) for number in range(count)]
    if kind == "torchvision":
        found = Listed(pairs)
        found.classes = ["red", "green", "blue"]
    else:
        found = Listed({"image": image, "label": label} for image, label in pairs)
        names = type("ClassLabel", (), {"names": ["red", "green", "blue"]})()
        found.features = {"image": None, "label": names}
    return found


@pytest.mark.parametrize("kind", ["torchvision", "hugging face"])
def test_data_sets_of_others_are_tasks(kind):
    data = data_set(kind)
    task = vp.make_task("colours", data, data_set(kind, 6), image_size=16)
    whole = vp.make_task("colours", data, data_set(kind, 6), data_set(kind, 3), image_size=16)
    assert task.class_names == ("red", "green", "blue") and task.resize == "direct"
    assert [len(labels) for _, labels in (task.train, task.val, task.test)] == [24, 6, 6]
    assert [len(labels) for _, labels in (whole.train, whole.val, whole.test)] == [30, 3, 6]
    assert task.val[1].bincount().tolist() == [2, 2, 2]
    # 16 pixels stay as they are
    assert torch.equal(whole.train[0], tiny_task(per_split=(30, 3, 3)).train[0])
    model = vp.build_method("linear-probe", small_vit(), task.classes)
    assert vp.fit(model, task, vp.Recipe(epochs=1))["test"] >= 0


def test_an_image_folder_is_a_task(tmp_path):
    from torchvision.datasets import ImageFolder

    images, labels = tiny_task().train
    for number, label in enumerate(labels.tolist()):
        folder = tmp_path / "abc"[label]
        folder.mkdir(exist_ok=True)
        picture(images, number).save(folder / f"{number}.png")
    task = vp.make_task("mine", ImageFolder(tmp_path), ImageFolder(tmp_path), image_size=16)
    assert task.class_names == ("a", "b", "c") and len(task.train[1]) + len(task.val[1]) == len(
        labels
    )


ONE = Image.new("RGB", (8, 8))
PAIR = [(ONE, 0)]


class DatasetDict(dict):
    """As Hugging Face's: data sets by the names of their splits."""


class IterableDataset:
    """As Hugging Face's and torch's: a stream, without length or numbers."""

    column_names = ["image", "label"]

    def __iter__(self):
        yield {"image": ONE, "label": 0}


class Dataset:
    """As Hugging Face's: rows by number, columns by name."""

    def __init__(self, **columns):
        self.columns, self.column_names = columns, list(columns)

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def __getitem__(self, key):
        if isinstance(key, str):
            return self.columns[key]
        return {name: values[key] for name, values in self.columns.items()}


class Broken(Listed):
    """A data set, one file of which cannot be read."""

    def __getitem__(self, number):
        raise FileNotFoundError(2, "No such file or directory", "a.png")


SPLITS = DatasetDict(train=PAIR * 9, validation=PAIR, test=PAIR)


def cut_off():
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 40, 3), np.uint8)).save(
        file, "PNG"
    )
    return Image.open(io.BytesIO(file.getvalue()[:400]))


@pytest.mark.refused
@pytest.mark.parametrize(
    "train, more, said",
    [
        ([], {}, "the split train of this data set is empty"),
        ([(ONE, 0)] * 3, {}, "3 training images leave none for validation"),
        ([(torch.zeros(3, 8, 8), 0)] * 9, {}, "train, entry 0 is a Tensor; give a PIL image"),
        ([(ONE, -1)] * 9, {}, "label -1"),
        ([(ONE, "cat")] * 9, {}, "label 'cat'"),
        ([(ONE, 2)] * 9, {"class_names": ["a", "b"]}, "label 2 has no name among 2"),
        ([(ONE, 0)] * 9, {"resize": "crip"}, "Did you mean 'crop'"),
        (
            SPLITS,
            {},
            r"train is a DatasetDict of train, validation, test; give one of them, as "
            r"train=data\['train'\]",
        ),
        (
            PAIR * 9,
            {"test": SPLITS},
            r"test is a DatasetDict of .*; give one of them, as test=data\['test'\]",
        ),
        (
            PAIR * 9,
            {"val": SPLITS},
            r"val is a DatasetDict of .*; give one of them, as val=data\['validation'\]",
        ),
        (
            DatasetDict(a=PAIR),
            {},
            r"train is a DatasetDict of a; give one of them, as train=data\['a'\]",
        ),
        (DatasetDict(), {}, "train is a DatasetDict"),
        ({"image": [ONE], "label": [0]}, {}, "train is a dict of image, label; give"),
        (
            IterableDataset(),
            {},
            "train is an IterableDataset, a stream; .*without streaming, or give list",
        ),
        ((pair for pair in PAIR), {}, "train is a generator, a stream"),
        (PAIR * 9, {"test": iter(PAIR)}, "test is a list_iterator, a stream"),
        (None, {}, "train is a NoneType; give a data set"),
        (PAIR * 9, {"test": None}, "test is a NoneType; give a data set"),
        (5, {}, "train is an? int; give a data set"),
        ("folder", {}, "train is a str; give a data set.*load_task"),
        (Path("folder"), {}, "train is a PosixPath; give a data set.*load_task"),
        ({"a", "b"}, {}, "train is a set; give a data set"),
        (
            Dataset(photo=[ONE] * 9, label=[0] * 9),
            {},
            r"train has the columns photo, label, no image; name yours: columns=",
        ),
        (
            Dataset(image=[ONE] * 9, kind=[0] * 9),
            {"columns": ("image", "sort")},
            r"the columns image, kind, no sort; name yours",
        ),
        (
            Dataset(photo=[ONE] * 9, kind=[0] * 9),
            {},
            "the columns photo, kind, no image and no label; name yours",
        ),
        (PAIR * 9, {"columns": "image"}, "columns must be tuple"),
        (
            [(ONE, [0, 1])] * 9,
            {},
            "train, entry 0 has several labels; a task has one class an image",
        ),
        (
            Dataset(image=[{"bytes": b"", "path": None}] * 9, label=[0] * 9),
            {},
            "train, entry 0 is a dict; give a PIL image",
        ),
        (
            Dataset(image=[None] * 9, label=[0] * 9),
            {},
            "train, entry 0 is a NoneType; give a PIL image",
        ),
        (Dataset(image=[ONE] * 9, label=[None] * 9), {}, "train, entry 0 has the label None"),
        ([{"image": ONE}] * 9, {}, "train has the columns image, no label"),
        ([{"photo": ONE, "label": 0}] * 9, {}, "train has the columns photo, label, no image"),
        ([{}] * 9, {}, "train has the columns none, no image and no label"),
        ([3] * 9, {}, "train, entry 0 is an? int; give a picture and its label"),
        ([None] * 9, {}, "train, entry 0 is a NoneType; give a picture and its label"),
        (["ab"] * 9, {}, "train, entry 0 is a str; give a picture and its label"),
        ([(ONE,)] * 9, {}, "train, entry 0 is a tuple; give a picture and its label"),
        ([()] * 9, {}, "train, entry 0 is a tuple; give a picture and its label"),
        (Broken(PAIR * 9), {}, "train, entry 0 cannot be read .No such file"),
        ([(cut_off(), 0)] * 9, {}, "train, entry 0 cannot be read"),
        ([("a.png", 0)] * 9, {}, "train, entry 0 is a str; give a PIL image"),
        (
            [(np.zeros((8, 8, 3)), 0)] * 9,
            {},
            "train, entry 0 is a ndarray float64 .8, 8, 3.; give a PIL image or uint8",
        ),
        ([(np.full((8, 8, 3), np.nan), 0)] * 9, {}, "ndarray float64"),
        ([(np.zeros((8, 8), np.uint16), 0)] * 9, {}, "ndarray uint16 .8, 8."),
        (
            [(np.zeros((3, 8, 8), np.uint8), 0)] * 9,
            {},
            "ndarray uint8 .3, 8, 8.; give a PIL image or uint8 .H, W, 3.",
        ),
        ([(np.zeros((8, 8, 2), np.uint8), 0)] * 9, {}, "ndarray uint8 .8, 8, 2."),
        ([(np.zeros(8, np.uint8), 0)] * 9, {}, "ndarray uint8 .8,."),
        ([(np.zeros((0, 0, 3), np.uint8), 0)] * 9, {}, "train, entry 0 has no pixel"),
        ([(Image.new("RGB", (0, 4)), 0)] * 9, {}, "train, entry 0 has no pixel"),
        ([(Image.new("RGB", (0, 0)), 0)] * 9, {"resize": "crop"}, "train, entry 0 has no pixel"),
        ([(Image.new("F", (8, 8)), 0)] * 9, {}, "more than one meaning .mode F."),
        ([(Image.new("I", (8, 8)), 0)] * 9, {}, "more than one meaning .mode I."),
        ([(Image.new("I;16", (8, 8)), 0)] * 9, {}, "more than one meaning .mode I;16."),
        ([(Image.new("La", (8, 8)), 0)] * 9, {}, "train, entry 0 cannot be read"),
        ([(ONE, True)] * 9, {}, "label True"),
        ([(ONE, 1.0)] * 9, {}, "label 1.0"),
        ([(ONE, float("nan"))] * 9, {}, "label nan"),
        ([(ONE, torch.tensor(1))] * 9, {}, "label tensor"),
        ([(ONE, 2**70)] * 9, {}, "label 1180591620717411303424; give a whole number"),
        ([(ONE, 10**7)] * 9, {}, "label 10000000 is too high for 10 images"),
        (PAIR * 9, {"image_size": 0}, "image_size must be 1 to 1024 pixels"),
        (PAIR * 9, {"image_size": -8}, "image_size must be 1 to 1024 pixels"),
        (PAIR * 9, {"image_size": "8"}, "image_size must be 1 to 1024 pixels"),
        (PAIR * 9, {"image_size": 8.0}, "image_size must be 1 to 1024 pixels"),
        (PAIR * 9, {"image_size": None}, "image_size must be 1 to 1024 pixels"),
        (PAIR * 9, {"image_size": True}, "image_size must be 1 to 1024 pixels"),
        (PAIR * 9, {"image_size": 10**7}, "image_size must be 1 to 1024 pixels"),
        (PAIR * 9, {"resize": None}, "unknown resize rule .None"),
        (PAIR * 9, {"resize": ["crop"]}, "unknown resize rule"),
        (PAIR * 9, {"name": None}, "a task's name"),
        (PAIR * 9, {"name": "a/b"}, "a task's name"),
        (
            PAIR * 9,
            {"class_names": "ab"},
            "class_names must be a list of texts, one a class, not 'ab'",
        ),
        (PAIR * 9, {"class_names": 3}, "class_names must be a list of texts, one a class, not 3"),
        (PAIR * 9, {"class_names": [1, 2]}, "class_names must be a list of texts"),
        (PAIR * 9, {"class_names": [None]}, "class_names must be a list of texts"),
        (PAIR * 9, {"class_names": []}, "label 0 has no name among 0"),
        (PAIR * 9, {"class_names": ["a", "a"]}, "class_names has 'a' twice"),
    ],
)
def test_what_is_no_data_set_is_one_line(train, more, said):
    given = {"name": "odd", "test": [(ONE, 0)], "image_size": 8, **more}
    with pytest.raises(BadInput, match=said) as told:
        vp.make_task(train=train, **given)
    assert "\n" not in str(told.value)


def test_without_test_images_there_is_no_task():
    with pytest.raises(BadInput, match="test is a NoneType; give a data set"):
        vp.make_task("beans", PAIR * 9)


def test_an_array_of_class_names_is_a_list():
    assert vp.make_task(
        "x", PAIR * 9, PAIR, class_names=np.array(["a", "b"]), image_size=8
    ).class_names == ("a", "b")


def test_columns_of_hugging_face_become_a_task():
    data = Dataset(image=[ONE] * 10, label=[0, 1] * 5)
    data.features = {"image": None, "label": type("ClassLabel", (), {"names": ["cat", "dog"]})()}
    task = vp.make_task("pets", data, data, image_size=8)
    assert task.class_names == ("cat", "dog") and task.test[1].tolist() == [0, 1] * 5


@pytest.mark.parametrize(
    ("columns", "labels", "classes"),
    [(None, [0, 1], ("cat", "dog")), (("img", "coarse_label"), [0, 0], ("pet",))],
)
def test_columns_are_found_or_asked_for_and_a_subset_keeps_its_classes(columns, labels, classes):
    data = Dataset(img=[ONE] * 10, fine_label=[0, 1] * 5, coarse_label=[0] * 10)
    kinds = {"img": (), "fine_label": ("cat", "dog"), "coarse_label": ("pet",)}
    data.features = {
        name: type("ClassLabel", (), {"names": list(names)})() for name, names in kinds.items()
    }
    part = torch.utils.data.Subset(data, range(6))
    for train in (data, part):
        task = vp.make_task("pets", train, part, image_size=8, columns=columns)
        assert task.class_names == classes and task.test[1].tolist() == labels * 3


@pytest.mark.refused
@pytest.mark.parametrize(
    "pictures, said",
    [
        (Image.new("La", (8, 8)), "picture 0 cannot be read"),
        (Image.new("F", (8, 8)), "picture 0 .*mode F"),
        (Image.new("RGB", (0, 8)), "picture 0 has no pixel"),
        ([ONE, cut_off()], "picture 1 cannot be read"),
        (np.zeros((8, 8, 3), np.uint8), "not a ndarray"),
        (torch.zeros(3, 8, 8), "not a Tensor"),
        (None, "not a NoneType"),
        ({}, "not a dict"),
        ([[None]], "not a NoneType"),
        ("a\0b", "cannot be read"),
        ("x" * 5000, "cannot be read .File name too long"),
        (b"a.png", "not a bytes"),
        ("", "is not a regular file|no picture"),
    ],
)
def test_what_is_no_picture_is_one_line(fitted, pictures, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=said) as told:
        vp.predict(fitted[0], pictures)
    assert "\n" not in str(told.value)


@pytest.mark.refused
@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: vp.predict(None, "x"), "the model must be TunedModel, not "),
        (lambda: vp.merged(3), "the model must be TunedModel, not "),
        (lambda: vp.count_parameters(3), "count_parameters's model must be TunedModel, not 3"),
        (lambda: vp.count_flops(None), "count_flops's model must be TunedModel, not None"),
    ],
)
def test_what_is_no_model_is_refused(call, said):
    with pytest.raises(vp.BadInput, match=said):
        call()
