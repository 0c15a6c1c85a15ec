"""Images decoded once into the cache folder: the same bytes, whole or not at all, whoever else is
at work."""

import copy
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from pretended_card import PretendedCard

import visprompt as vp
from visbook.studies.case import Run
from visbook.studies.lab import Lab, LabSettings
from visbook.studies.sweeps import sweep
from visprompt.data import image_cache, stored
from visprompt.data.stored import Later, Stored, Streamed
from visprompt.data.tasks import RESIZES, SPLITS, Task, normalise
from visprompt.errors import BadInput
from visprompt.methods import build_method
from visprompt.training import activations, loop
from visprompt.training.loop import fit
from visprompt.training.recipe import Recipe


@pytest.fixture
def data(tmp_path):
    """A folder a class: 20 pictures of each of three."""
    generator = np.random.default_rng(0)
    for label, name in enumerate(("ant", "bee", "cow")):
        (tmp_path / "data" / "mine" / name).mkdir(parents=True)
        for number in range(20):
            picture = generator.integers(0, 120, (20, 24, 3), np.uint8)
            picture[..., label] += 100
            Image.fromarray(picture).save(tmp_path / "data" / "mine" / name / f"{number}.png")
    return tmp_path / "data"


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The cache folder; even small tasks go there."""
    monkeypatch.setenv("VISPROMPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(image_cache, "SMALL", 0)
    return tmp_path / "cache"


def load(data, **more):
    return vp.load_task("mine", data, **{"image_size": 16, **more})


def in_memory(data, monkeypatch, **more):
    with monkeypatch.context() as patch:
        patch.setenv("VISPROMPT_CACHE", "none")
        return load(data, **more)


def entries(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


@pytest.mark.parametrize("resize", RESIZES)
def test_kept_images_are_those_decoded_in_memory(data, kept, monkeypatch, resize):
    plain = in_memory(data, monkeypatch, resize=resize)
    for _ in range(2):  # made, and found again
        task = load(data, resize=resize)
        assert task.fingerprint == plain.fingerprint and task.class_names == plain.class_names
        for (images, labels), (others, truth) in zip(
            (task.train, task.val, task.test), (plain.train, plain.val, plain.test)
        ):
            assert (
                isinstance(images, Stored)
                and images.dtype == torch.uint8
                and images.shape == others.shape
            )
            assert torch.equal(images, others) and torch.equal(labels, truth)
    assert len(entries(kept)) == 1
    digest = Task(
        "mine",
        task.class_names,
        *((i.plain, l) for i, l in (task.train, task.val, task.test)),
        resize=resize,
    )
    assert digest.fingerprint == task.fingerprint  # the one that was kept is the one of its bytes
    renamed = Task("other", task.class_names, task.train, task.val, task.test, resize=resize)
    swapped = Task("mine", task.class_names, task.train, task.test, task.val, resize=resize)
    assert len({task.fingerprint, renamed.fingerprint, swapped.fingerprint}) == 3
    few = load(data, train_size=5, resize=resize)
    assert (
        few.fingerprint
        == in_memory(data, monkeypatch, train_size=5, resize=resize).fingerprint
        != task.fingerprint
    )


def test_an_entry_is_of_its_pictures_size_and_rule(data, kept):
    load(data), load(data, resize="crop"), load(data, image_size=8)
    assert len(entries(kept)) == 3
    before = load(data)
    path = next((data / "mine" / "bee").iterdir())
    Image.new("RGB", (5, 5), (255, 0, 0)).save(path)
    os.utime(path, ns=(1, 1))
    after = load(data)
    assert after.fingerprint != before.fingerprint
    # what it replaces is gone, and those of another size or rule are not
    assert len(entries(kept)) == 3
    assert torch.equal(before.train[0], before.train[0].plain)  # mapped files outlive their names


def test_a_replaced_picture_of_the_same_size_and_time_is_seen(data, kept, monkeypatch):
    """Uncompressed pictures of a size have as many bytes, and `cp -p`, `rsync -t` and archives set
    the time."""
    path = data / "mine" / "bee" / "7.bmp"
    path.with_suffix(".png").unlink()

    def put(colour, place):
        Image.new("RGB", (24, 20), colour).save(place, "BMP")
        os.utime(place, ns=(1, 10**18))
        return place.stat().st_size, place.stat().st_mtime_ns

    facts = put((255, 0, 0), path)
    red = load(data)
    time.sleep(0.05)  # a file system's clock ticks a few times in a hundredth of a second
    assert put((0, 255, 0), path) == facts
    green = load(data)
    time.sleep(0.05)
    assert put((0, 0, 255), path.with_suffix(".new")) == facts
    os.replace(path.with_suffix(".new"), path)  # another file under the same name
    blue = load(data)
    assert len({task.fingerprint for task in (red, green, blue)}) == 3
    assert blue.fingerprint == in_memory(data, monkeypatch).fingerprint
    assert len(entries(kept)) == 1


def test_nothing_is_decoded_twice(data, kept, monkeypatch):
    first = load(data)

    def never(*_):
        raise AssertionError("decoded again")

    monkeypatch.setattr(image_cache, "decoded", never)
    assert load(data).fingerprint == first.fingerprint
    place = kept / entries(kept)[0] / "val.u8"
    place.write_bytes(place.read_bytes()[:-1])  # half a file is none
    with pytest.raises(AssertionError):
        load(data)


def test_mapped_images_that_were_changed_in_place_are_refused(data, kept, vit, stores):
    """They are too many to be read again each time, and a change is lost when their pages are let
    go."""
    model, recipe = build_method("linear-probe", vit, 3), Recipe(epochs=1)
    for change in (
        lambda images: images.zero_(),
        lambda images: images.plain.zero_(),
        lambda images: images.__setitem__(0, 0),
    ):
        task = load(data)
        vp.tune(model, task, recipe)
        change(task.train[0])
        with pytest.raises(
            BadInput, match="images of mine were changed in place.*VISPROMPT_CACHE=none"
        ):
            vp.tune(model, task, recipe)
    task = load(data)
    first = vp.tune(model, task, recipe)
    task.test[1].numpy()[...] = 0  # of labels there are few
    assert vp.tune(model, task, recipe).data != first.data


def test_small_tasks_stay_in_memory(data, tmp_path, monkeypatch):
    monkeypatch.setenv("VISPROMPT_CACHE", str(tmp_path / "cache"))
    assert not isinstance(load(data).train[0], Stored) and not (tmp_path / "cache").exists()


@pytest.mark.refused
def test_a_disk_that_cannot_hold_them_is_told(data, kept, monkeypatch):
    few = shutil.disk_usage("/")._replace(free=2**20)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: few)
    with pytest.raises(
        BadInput, match=r"images of mine take 0.0 GiB, and .*cache has 0.0 GiB free; name another"
    ) as caught:
        load(data)
    assert "\n" not in str(caught.value) and entries(kept) == []


@pytest.mark.refused
def test_a_disk_that_fills_up_meanwhile_keeps_nothing(data, kept, monkeypatch):
    decoded = image_cache.decoded

    def full(items, *more):
        yield next(decoded(items, *more))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(image_cache, "decoded", full)
    with pytest.raises(
        BadInput, match="cannot keep 0.0 GiB of images of mine .No space left.*VISPROMPT_CACHE=none"
    ):
        load(data)
    assert [path for path in kept.rglob("*.u8")] == [] == entries(kept)


@pytest.mark.refused
def test_a_folder_that_cannot_be_written_is_told(data, tmp_path, monkeypatch):
    monkeypatch.setattr(image_cache, "SMALL", 0)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VISPROMPT_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(BadInput, match="cannot keep .*Not a directory"):
        load(data)


@pytest.mark.refused
def test_a_read_only_folder_serves_what_it_has(data, kept):
    from subprocess import run

    first = load(data)
    code = """
import os, sys
import visprompt as vp
from visprompt.data import image_cache
image_cache.SMALL = 0
real = open
def refuse(path, mode="r", *more, **kw):
    if str(path).startswith(os.environ["VISPROMPT_CACHE"]) and mode[0] != "r":
        raise PermissionError(13, "Permission denied", str(path))
    return real(path, mode, *more, **kw)
image_cache.open = refuse
print(vp.load_task("mine", sys.argv[1], image_size=16).fingerprint)
try:
    vp.load_task("mine", sys.argv[1], image_size=12)
except vp.BadInput as error:
    print(error)
"""
    told = run(
        [sys.executable, "-c", code, str(data)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert told[0] == first.fingerprint and len(told) == 2
    assert (
        "cannot keep" in told[1] and "Permission denied" in told[1] and "VISPROMPT_CACHE" in told[1]
    )


SLOW = r"""
import os, sys, time
import visprompt as vp
from visprompt.data import image_cache
image_cache.SMALL = 0
read = image_cache.read_picture
def slowly(*words):
    os.write(1, b"decoding\n")
    time.sleep(float(sys.argv[2]))
    return read(*words)
image_cache.read_picture = slowly
print(vp.load_task("mine", sys.argv[1], image_size=16).fingerprint)
"""


def start(data, pause):
    return subprocess.Popen(
        [sys.executable, "-c", SLOW, str(data), str(pause)], stdout=subprocess.PIPE, text=True
    )


def test_two_processes_decode_once(data, kept, monkeypatch):
    both = [start(data, 0.01) for _ in range(2)]
    said = [process.communicate(timeout=600)[0].split() for process in both]
    assert {words[-1] for words in said} == {in_memory(data, monkeypatch).fingerprint}
    assert sorted(words.count("decoding") for words in said) == [0, 60]
    assert len(entries(kept)) == 1


WITHOUT_LOCKS = """
import fcntl
def none(*_):
    raise OSError(37, "No locks available")
fcntl.flock = none
"""


def test_on_a_disk_without_locks_each_process_decodes_and_one_entry_stays(data, kept, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules[__name__], "SLOW", WITHOUT_LOCKS + SLOW)
        both = [start(data, 0.01) for _ in range(2)]
        said = [process.communicate(timeout=600)[0].split() for process in both]
    assert {words[-1] for words in said} == {in_memory(data, monkeypatch).fingerprint}
    assert max(words.count("decoding") for words in said) == 60
    assert len(entries(kept)) == 1 and list(kept.glob(".undone*")) == []
    assert isinstance(load(data).train[0], Stored)


def test_a_killed_process_leaves_nothing_that_is_taken_for_whole(data, kept, monkeypatch):
    process = start(data, 1)
    assert process.stdout.readline() == "decoding\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert [path for path in kept.rglob("entry.json")] == []
    assert [path.name[:8] for path in kept.glob(".undone*")] == [".undone-"]
    assert load(data).fingerprint == in_memory(data, monkeypatch).fingerprint
    assert list(kept.glob(".undone*")) == []


@pytest.mark.parametrize("slug", ["linear-probe", "vpt-deep", "spt-deep", "da-vpt"])
def test_training_gives_the_same_in_bounded_memory(data, kept, monkeypatch, vit, slug):
    """Mapped, and with everything too large to lie in memory in one piece."""
    plain, task = in_memory(data, monkeypatch), load(data)
    monkeypatch.setattr(stored, "WHOLE", 0)
    monkeypatch.setattr(stored, "RESIDENT", 1000)
    found = [
        fit(
            build_method(slug, vit, 3),
            some,
            Recipe(epochs=2, batch_size=8, learning_rate=0.01),
            0,
            cache=cache,
        )
        for some, cache in ((plain, False), (task, False), (task, True))
    ]
    assert isinstance(task.train[0].float(), Later)
    for values in found:
        del values["fit_seconds"]
    assert found[0] == found[1]
    assert found[2]["loss"] == pytest.approx(found[0]["loss"], abs=1e-4)


def test_what_is_done_later_has_the_same_bits(data, kept, monkeypatch):
    images = load(data).train[0]
    mean, std = (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)
    now = normalise(images, mean, std)
    monkeypatch.setattr(stored, "WHOLE", 0)
    later = normalise(images, mean, std)
    assert type(now) is torch.Tensor and isinstance(later, Later)
    assert len(later) == len(now) and later.shape == now.shape
    assert torch.equal(later[torch.tensor([5, 3, 3])], now[[5, 3, 3]]) and torch.equal(
        later[2:7], now[2:7]
    )
    assert torch.equal(torch.cat(list(later.split(4))), now)


@pytest.mark.parametrize("batch", [1, 7, 36])
def test_batches_are_streamed_in_the_order_asked_for(data, kept, batch):
    images = load(data).train[0]
    streamed = Streamed(images, torch.device("cpu"))
    assert (
        len(streamed) == len(images)
        and streamed.shape == images.shape
        and streamed.to("cpu") is streamed
    )
    for epoch in range(3):
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
        pieces = order.split(batch)
        for number, piece in enumerate(pieces):
            assert torch.equal(streamed[piece], images.plain[piece])
            last = number == len(pieces) - 1
            assert (streamed.ahead is None) == last  # the next one is on its way
    order[:] = order.flip(0)
    assert torch.equal(streamed[order[:5]], images.plain[order[:5]])
    assert torch.equal(streamed[order[::2]], images.plain[order[::2]])
    assert torch.equal(streamed[order > 20], images.plain[order > 20]) and torch.equal(
        streamed[3], images.plain[3]
    )
    assert torch.equal(torch.cat(list(streamed.split(batch))), images.plain)


def test_pages_are_let_go(data, kept, monkeypatch):
    images = load(data).train[0]
    monkeypatch.setattr(stored, "RESIDENT", 3 * 768 * 5)
    for number in range(20):
        images[number]
        assert images.touched <= 3 * 768 * 5
    assert images.touched < 20 * 768


def test_entry_says_what_it_is_of(data, kept):
    load(data)
    about = json.loads((kept / entries(kept)[0] / "entry.json").read_text())
    assert about["root"] == str(data / "mine") and (
        about["task"],
        about["size"],
        about["resize"],
    ) == ("mine", 16, "direct")


@pytest.mark.refused
def test_what_is_missing_is_counted(data, kept):
    for name in ("ant/0.png", "ant/1.png", "bee/4.png"):
        (data / "mine" / name).unlink()
    listed = [path for path in sorted((data / "mine").rglob("*.png"))]
    files = {"train800.txt": listed[:30], "val200.txt": listed[30:40], "test.txt": listed[40:]}
    for file, paths in files.items():
        (data / "mine" / file).write_text(
            "".join(f"{path.relative_to(data / 'mine')} 0\n" for path in paths)
        )
    for path in (listed[2], listed[3], listed[45]):
        path.unlink()
    with pytest.raises(
        BadInput,
        match=r"line 3: image .* does not exist; missing: 2 of 30 pictures of train and 1 "
        r"of 17 .*test",
    ):
        load(data)
    assert not kept.exists() or entries(kept) == []


def test_a_task_is_recognised_without_reading_its_images(data, kept, monkeypatch):
    task, read = load(data), []
    monkeypatch.setattr(Stored, "__getitem__", lambda self, index: read.append(index))
    assert task.size == 16 and task.classes == 3 and len(task.fingerprint) == 12 and not read


def test_as_many_splits_are_cached_as_fit_below_the_limit(task, vit):
    """The training split first; predictions are the same whatever is cached."""
    model, image = build_method("linear-probe", vit, 3), vit.width * 4 / 2**30
    ends = list(itertools.accumulate(len(getattr(task, split)[1]) for split in SPLITS))
    found = []
    for count in (*ends, ends[0] - 1):
        recipe = Recipe(epochs=1, cache_gib=count * image, learning_rate=0.1)
        kept = activations.kept_splits(model, task, recipe)
        values = loop.fit_model(model, task, recipe)
        assert values["cached_below"] == (vit.depth if kept else None)
        found.append((kept, values["right"], values["val_by_epoch"], values["loss"]))
    assert [len(kept) for kept, *_ in found] == [1, 2, 3, 0] and found[0][0] == ("train",)
    assert found[0][1:] == found[1][1:] == found[2][1:]


def test_half_of_what_is_free_on_a_card_bounds_activations(task, vit):
    with PretendedCard():  # of which 1 GiB is free
        model = build_method("linear-probe", copy.deepcopy(vit).to("cuda"), 3)
        sizes = {"train": 0.4, "val": 0.2, "test": 0.1}
        count = lambda gib: torch.zeros(int(gib * 2**30 / vit.width / 4), dtype=torch.int64)
        large = SimpleNamespace(**{name: (None, count(gib)) for name, gib in sizes.items()})
        assert activations.kept_splits(model, large, Recipe()) == ("train",)


def test_a_sweep_lets_go_of_a_task_when_its_last_run_is_done(data, monkeypatch, stores):
    lab, seen = Lab(LabSettings(data_dir=str(data), changes={"epochs": 1})), []
    other = data / "other"
    shutil.copytree(data / "mine", other)
    do = lab.do

    def watched(run, **more):
        found = do(run, **more)
        seen.append(({key[0] for key in lab.tasks}, {key[4] for key in activations.SHARED.kept}))
        return found

    monkeypatch.setattr(activations.SHARED, "kept", {})
    monkeypatch.setattr(lab, "do", watched)
    monkeypatch.setattr("os.getpid", lambda: 0)  # a process begins with the first run
    runs = [
        Run("vit_nano_patch4_24", name, "linear-probe", seed)
        for name, seed in (("mine", 0), ("mine", 1), ("other", 0))
    ]
    rows, left = sweep(runs, lab, "test"), dict(lab.tasks)
    prints = {name: lab.facts(name, 24).fingerprint for name in ("mine", "other")}
    assert seen == [({"mine"}, {prints["mine"]})] * 2 + [({"other"}, {prints["other"]})]
    assert not left and not activations.SHARED.kept and len(rows) == 3
