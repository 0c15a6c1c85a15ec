"""Joined and shortened sets of mapped images: batches are read, never the whole."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import tiny_task
from sites import ROOT, call

from visprompt.data import stored
from visprompt.data.joining import first, joined
from visprompt.data.originals import RESIZED, Known, Stack
from visprompt.data.tasks import normalise
from visprompt.methods import build_method
from visprompt.training import activations
from visprompt.training.loop import fit_model
from visprompt.training.recipe import Recipe

BATCH = 1000  # images that may be read at once


@pytest.fixture
def mapped(tmp_path, monkeypatch):
    """A task in memory, and the same one mapped: as if it were larger than memory."""
    task = tiny_task(per_split=(900, 600, 40))
    monkeypatch.setattr(stored, "WHOLE", 1000)

    def split(part):
        images, labels = getattr(task, part)
        path = tmp_path / f"{part}.u8"
        path.write_bytes(images.numpy().tobytes())
        return stored.Stored.at(path, tuple(images.shape)), labels

    kept = replace(task, **{part: split(part) for part in ("train", "val", "test")})

    def read(images, index):
        found = images.as_subclass(torch.Tensor)[index].clone()
        assert found.dim() == 3 or len(found) <= BATCH, f"{len(found)} images were read at once"
        return found

    monkeypatch.setattr(stored.Stored, "__getitem__", read)
    whole = property(lambda images: pytest.fail("all images were read"))
    monkeypatch.setattr(stored.Stored, "plain", whole)
    return task, kept


def test_a_joined_set_reads_its_batches_alone(mapped):
    plain, task = mapped
    wanted, both = joined(plain).train[0], joined(task).train[0]
    assert len(both) == 1500 and both.shape == wanted.shape and both.dtype == torch.uint8
    mask = torch.arange(1500) % 5 == 0
    for index in (0, -1, slice(890, 910), torch.tensor([1400, 3, 899, 900]), mask, [1, 1499]):
        assert torch.equal(both[index], wanted[index])
    assert torch.equal(torch.cat([*both.split(200)]), wanted)
    late = normalise(both, 0.5, 0.5)
    assert isinstance(late, stored.Later)
    assert torch.equal(late[:5], normalise(wanted[:5], 0.5, 0.5))
    assert joined(task).train[1].equal(joined(plain).train[1])


def test_a_share_of_a_mapped_set_reads_its_batches_alone(mapped):
    plain, task = mapped
    for prepared in (lambda task: task, joined):
        wanted, found = first(prepared(plain), 300), first(prepared(task), 300)
        assert torch.equal(torch.cat([*found.train[0].split(200)]), wanted.train[0])
        assert found.train[1].equal(wanted.train[1])


@pytest.mark.parametrize("method", ["spt-deep", "linear-probe"])
def test_a_run_on_a_joined_set_is_that_of_its_images_in_memory(mapped, vit, method):
    plain, task = mapped

    def values(task):
        model = build_method(method, vit, task.classes)
        found = fit_model(model, joined(task), Recipe(epochs=1, batch_size=64), 0)
        return found["loss"], found["test"], found["val"]

    assert values(task) == values(plain)


def test_a_joined_set_goes_to_a_device_by_batches_and_keeps_its_originals(mapped):
    plain, task = mapped
    both = joined(task).train[0]
    assert both.to(torch.device("cpu")) is both
    streamed = both.to(torch.device("meta"))
    assert isinstance(streamed, stored.Streamed) and streamed.shape == both.shape
    known = Known(both, Stack(plain.train[0]), RESIZED)
    assert known[torch.tensor([1, 901])].shape == (2, 3, 16, 16)


def test_a_method_that_looks_at_no_image_has_none_prepared(vit, monkeypatch):
    task, sizes = tiny_task(per_split=(260, 10, 10)), []
    kept = activations.normalise
    monkeypatch.setattr(
        activations, "normalise", lambda x, *how: sizes.append(len(x)) or kept(x, *how)
    )
    for method, whole in (("vpt-deep", False), ("spt-deep", True)):
        sizes.clear()
        model = build_method(method, vit, task.classes)
        fit_model(model, task, Recipe(epochs=1, batch_size=8), 0, cache=False)
        assert (260 in sizes) is whole


@pytest.mark.parametrize("slug", ["vpt-deep", "spt-deep"])
def test_a_run_on_a_set_of_patch_camelyon_s_shape_stays_below_4_gib(slug, tmp_path):
    """Images of 9 GB, normalised 36."""
    ran = call(Path(__file__).with_name("large_task.py"), slug, tmp_path, root=ROOT)
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout) < 4
