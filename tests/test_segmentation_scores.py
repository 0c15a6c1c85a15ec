"""mIoU against a plain confusion matrix, the loss over labelled pixels, and inference whole and in
windows."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix
from torch.nn import functional as F

from visprompt.errors import BadInput
from visprompt.training import overlap, windows
from visprompt.training.windows import Evaluation


def masks(seed, classes, ignored=True):
    rng = np.random.default_rng(seed)
    labels = [*range(classes), *([overlap.IGNORED] if ignored else [])]
    truth = rng.choice(labels, (2, 7, 9))
    return torch.from_numpy(rng.integers(0, classes, (2, 7, 9))), torch.from_numpy(truth)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 12))
def test_the_counts_are_those_of_a_plain_confusion_matrix(seed, classes):
    predicted, truth = masks(seed, classes)
    kept = truth != overlap.IGNORED
    plain = confusion_matrix(truth[kept], predicted[kept], labels=range(classes))
    counts = overlap.confusion(predicted, truth, classes)
    assert (counts.numpy() == plain).all()
    overlaps = []
    for label in range(classes):  # the definition, class by class, on sets of pixels
        mine, its = (predicted == label) & kept, (truth == label) & kept
        overlaps.append((mine & its).sum() / (mine | its).sum() if (mine | its).any() else np.nan)
    assert np.allclose(overlap.class_overlaps(counts), overlaps, equal_nan=True)
    assert overlap.mean_overlap(counts) == pytest.approx(100 * np.nanmean(overlaps), abs=1e-4)


def test_a_class_that_is_nowhere_leaves_the_mean_and_one_that_is_only_predicted_counts_as_zero():
    truth = torch.tensor([[0, 0, 1, 1]])
    assert overlap.mean_overlap(overlap.confusion(truth, truth, 5)) == 100
    guessed = torch.tensor([[0, 0, 1, 4]])
    assert overlap.mean_overlap(overlap.confusion(guessed, truth, 5)) == pytest.approx(
        100 * (1 + 0.5 + 0) / 3, abs=1e-4
    )


def test_counts_of_parts_add_up_to_those_of_the_whole():
    predicted, truth = masks(1, 6)
    parts = sum(overlap.confusion(p, t, 6) for p, t in zip(predicted, truth))
    assert (parts == overlap.confusion(predicted, truth, 6)).all()


def test_one_class_for_every_pixel_reaches_what_is_said_of_it():
    _, truth = masks(2, 4, ignored=False)
    counts = overlap.confusion(truth, truth, 4)
    every = [
        overlap.mean_overlap(overlap.confusion(torch.full_like(truth, c), truth, 4))
        for c in range(4)
    ]
    assert overlap.by_constant(counts) == pytest.approx(max(every), abs=1e-4)


@pytest.mark.refused
def test_masks_of_two_sizes_and_unknown_labels_are_refused_in_one_line():
    with pytest.raises(
        BadInput, match="the predicted mask is 4 x 5 and the true one 5 x 4; bring both to one size"
    ):
        overlap.confusion(torch.zeros(4, 5), torch.zeros(5, 4), 3)
    with pytest.raises(BadInput, match="label 3; give 0 to 2, or 255 for what is ignored"):
        overlap.confusion(torch.zeros(1, 2), torch.tensor([[0, 3]]), 3)
    for bad in ({"mode": "slid"}, {"stride": 0}, {"scales": ()}, {"scales": (1.0, -1.0)}):
        with pytest.raises(BadInput):
            Evaluation(**bad)
    with pytest.raises(BadInput, match="stride must be at most the window, 4 pixels, not 5"):
        windows.slide(lambda x: x, torch.zeros(1, 3, 9, 9), 4, 5)


def test_the_loss_is_the_mean_over_labelled_pixels():
    logits = torch.randn(
        2, 5, 7, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    _, truth = masks(3, 5)
    kept = truth != overlap.IGNORED
    plain = F.cross_entropy(logits.permute(0, 2, 3, 1)[kept], truth[kept])
    assert torch.allclose(overlap.pixel_loss(logits, truth), plain)
    assert overlap.pixel_loss(logits, torch.full_like(truth, overlap.IGNORED)) == 0


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 60), st.integers(1, 30), st.integers(1, 30))
def test_windows_leave_no_pixel_out_and_stay_inside(length, window, stride):
    found = windows.starts(length, window, stride)
    assert found[0] == 0 and max(found) + window >= length
    if length >= window:
        assert max(found) + window == length
    if stride <= window:
        assert {at + i for at in found for i in range(window)} >= {*range(length)}


def network(x):
    """Logits that depend on each pixel alone, so that cutting into windows changes nothing."""
    return torch.cat([x, x.flip(1) * 0.5, -x], 1)


def test_windows_of_a_network_that_looks_at_pixels_alone_give_what_the_whole_gives():
    pictures = torch.randn(2, 3, 13, 22, generator=torch.Generator().manual_seed(1))
    for stride in (3, 5, 8):
        assert torch.allclose(
            windows.slide(network, pictures, 8, stride), network(pictures), atol=1e-6
        )
    small = pictures[..., :5, :6]  # smaller than a window
    assert torch.allclose(windows.slide(network, small, 8, 8), network(small), atol=1e-6)


def test_a_picture_of_the_networks_size_is_one_window_and_one_whole():
    pictures = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(2))
    plain = network(pictures).softmax(1)
    for how in (Evaluation("slide", 8), Evaluation("whole", 8)):
        assert torch.allclose(windows.likely(network, pictures, 8, how), plain)


def test_many_scales_are_the_mean_of_the_probabilities_of_each_and_its_mirror_image():
    pictures = torch.randn(1, 3, 10, 12, generator=torch.Generator().manual_seed(3))
    how = Evaluation("slide", 4, (0.5, 1.5))
    seen = windows.likely(network, pictures, 8, how, out=(20, 24), many=True)
    parts = []
    for scale in how.scales:
        scaled = F.interpolate(pictures, (round(10 * scale), round(12 * scale)), mode="bilinear")
        for flip in (False, True):
            logits = windows.slide(network, scaled.flip(-1) if flip else scaled, 8, 4)
            logits = logits.flip(-1) if flip else logits
            parts.append(F.interpolate(logits, (20, 24), mode="bilinear").softmax(1))
    assert torch.allclose(seen, sum(parts) / 4, atol=1e-6)
    assert windows.likely(network, pictures, 8, how, many=False).shape == (1, 9, 10, 12)
