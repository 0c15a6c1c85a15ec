"""Images pasted on images: where they lie, which tokens are relevant, and what is refused."""

import pytest
import torch
from PIL import Image

from visbook.theory import pasted_images
from visbook.theory.pasted_images import Settings
from visprompt.errors import BadInput


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_pasted_image_covers_exactly_its_relevant_patches():
    front, back = (
        torch.full((40, 3, 24, 24), 200, dtype=torch.uint8),
        torch.full((40, 3, 24, 24), 7, dtype=torch.uint8),
    )
    images, relevant = pasted_images.paste(front, back, 16, 4, generator())
    # (N, 36, 48)
    patches = (
        images.unfold(2, 4, 4).unfold(3, 4, 4).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)
    )
    assert (patches[relevant] == 200).all() and (patches[~relevant] == 7).all()
    assert (relevant.sum(1) == 16).all() and (back == 7).all()
    places = {tuple(row.nonzero()[0].tolist()) for row in relevant}
    assert places <= {(r * 6 + c,) for r in range(3) for c in range(3)} and len(places) > 5


def test_a_pasted_image_is_its_front_shrunk():
    front = torch.zeros(1, 3, 24, 24, dtype=torch.uint8)
    front[..., :12] = 240
    images, relevant = pasted_images.paste(front, torch.full_like(front, 9), 12, 4, generator())
    top, left = divmod(int(relevant[0].nonzero()[0]), 6)
    piece = images[0, :, 4 * top : 4 * top + 12, 4 * left : 4 * left + 12]
    assert (piece[..., :5] == 240).all() and (piece[..., 7:] == 0).all()


@pytest.mark.parametrize("removed, left", [(0.0, 36), (0.5, 26), (1.0, 16)])
def test_only_background_tokens_leave(removed, left):
    relevant = torch.zeros(5, 36, dtype=torch.bool)
    relevant[:, 3:19] = True
    kept = pasted_images.staying(relevant, removed, generator())
    assert kept.shape == (5, left) and (kept.diff() > 0).all()
    assert (relevant.gather(1, kept).sum(1) == 16).all()


def test_alpha_is_the_relevant_share_of_what_stays():
    _, _, backbone = pasted_images.sources("digits", "photos", Settings().backbone)
    found = [pasted_images.alpha(Settings(removed=r), backbone) for r in (0.0, 0.5, 1.0)]
    assert found == pytest.approx([16 / 36, 16 / 26, 1.0])


def test_a_model_sees_no_token_that_left():
    _, _, backbone = pasted_images.sources("digits", "photos", Settings().backbone)
    head, kept = torch.nn.Linear(backbone.width, 2), torch.arange(16).expand(2, 16) + 5
    images = torch.randint(256, (2, 3, 24, 24), generator=generator(), dtype=torch.uint8)
    changed = images.clone()
    changed[..., 20:, :] = 0  # the last row of patches, which left
    with torch.no_grad():
        found = [pasted_images.logits(backbone, head, each, kept) for each in (images, changed)]
        whole = pasted_images.logits(backbone, head, images, torch.arange(36).expand(2, 36))
        plain = head(
            backbone.pool(backbone.run(backbone.stem((images.float() / 255 - 0.5) / 0.5), stop=5))
        )
    assert torch.equal(*found) and not torch.allclose(found[0], whole)
    torch.testing.assert_close(whole, plain)


def test_the_background_speaks_for_the_class_in_training_alone():
    s = Settings(backed=(0, 2), clean=(1, 3))
    labels = torch.arange(5).repeat(800)
    images = labels.view(-1, 1, 1, 1).expand(-1, 3, 24, 24).to(torch.uint8)
    for training, share in ((True, 0.9), (False, 0.5)):
        front, backs, binary = pasted_images.scene(
            s,
            (images, labels),
            torch.full((10, 3, 24, 24), 50, dtype=torch.uint8),
            training,
            generator(),
        )
        # class 4 is left out
        assert len(binary) == 3200 and set(front[:, 0, 0, 0].tolist()) == {0, 1, 2, 3}
        assert (binary == (front[:, 0, 0, 0] % 2 == 0)).all()
        photo = backs.amax((1, 2, 3)) == 50
        assert (photo == (backs.amin((1, 2, 3)) == 50)).all()  # a photograph or black
        assert photo[binary == 1].double().mean().item() == pytest.approx(share, abs=0.03)
        assert photo[binary == 0].double().mean().item() == pytest.approx(1 - share, abs=0.03)


def test_a_run_is_decided_by_its_settings_and_seed():
    s = Settings(steps=3, train_size=40, removed=1.0)
    first = pasted_images.accuracy(s, 0, "val")
    torch.manual_seed(5)
    assert pasted_images.accuracy(s, 0, "val") == first and 0 <= first <= 100
    _, _, backbone = pasted_images.sources(s.front, s.back, s.backbone)
    assert not any(p.requires_grad for p in backbone.parameters())  # the shared one is not trained


def test_task_folders_can_be_pasted_too(tmp_path):
    """CIFAR-10 on plants, as `make notebook` runs it where there is data: two task folders."""
    for name, classes in (("cifar10", 3), ("plants", 1)):
        folder = tmp_path / name
        folder.mkdir()
        for file in ("train800.txt", "val200.txt", "test.txt"):
            labels = [i % classes for i in range(6)]
            for i in range(6):
                Image.new("RGB", (32, 32), (40 * i, 90, 250)).save(folder / f"{file[:2]}{i}.png")
            (folder / file).write_text(
                "".join(f"{file[:2]}{i}.png {label}\n" for i, label in enumerate(labels))
            )
    for pair in ({}, {"backed": (2,), "clean": (0,)}):
        s = Settings(front="cifar10", back="plants", steps=2, train_size=6, **pair)
        assert 0 <= pasted_images.accuracy(s, 0, data_dir=str(tmp_path)) <= 100


@pytest.mark.refused
@pytest.mark.parametrize(
    "wrong",
    [
        {"start": "none"},
        {"removed": 1.5},
        {"match": -0.1},
        {"train_size": 0},
        {"steps": 0},
        {"rate": 0.0},
        {"backed": (0,)},
        {"backed": (0, 1), "clean": (1, 2)},
    ],
    ids=str,
)
def test_bad_settings_are_refused(wrong):
    with pytest.raises(BadInput):
        Settings(**wrong)


def test_what_cannot_be_pasted_is_refused():
    images = torch.zeros(2, 3, 24, 24, dtype=torch.uint8)
    for side in (0, 10, 28):
        with pytest.raises(BadInput, match="multiple of 4"):
            pasted_images.paste(images, images, side, 4, generator())
    with pytest.raises(BadInput, match="as many images"):
        pasted_images.paste(images, images[:1], 16, 4, generator())
    with pytest.raises(BadInput, match="at most 800"):
        pasted_images.accuracy(Settings(train_size=801), 0)
