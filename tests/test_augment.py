"""Cutting, resizing and mirroring of whole batches, against torchvision image by image."""

import pytest
import torch
from torchvision.transforms import v2
from torchvision.transforms.v2.functional import horizontal_flip, resized_crop

from visprompt.data import augment
from visprompt.errors import BadInput


def one_by_one(images, boxes, flips, size):
    found = []
    for image, (top, left, height, width), flip in zip(images, boxes.tolist(), flips.tolist()):
        piece = resized_crop(image, top, left, height, width, [size, size], antialias=True)
        found.append(horizontal_flip(piece) if flip else piece)
    return torch.stack(found)


@pytest.mark.parametrize(
    ("high", "wide", "size"), [(24, 24, 24), (40, 30, 16), (9, 50, 20), (64, 64, 24), (90, 70, 80)]
)
def test_given_boxes_are_cut_as_torchvision_cuts_them(high, wide, size):
    g = torch.Generator().manual_seed(0)
    images = torch.rand(40, 3, high, wide, generator=g)
    boxes, flips = augment.random_boxes(40, high, wide, g), torch.arange(40) % 2 == 0
    boxes[0], boxes[1], boxes[2] = (
        torch.tensor(box)
        for box in ((0, 0, high, wide), (high - 1, wide - 1, 1, 1), (0, 0, 1, wide))
    )
    found = augment.crop_resize_flip(images, boxes, flips, size)
    assert torch.allclose(found, one_by_one(images, boxes, flips, size), atol=2e-6)
    bytes_ = (images * 255).to(torch.uint8)
    found = augment.crop_resize_flip(bytes_, boxes, flips, size)
    assert found.dtype == torch.uint8 and found.shape == (40, 3, size, size)
    gap = (found.int() - one_by_one(bytes_, boxes, flips, size).int()).abs()
    # torchvision rounds after each side, this once
    assert gap.max() <= 1 and (gap > 0).float().mean() < 0.2
    if max(high, wide, size) > augment.PRODUCTS:
        assert gap.max() == 0
    else:
        exact = one_by_one(bytes_.double(), boxes, flips, size)
        assert (found.double() - exact).abs().max() < 0.5 + 1e-3


def test_boxes_are_distributed_as_torchvisions():
    g, count = torch.Generator().manual_seed(1), 4000
    mine = augment.random_boxes(count, 60, 80, g).double()
    torch.manual_seed(2)
    image = torch.zeros(3, 60, 80)
    draw = v2.RandomResizedCrop(24)
    theirs = [draw.make_params([image]) for _ in range(count)]
    theirs = torch.tensor(
        [[box[key] for key in ("top", "left", "height", "width")] for box in theirs]
    ).double()
    for column in range(4):
        a, b = mine[:, column].sort()[0], theirs[:, column].sort()[0]
        values = torch.cat([a, b]).unique()
        share = [torch.searchsorted(x, values, right=True) / count for x in (a, b)]
        assert (share[0] - share[1]).abs().max() < 1.95 * (
            2 / count
        ) ** 0.5  # Kolmogorov and Smirnov's, one in a thousand
    assert (
        (mine[:, 0] + mine[:, 2]).max() <= 60
        and (mine[:, 1] + mine[:, 3]).max() <= 80
        and mine[:, :2].min() >= 0
    )


@pytest.mark.parametrize(("high", "wide"), [(10, 400), (400, 10)])
def test_a_long_image_gives_its_middle_where_no_box_fits(high, wide):
    boxes = augment.random_boxes(
        200, high, wide, torch.Generator().manual_seed(0), scale=(0.9, 1.0)
    )
    image = torch.zeros(3, high, wide)
    expected = v2.RandomResizedCrop(24, scale=(0.9, 1.0)).make_params([image])
    assert boxes.unique(dim=0).tolist() == [
        [expected[key] for key in ("top", "left", "height", "width")]
    ]


def test_a_batch_is_drawn_once_more_by_its_generator():
    images = torch.randint(
        256, (6, 3, 20, 20), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
    )
    first, again, other = (
        augment.random_crop_and_flip(images, 16, torch.Generator().manual_seed(s))
        for s in (5, 5, 6)
    )
    assert (
        torch.equal(first, again)
        and not torch.equal(first, other)
        and first.shape == (6, 3, 16, 16)
    )


@pytest.mark.refused
@pytest.mark.parametrize("box", [(-1, 0, 2, 2), (0, 0, 0, 2), (5, 0, 4, 2), (0, 7, 1, 2)])
def test_boxes_outside_are_refused(box):
    with pytest.raises(BadInput, match="a box leaves its image of 8 x 8 pixels"):
        augment.crop_resize_flip(
            torch.zeros(1, 3, 8, 8), torch.tensor([box]), torch.tensor([True]), 4
        )
    with pytest.raises(BadInput, match="as many boxes"):
        augment.crop_resize_flip(
            torch.zeros(2, 3, 8, 8), torch.tensor([box]), torch.tensor([True]), 4
        )
