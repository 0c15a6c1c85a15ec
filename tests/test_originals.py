"""Crops of the original pictures: what a batch gets, and that nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import small_vit, tiny_task
from PIL import Image

import visprompt as vp
from visbook.studies.case import Run
from visbook.studies.lab import Lab, LabSettings
from visprompt import BadInput, Recipe
from visprompt.data.joining import joined
from visprompt.data.originals import (
    PLACED,
    RESIZED,
    Known,
    Originals,
    Stack,
    cropped,
    with_originals,
)
from visprompt.training import loop, steps


@pytest.fixture
def folder(tmp_path):
    """A task of pictures of 40 x 24 pixels, whose left edge alone is red."""
    root = tmp_path / "wide"
    (root / "images").mkdir(parents=True)
    for name, start in (("train800.txt", "a"), ("val200.txt", "v"), ("test.txt", "t")):
        for i in range(6):
            pixels = np.full((24, 40, 3), 30 * i, np.uint8)
            pixels[:, :4, 0] = 255
            Image.fromarray(pixels).save(root / "images" / f"{start}{i}.png")
        (root / name).write_text("".join(f"images/{start}{i}.png {i % 2}\n" for i in range(6)))
    return tmp_path


def test_originals_are_the_pictures_in_their_own_size_and_order(folder):
    task = vp.load_task("wide", folder, image_size=16, resize="crop")
    known = with_originals(task, RESIZED, folder)
    found = known.train[0].originals.of([5, 0])
    assert [tuple(image.shape) for image in found] == [(3, 24, 40)] * 2
    assert int(found[0][1, 0, 20]) == 150 and int(found[1][1, 0, 20]) == 0
    # the centre has lost the edge
    assert int(found[0][0, 0, 0]) == 255 and not (task.train[0][5, 0] == 255).any()
    both = with_originals(joined(task), RESIZED, folder, (0, 1))
    assert len(both.train[0].originals) == 12
    half = with_originals(
        vp.load_task("wide", folder, 4, image_size=16), RESIZED, folder, train_size=4
    )
    stored = [int(image[1].max()) for image in half.train[0].originals.of(range(4))]
    assert stored == [int(image[1, :, 8:].max()) for image in half.train[0].images]


def test_in_all_else_the_images_are_what_they_were(folder):
    task = vp.load_task("wide", folder, image_size=16)
    known = with_originals(task, RESIZED, folder)
    assert known.fingerprint == task.fingerprint and known.size == 16 and len(known.train[0]) == 6
    assert torch.equal(known.train[0][2:4], task.train[0][2:4]) and torch.equal(
        known.train[0].float(), task.train[0].float()
    )
    assert isinstance(known.train[0].to("cpu"), Known)


@pytest.mark.parametrize("how", [RESIZED, PLACED])
def test_a_batch_of_unlike_sizes_comes_in_its_order_and_by_its_generator(how):
    sizes = [(20, 30), (40, 16), (20, 30)]
    images = [
        torch.full((3, *size), 10 * place + 5, dtype=torch.uint8)
        for place, size in enumerate(sizes)
    ]
    found, again, other = (
        cropped(images, how, 8, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert found.shape == (3, 3, 8, 8) and [int(image.float().mean()) for image in found] == [
        5,
        15,
        25,
    ]
    noisy = [torch.randint(0, 256, image.shape, dtype=torch.uint8) for image in images]
    found, again, other = (
        cropped(noisy, how, 8, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(found, again) and not torch.equal(found, other)


def test_a_placed_square_has_seven_eighths_of_the_shorter_side():
    # each column its number
    image = torch.arange(64).repeat(32, 1)[None].expand(3, -1, -1).to(torch.uint8)
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        (piece,) = cropped([image], PLACED, 28, generator)  # 7/8 of 32: no pixel is resized
        row = piece[0, 0].tolist()
        assert row in (
            list(range(min(row), min(row) + 28)),
            list(range(max(row), max(row) - 28, -1)),
        )


def test_a_training_step_sees_crops_of_the_original_and_measuring_does_not(folder):
    task = with_originals(
        vp.load_task("wide", folder, image_size=16, resize="crop"), PLACED, folder
    )
    generator = torch.Generator().manual_seed(0)
    crops = steps.crop_and_flip(task.train[0][torch.tensor([3, 4])], generator)
    assert crops.shape == (2, 3, 16, 16) and crops.dtype == torch.uint8
    many = torch.cat(
        [steps.crop_and_flip(task.train[0][torch.tensor([0])], generator) for _ in range(30)]
    )
    assert (many[:, 0] == 255).any()  # the red edge, which the stored centre lacks
    model, recipe = (
        vp.build_method("vpt-deep", small_vit(), 2),
        Recipe(epochs=2, batch_size=3, learning_rate=0.1, augmentation=PLACED),
    )
    values = loop.fit_with_extras(model, task, recipe, 0)
    assert len(values["loss"]) == 2 and values["cached_below"] is None


def test_a_lab_gives_the_originals_that_its_recipe_crops(folder, stores, monkeypatch):
    from visbook.studies import lab as labs

    monkeypatch.setattr(labs, "group_of", lambda task: "fine")
    lab = Lab(LabSettings(recipe="spt", data_dir=str(folder)))
    images = lab.resolve(Run("vit_micro_patch4_24", "wide", "linear-probe")).task
    assert (
        isinstance(images.train[0].originals, Originals)
        and images.train[0].how == RESIZED
        and images.resize == "crop-bicubic"
    )
    drawn = lab.resolve(Run("vit_micro_patch4_24", "flowers", "linear-probe")).task
    assert isinstance(drawn.train[0].originals, Stack)


@pytest.mark.refused
def test_a_task_without_originals_is_refused_where_they_are_cropped():
    recipe = Recipe(epochs=1, learning_rate=0.1, augmentation=RESIZED)
    with pytest.raises(
        BadInput,
        match="crops originals, and the task has none; give it to data.originals.with_originals",
    ):
        vp.fit(vp.build_method("vpt-deep", small_vit(), 3), tiny_task(), recipe)
    with pytest.raises(BadInput, match="Did you mean 'crop the original and flip'"):
        replace(recipe, augmentation="crop the originals and flip")


@pytest.mark.refused
def test_a_picture_that_is_damaged_later_is_named(folder):
    task = with_originals(vp.load_task("wide", folder, image_size=16), RESIZED, folder)
    (folder / "wide" / "images" / "a2.png").write_bytes(b"nothing")
    with pytest.raises(BadInput, match="an original picture cannot be read"):
        task.train[0].originals.of([2])


@pytest.mark.parametrize("how", [RESIZED, PLACED])
def test_the_next_batch_is_read_while_one_is_trained_on_and_nothing_else_changes(folder, how):
    task = with_originals(vp.load_task("wide", folder, image_size=16, resize="crop"), how, folder)
    order, plain = torch.tensor([4, 1, 5, 0, 2, 3]), []
    for batch in order.split(4):  # each asked for alone: no piece of an order
        plain.append((task.train[0].originals.of(batch), batch))
    draw = torch.Generator().manual_seed(0)
    wanted = [cropped(pictures, how, 16, draw) for pictures, _ in plain]
    asked, read = [], Originals.of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Originals, "of", lambda self, index: asked.append(list(index)) or read(self, index)
        )
        draw, found = torch.Generator().manual_seed(0), []
        for batch in order.split(4):
            found.append(steps.crop_and_flip(task.train[0][batch], draw))
            if len(found) == 1:
                task.train[0].ahead[1].result()
                assert asked == [[4, 1, 5, 0], [2, 3]]  # the second before it is asked for
    assert all(map(torch.equal, found, wanted)) and asked == [[4, 1, 5, 0], [2, 3]]
    assert task.train[0].ahead is None


def test_another_batch_than_the_one_read_ahead_is_read_anew(folder):
    task = with_originals(
        vp.load_task("wide", folder, image_size=16, resize="crop"), PLACED, folder
    )
    first = torch.tensor([0, 1, 2, 3]).split(2)[0]
    steps.crop_and_flip(task.train[0][first], torch.Generator())
    other = steps.crop_and_flip(task.train[0][torch.tensor([5])], torch.Generator())
    assert int(other.float().median()) > 100  # the lightest picture
