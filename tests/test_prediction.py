"""A model that was fitted names pictures; data sets of other libraries become tasks."""

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
    """From PIL images, from files and from a folder, and by the model as it was saved and loaded."""
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
            right = [name == task.class_names[label] for name, label in zip(found["class"], labels, strict=True)]
            assert 100 * np.mean(right) == pytest.approx(values["test"], abs=1e-3)
    assert loaded.task == {"name": "tiny", "class_names": ["a", "b", "c"], "image_size": 16, "resize": "none"}
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
    assert torch.equal(whole.train[0], tiny_task(per_split=(30, 3, 3)).train[0])  # 16 pixels stay as they are
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
    assert task.class_names == ("a", "b", "c") and len(task.train[1]) + len(task.val[1]) == len(labels)


ONE = Image.new("RGB", (8, 8))


@pytest.mark.refused
@pytest.mark.parametrize(
    "train, more, said",
    [
        ([], {}, "the split train of this data set is empty"),
        ([(ONE, 0)] * 3, {}, "3 training images leave none for validation"),
        ([(torch.zeros(3, 8, 8), 0)] * 9, {}, "train, entry 0 is a Tensor; give a PIL image"),
        ([(ONE, -1)] * 9, {}, "label -1"),
        ([(ONE, "cat")] * 9, {}, "label 'cat'"),
        ([{"image": ONE}] * 9, {}, "label None"),
        ([(ONE, 2)] * 9, {"class_names": ["a", "b"]}, "label 2 has no name among 2"),
        ([(ONE, 0)] * 9, {"resize": "crip"}, "Did you mean 'crop'"),
    ],
)
def test_what_is_no_data_set_is_one_line(train, more, said):
    with pytest.raises(BadInput, match=said) as told:
        vp.make_task("odd", train, [(ONE, 0)], **more)
    assert "\n" not in str(told.value)


@pytest.mark.refused
@pytest.mark.parametrize(
    "call", [lambda: vp.predict(None, "x"), lambda: vp.merged(3), lambda: vp.count_parameters(3), lambda: vp.count_flops(None)]
)
def test_what_is_no_model_is_refused(call):
    with pytest.raises(vp.BadInput, match="the model must be TunedModel, not "):
        call()
