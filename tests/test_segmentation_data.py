"""ADE20K and PASCAL Context in their official layout, written tiny, and what is wrong with them
said in one line."""

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from visprompt.data import catalogue
from visprompt.data.mask_tasks import HELD_OUT, IGNORED, load_segmentation
from visprompt.errors import BadInput


def picture(path, size=(9, 7), seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (*size[::-1], 3), np.uint8)).save(
        path
    )


def mask(path, labels):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.array(labels, np.uint8)).save(path)


@pytest.fixture
def ade(tmp_path):
    root = tmp_path / "ade20k" / "ADEChallengeData2016"
    names = "\n".join(f"{i}\t0.1\t1\t1\tthing {i}, other name" for i in range(1, 151))
    for part, count in (("training", 3), ("validation", 2)):
        for i in range(count):
            picture(root / "images" / part / f"ADE_{part}_{i}.jpg", seed=i)
            mask(
                root / "annotations" / part / f"ADE_{part}_{i}.png",
                np.arange(63).reshape(7, 9) + 88 * (i % 2),
            )
    (root / "objectInfo150.txt").write_text(f"Idx\tRatio\tTrain\tVal\tName\n{names}\n")
    return tmp_path


def test_ade20k_is_read_as_it_is_published(ade):
    task = load_segmentation("ade20k", ade)
    assert task.classes == 150 and task.class_names[0] == "thing 1, other name"
    assert [len(part) for part in (task.train, task.val, task.test)] == [2, 1, 2]
    pixels, labels = task.test[0]
    assert pixels.shape == (3, 7, 9) and labels.shape == (7, 9)
    assert labels[0, 0] == IGNORED and labels[0, 1] == 0  # 0 is no class, 1 the first
    assert labels.flatten()[1:].tolist() == [*range(62)]
    assert task.test[1][1].max() == 149
    assert task.fingerprint == load_segmentation("ade20k", ade).fingerprint
    picture(ade / "ade20k/ADEChallengeData2016/images/validation/ADE_validation_0.jpg", seed=9)
    assert task.fingerprint != load_segmentation("ade20k", ade).fingerprint
    told = load_segmentation("ade20k", ade).fingerprint
    file = ade / "ade20k/ADEChallengeData2016/annotations/validation/ADE_validation_0.png"
    data = bytearray(file.read_bytes())
    data[-20] ^= 1  # a replaced mask of the same size
    file.write_bytes(data)
    assert told != load_segmentation("ade20k", ade).fingerprint


def test_every_so_many_training_pictures_are_for_validation(ade):
    root = ade / "ade20k" / "ADEChallengeData2016"
    for i in range(2 * HELD_OUT):
        picture(root / f"images/training/b_{i:03}.jpg")
        mask(root / f"annotations/training/b_{i:03}.png", np.ones((7, 9)))
    task = load_segmentation("ade20k", ade)
    assert len(task.val) == 3 and len(task.train) == 2 * HELD_OUT
    assert not {row[0] for row in task.val.rows} & {row[0] for row in task.train.rows}


@pytest.fixture
def pascal(tmp_path):
    root = tmp_path / "pascal_context"
    voc = root / "VOCdevkit" / "VOC2010"
    (voc / "ImageSets" / "Main").mkdir(parents=True)
    (root / "trainval").mkdir()
    for part, names in (("train", ["a", "b"]), ("val", ["c", "not_annotated"])):
        (voc / "ImageSets" / "Main" / f"{part}.txt").write_text("\n".join(names))
        for name in names:
            picture(voc / "JPEGImages" / f"{name}.jpg")
            if name != "not_annotated":
                labels = np.full((7, 9), 2, np.uint16)
                labels[0] = [0, 9, 458, 1, 431, 284, 2, 2, 2]
                savemat(root / "trainval" / f"{name}.mat", {"LabelMap": labels})
    return tmp_path


def test_pascal_context_is_read_as_it_is_published_with_60_and_with_59_classes(pascal):
    task = load_segmentation("pascal_context", pascal)
    assert task.classes == 60 and task.class_names[:3] == ("background", "aeroplane", "bag")
    assert [len(part) for part in (task.train, task.val, task.test)] == [1, 1, 1]
    person = task.class_names.index("person")
    assert task.test[0][1][0].tolist() == [0, 2, 59, 0, 0, person, 1, 1, 1]
    without = load_segmentation("pascal_context_59", pascal)
    assert without.classes == 59 and without.class_names[0] == "aeroplane"
    assert without.test[0][1][0].tolist() == [IGNORED, 1, 58, IGNORED, IGNORED, person - 1, 0, 0, 0]


def test_pascal_contexts_converted_masks_are_read_too(pascal):
    for name in "abc":
        mask(
            pascal / "pascal_context/VOCdevkit/VOC2010/SegmentationClassContext" / f"{name}.png",
            np.full((7, 9), 59),
        )
    assert load_segmentation("pascal_context", pascal).test[0][1].unique().tolist() == [59]
    assert load_segmentation("pascal_context_59", pascal).test[0][1].unique().tolist() == [58]


def test_the_manifest_names_59_classes_by_the_numbers_of_the_published_masks():
    ids = catalogue.datasets()["pascal_context"].ids
    assert len(ids) == len({*ids.values()}) == 59 and max(ids.values()) <= 459
    assert sorted(ids, key=ids.get) == sorted(ids)  # both lists are in the order of the alphabet


@pytest.mark.refused
def test_missing_pairs_other_sizes_and_unknown_labels_are_said_in_one_line(ade, pascal):
    root = ade / "ade20k" / "ADEChallengeData2016"
    mask(root / "annotations/validation/ADE_validation_0.png", np.zeros((9, 7)))
    with pytest.raises(
        BadInput, match="ADE_validation_0.png is 7 x 9 pixels and its picture 9 x 7; give a mask of"
    ):
        load_segmentation("ade20k", ade).test[0]
    mask(root / "annotations/validation/ADE_validation_0.png", np.full((7, 9), 151))
    with pytest.raises(BadInput, match="unknown label 151; the data set has 0 to 150"):
        load_segmentation("ade20k", ade).test[0]
    Image.new("RGB", (9, 7)).save(root / "annotations/validation/ADE_validation_0.png")
    with pytest.raises(BadInput, match="has colours .mode RGB.; give one number a pixel"):
        load_segmentation("ade20k", ade).test[0]
    (root / "annotations/validation/ADE_validation_0.png").write_bytes(b"no picture")
    with pytest.raises(BadInput, match="ADE_validation_0.png cannot be read"):
        load_segmentation("ade20k", ade).test[0]
    (root / "annotations/validation/ADE_validation_0.png").unlink()
    with pytest.raises(
        BadInput, match="annotations/validation has no mask of ADE_validation_0; fetch"
    ):
        load_segmentation("ade20k", ade)
    mask(root / "annotations/validation/ADE_validation_0.png", np.ones((7, 9)))
    (root / "images/validation/ADE_validation_1.jpg").unlink()
    with pytest.raises(BadInput, match="images/validation has no picture of ADE_validation_1"):
        load_segmentation("ade20k", ade)
    (root / "objectInfo150.txt").write_text("Idx\tName\n1\twall\n")
    with pytest.raises(BadInput, match="objectInfo150.txt in .* has 1 classes, not 150"):
        load_segmentation("ade20k", ade)
    savemat(pascal / "pascal_context/trainval/c.mat", {"LabelMap": np.full((7, 9), 460)})
    with pytest.raises(BadInput, match="unknown label 460; the data set has 0 to 459"):
        load_segmentation("pascal_context", pascal).test[0]
    (pascal / "pascal_context/trainval/c.mat").unlink()
    with pytest.raises(BadInput, match="annotates no picture of val.txt"):
        load_segmentation("pascal_context", pascal)
    with pytest.raises(BadInput, match="ade20k lies in a folder; give data_dir"):
        load_segmentation("ade20k")
