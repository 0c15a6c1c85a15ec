"""Tasks: what is drawn is what the label says, the same bytes every time."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import tiny_task
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

import visprompt as vp
from visprompt.data import drawing, outlines, targets
from visprompt.data.tasks import balanced_order, embedded_tasks, load_task, normalise
from visprompt.errors import BadInput

DRAWN = sorted(set(drawing.DRAWERS) - {"source"})


@pytest.mark.parametrize("kind", sorted(drawing.DRAWERS))
def test_same_seed_same_bytes(kind):
    images, labels = drawing.draw(kind, 60, seed=3)
    again, same = drawing.draw(kind, 60, seed=3)
    assert images.tobytes() == again.tobytes() and labels.tobytes() == same.tobytes()
    assert images.dtype == np.uint8 and images.shape == (60, 24, 24, 3)
    for other in (dict(seed=4), dict(seed=3, stream=1)):
        assert images.tobytes() != drawing.draw(kind, 60, **other)[0].tobytes()


def test_drawing_leaves_numpys_global_state_alone():
    np.random.seed(0)
    expected = np.random.RandomState(0).random()
    drawing.draw("texture", 10, seed=0)
    assert np.random.random() == expected


def test_a_new_drawing_changes_none_of_the_others(monkeypatch):
    """The five old kinds keep their numbers, whatever stands before them in a sorted list."""
    before = {
        kind: drawing.draw(kind, 12, seed=3, stream=1)[0].tobytes() for kind in drawing.DRAWERS
    }
    for new in ("aaa", "zzz"):
        monkeypatch.setitem(drawing.DRAWERS, new, drawing.DRAWERS["position"])
    assert {
        kind: drawing.draw(kind, 12, seed=3, stream=1)[0].tobytes() for kind in before
    } == before
    new = [drawing.draw(kind, 12, seed=3, stream=1)[0].tobytes() for kind in ("aaa", "zzz")]
    assert len({*new, *before.values()}) == 7


@pytest.mark.parametrize(
    ("name", "fingerprint"),
    [("digits", "2a2818e33256"), ("texture", "f7e035a76b35"), ("photos", "8ffb8967e201")],
)
def test_embedded_tasks_stay_what_they_were(tasks, name, fingerprint):
    """Kept records name their data by these."""
    assert tasks[name].fingerprint == fingerprint


@given(kind=st.sampled_from(sorted(drawing.DRAWERS)), n=st.integers(0, 250))
@settings(max_examples=15, deadline=None)
def test_labels_are_balanced_at_any_length(kind, n):
    images, labels = drawing.draw(kind, n, seed=1)
    counts = np.bincount(labels, minlength=drawing.DRAWERS[kind][0])
    assert len(images) == len(labels) == n and len(counts) == drawing.DRAWERS[kind][0]
    assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize("kind", sorted(targets.DRAWERS))
def test_targets_are_the_same_bytes_and_balanced(kind):
    images, labels = targets.pictures(kind, 130, seed=3)
    again, same = targets.pictures(kind, 130, seed=3)
    assert images.tobytes() == again.tobytes() and labels.tobytes() == same.tobytes()
    assert images.dtype == np.uint8 and images.shape == (130, 24, 24, 3)
    counts = np.bincount(labels, minlength=targets.DRAWERS[kind][0])
    assert counts.max() - counts.min() <= 1 and len(counts) == targets.DRAWERS[kind][0]
    for other in (dict(seed=4), dict(seed=3, stream=2)):
        assert images.tobytes() != targets.pictures(kind, 130, **other)[0].tobytes()
    assert len(embedded_tasks()[kind]["classes"]) == targets.DRAWERS[kind][0]


@pytest.mark.parametrize("factor", ["location", "orientation"])
def test_sprites_follow_their_factor(factor):
    """The centre of mass moves right with the class; an orientation's class is the floor of sixteen
    fortieths."""
    labels = np.repeat(np.arange(16), 20)
    images = targets._sprite(np.random.default_rng(0), labels, factor).astype(float).mean(-1)
    mass = np.clip(images - 40, 0, None)
    x = (mass * (np.arange(24) + 0.5)).sum((1, 2)) / mass.sum((1, 2))
    place = 5.5 + (2 * labels + 0.5) / 31 * 13
    if factor == "location":
        # a heart's mass is off its centre
        assert max(abs((x - place)[labels == c].mean()) for c in range(16)) < 0.6
    else:
        assert np.abs(np.corrcoef(x, labels)[0, 1]) < 0.2


def test_relief_is_bright_where_it_faces_the_sun():
    """The mean of (shade x slope towards the sun) is positive for every class, on the same
    ground."""
    slopes = np.stack(np.gradient(targets._elevation()), -1)
    assert 0.01 < np.abs(slopes).mean() < 0.5
    images, labels = targets.pictures("relief", 160, seed=1)
    grey = images.astype(float).mean(-1)
    right, down = grey[:, :, 2:] - grey[:, :, :-2], grey[:, 2:] - grey[:, :-2]
    # east and west light tell ridges apart across columns, north and south light across rows
    east, south = labels % 4 == 0, labels % 4 == 2
    assert np.abs(right[east]).mean() > np.abs(down[east]).mean()
    assert np.abs(down[south]).mean() > np.abs(right[south]).mean()


def test_pieces_of_real_pictures_come_from_their_own_columns():
    ramp = np.tile(np.arange(600)[None, :, None], (100, 1, 1)).astype(float)
    for stream, (low, high) in targets.PARTS.items():
        pieces = targets._pieces(np.random.default_rng(0), [ramp] * 50, stream, (1, 2, 3))
        assert (
            pieces.shape == (50, 24, 24, 1)
            and low * 600 - 1 <= pieces.min()
            and pieces.max() <= high * 600
        )
    assert targets.PARTS[0][1] <= targets.PARTS[1][0] and targets.PARTS[1][1] <= targets.PARTS[2][0]


def test_a_larger_pool_begins_with_the_split():
    small, large = load_task("flowers"), load_task("flowers", train_size=1200)
    assert len(large.train[1]) == 1200 and large.train[1].bincount().tolist() == [30] * 40
    known = {image.numpy().tobytes() for image in small.train[0]}
    found = {image.numpy().tobytes() for image in large.train[0]}
    assert known <= found and len(found) == 1200
    assert torch.equal(small.test[0], large.test[0])
    with pytest.raises(BadInput, match="flowers's 6400 training images, not 6401"):
        load_task("flowers", train_size=6401)


def test_unknown_drawing_names_the_nearest():
    with pytest.raises(BadInput, match="Did you mean 'texture'"):
        drawing.draw("textures", 1, 0)


def test_position_is_the_cell_of_the_centre_of_mass():
    _, labels, masks = drawing.draw("position", 300, seed=5, with_masks=True)
    grid = np.arange(24) + 0.5
    x, y = (
        (masks * g).sum((1, 2)) / masks.sum((1, 2)) for g in (grid[None, None], grid[None, :, None])
    )
    inside = (np.abs(x / 6 - labels % 4 - 0.5) < 0.62) & (np.abs(y / 6 - labels // 4 - 0.5) < 0.62)
    # the frame cuts a part off
    cut = masks[:, [0, -1]].any((1, 2)) | masks[:, :, [0, -1]].any((1, 2))
    assert cut.mean() < 0.75 and inside[~cut].all()


def test_count_is_the_number_of_connected_items():
    _, labels, masks = drawing.draw("count", 300, seed=5, with_masks=True)
    assert [ndimage.label(mask > 0.5, np.ones((3, 3)))[1] for mask in masks] == list(labels + 1)


def test_orientation_is_the_long_axis_of_the_bar():
    _, labels, masks = drawing.draw("orientation", 200, seed=5, with_masks=True)
    y, x = np.mgrid[:24, :24]
    for label, mask in zip(labels, masks, strict=True):
        spread = np.cov(np.stack([x.ravel(), y.ravel()]), aweights=mask.ravel())
        angle = 0.5 * np.rad2deg(np.arctan2(2 * spread[0, 1], spread[0, 0] - spread[1, 1]))
        assert abs((angle - 22.5 * label + 90) % 180 - 90) < 11.2


def test_source_parts_number_every_shape_and_fill():
    labels = np.arange(drawing.SOURCE_CLASSES)
    shape, fill = drawing.source_parts(labels)
    assert len(set(zip(shape, fill, strict=True))) == len(labels) == 112
    assert set(shape) == set(range(outlines.CONTOURS + outlines.GLYPHS))
    assert (fill[80:] == len(drawing.FILLS)).all() and (fill[:80] < len(drawing.FILLS)).all()


def test_outlines_are_all_different():
    glyphs = {
        frozenset(frozenset((tuple(s[:2]), tuple(s[2:]))) for s in g) for g in outlines.STROKES
    }
    assert len(glyphs) == outlines.GLYPHS
    assert (outlines.RADII > 0.05).all()  # the origin lies inside each
    apart = np.abs(outlines.RADII[:, None] - outlines.RADII).mean(-1) + np.eye(outlines.CONTOURS)
    assert apart.min() > 0.03


@given(centre=st.tuples(st.floats(-3, 3), st.floats(-3, 3)))
@settings(max_examples=20, deadline=None)
def test_disc_distance(centre):
    u, v = (np.full((1, 1, 1), c) for c in centre)
    distance = outlines.contour_distance(np.array([0]), u, v).item()
    assert distance == pytest.approx(np.hypot(*centre) - 0.8, abs=1e-9)


@pytest.fixture(scope="module")
def tasks():
    return {name: load_task(name) for name in embedded_tasks()}


def test_manifest_says_what_is_loaded(tasks):
    assert set(tasks) == {"digits", *DRAWN, *targets.DRAWERS}
    for name, entry in embedded_tasks().items():
        task = tasks[name]
        assert [len(s[1]) for s in (task.train, task.val, task.test)] == entry["splits"]
        assert (task.classes, task.size, task.resize) == (
            len(entry["classes"]),
            entry["image_size"],
            "none",
        )
        for images, labels in (task.train, task.val, task.test):
            assert images.dtype == torch.uint8 and images.shape[1:] == (3, 24, 24)
            assert labels.dtype == torch.int64 and set(labels.tolist()) == set(range(task.classes))
        counts = task.train[1].bincount()
        assert counts.max() - counts.min() <= 1


def test_splits_are_disjoint(tasks):
    for task in tasks.values():
        pictures = torch.cat([s[0] for s in (task.train, task.val, task.test)]).flatten(1).numpy()
        # scikit-learn's digits hold no picture twice
        assert len({p.tobytes() for p in pictures}) == len(pictures), task.name


def test_source_and_targets_have_their_own_seeds():
    from visbook.pretraining.pretrain import RECIPES

    assert len(
        {RECIPES[k].image_seed for k in RECIPES} | {e["seed"] for e in embedded_tasks().values()}
    ) == 1 + len(embedded_tasks())


def test_train_size_takes_a_balanced_prefix(tasks):
    for name in ("digits", "count"):
        few = load_task(name, train_size=25)
        counts = few.train[1].bincount(minlength=few.classes)
        assert len(few.train[1]) == 25 and counts.max() - counts.min() <= 1
        assert torch.equal(few.val[0], tasks[name].val[0])
        assert torch.equal(few.train[0], load_task(name, train_size=50).train[0][:25])
    for wrong in (0, 801):
        with pytest.raises(BadInput, match=f"count's 800 training images, not {wrong}"):
            load_task("count", train_size=wrong)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40))
def test_balanced_order_is_a_stable_permutation(labels):
    labels = torch.tensor(labels)
    order = balanced_order(labels)
    assert sorted(order.tolist()) == list(range(len(labels)))
    for label in labels.unique():
        positions = order[labels[order] == label]
        assert positions.tolist() == sorted(positions.tolist())
    smallest = labels.bincount()[labels.unique()].min()
    assert (
        labels[order][: smallest * len(labels.unique())].bincount()[labels.unique()] == smallest
    ).all()


def test_digits_are_scikit_learns(tasks):
    from sklearn.datasets import load_digits

    images, labels = tasks["digits"].train
    pixels = load_digits().data.reshape(-1, 8, 8)
    centres = images[
        :, 0, 1::3, 1::3
    ].numpy()  # the middle of every three pixels is the pixel itself
    grey = np.floor(pixels * 255 / 16 + 0.5).astype(np.uint8)
    known = {p.tobytes(): t for p, t in zip(grey, load_digits().target, strict=True)}
    assert [known[np.ascontiguousarray(c).tobytes()] for c in centres] == labels.tolist()


IMAGES, LABELS = tiny_task().train


@pytest.mark.refused
@pytest.mark.parametrize("which", ["train", "val", "test"])
@pytest.mark.parametrize(
    ("split", "told"),
    [
        (None, "must be images and labels, not NoneType"),
        ((IMAGES,), "must be images and labels, not tuple"),
        ("pictures", "must be images and labels, not str"),
        ((IMAGES.numpy(), LABELS), r"images of .* must be uint8 \(N, 3, S, S\), not ndarray"),
        ((IMAGES.float(), LABELS), r"not float32 \(24, 3, 16, 16\)"),
        ((IMAGES.float() / 0, LABELS), r"not float32 \(24, 3, 16, 16\)"),
        ((IMAGES.long(), LABELS), r"not int64 \(24, 3, 16, 16\)"),
        ((IMAGES[:, 0], LABELS), r"not uint8 \(24, 16, 16\)"),
        ((IMAGES[:, :1], LABELS), r"not uint8 \(24, 1, 16, 16\)"),
        ((IMAGES.permute(0, 2, 3, 1), LABELS), r"not uint8 \(24, 16, 16, 3\)"),
        ((IMAGES[..., :8], LABELS), r"not uint8 \(24, 3, 16, 8\)"),
        ((IMAGES[:0], LABELS[:0]), r"not uint8 \(0, 3, 16, 16\)"),
        ((IMAGES[..., :0, :0], LABELS), r"not uint8 \(24, 3, 0, 0\)"),
        ((IMAGES, LABELS.tolist()), r"labels of .* must be int64 \(24,\), one an image, not list"),
        ((IMAGES, LABELS.numpy()), r"must be int64 \(24,\), one an image, not ndarray"),
        ((IMAGES, LABELS[:3]), r"not int64 \(3,\)"),
        ((IMAGES, LABELS[:, None]), r"not int64 \(24, 1\)"),
        ((IMAGES, LABELS.int()), r"not int32 \(24,\)"),
        ((IMAGES, LABELS.float()), r"not float32 \(24,\)"),
        ((IMAGES, LABELS > 0), r"not bool \(24,\)"),
        ((IMAGES, LABELS - 1), "labels of .* must be 0 to 2, for 3 class names, not -1"),
        ((IMAGES, LABELS + 1), "labels of .* must be 0 to 2, for 3 class names, not 3"),
    ],
)
def test_a_split_that_is_none_is_one_line(vit, which, split, told):
    with pytest.raises(BadInput, match=told) as found:
        vp.fit(vp.build_method("linear-probe", vit, 3), replace(tiny_task(), **{which: split}))
    assert "\n" not in str(found.value) and which in str(found.value)


@pytest.mark.refused
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"name": None}, "a task's name"),
        ({"name": ""}, "a task's name"),
        ({"name": "a/b"}, "a task's name"),
        ({"class_names": "abc"}, r"class_names must be tuple\[str, ...\], not 'abc'"),
        ({"class_names": ["a", "b", "c"]}, r"class_names must be tuple\[str, ...\], not \["),
        ({"class_names": (1, 2, 3)}, r"class_names must be tuple\[str, ...\], not \(1"),
        ({"class_names": ()}, "for 0 class names"),
        ({"test": tiny_task(20).test}, "images of test are of 20 pixels, those of train of 16"),
        ({"val": tiny_task(8).val}, "images of val are of 8 pixels, those of train of 16"),
        ({"resize": "cropped"}, "Did you mean 'crop'"),
        ({"resize": None}, "resize"),
    ],
)
def test_a_task_that_is_none_is_one_line(vit, stores, given, told):
    with pytest.raises(BadInput, match=told) as found:
        vp.tune(vp.build_method("linear-probe", vit, 3), replace(tiny_task(), **given), vp.Recipe())
    assert "\n" not in str(found.value)


def test_fingerprint_follows_the_data(tasks):
    task = load_task("count")
    assert task.fingerprint == tasks["count"].fingerprint
    assert len({t.fingerprint for t in tasks.values()}) == len(tasks)
    assert load_task("count", train_size=799).fingerprint != task.fingerprint
    other = load_task("count")
    other.test[0][-1, -1, -1, -1] ^= 1
    assert other.fingerprint != task.fingerprint


@given(st.floats(0.1, 0.9), st.floats(0.1, 0.9))
def test_normalise_broadcasts_over_channels(mean, std):
    images = torch.arange(24, dtype=torch.uint8).reshape(2, 3, 2, 2)
    one = normalise(images, mean, std)
    assert torch.equal(one, normalise(images, (mean,) * 3, (std,) * 3))
    torch.testing.assert_close(one * std + mean, images / 255)
    assert normalise(images, (mean, 0, 0), 1)[0, 1, 0, 0] == 4 / 255


def test_embedded_tasks_can_be_enlarged():
    task = load_task("count", image_size=32)
    assert task.size == 32 and task.resize == "direct"
    cropped = load_task("count", image_size=32, resize="crop")
    assert cropped.size == 32 and not torch.equal(cropped.test[0], task.test[0])
    images = load_task("count").test[0].float()
    bicubic = (
        torch.nn.functional.interpolate(images, (32, 32), mode="bicubic")
        .round()
        .clamp(0, 255)
        .to(torch.uint8)
    )
    assert torch.equal(load_task("count", image_size=32, resize="direct-bicubic").test[0], bicubic)


def test_real_folder():
    if not os.environ.get("VISPROMPT_REAL"):
        pytest.skip("set VISPROMPT_REAL to a folder of task folders to try them")
    root = Path(os.environ["VISPROMPT_REAL"]) / "vtab1k_style"
    found = [p.parent for p in root.glob("*/test.txt") if (p.parent / "train800.txt").is_file()]
    assert found, f"{root} holds no folder with train800.txt and test.txt"
    # others only take longer
    smallest = min(found, key=lambda p: len((p / "test.txt").read_text()))
    task = load_task(smallest.name, root, image_size=16, resize="crop", train_size=20)
    assert task.train[0].shape == (20, 3, 16, 16) and task.test[1].max() < task.classes
