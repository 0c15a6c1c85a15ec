"""SPT's starts against their definition on the whole pool, DA-VPT's clusters, E2VPT's pruning."""

import pytest
import torch
from conftest import small_vit, tiny_task
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

import visprompt as vp
from visprompt.chance import stream
from visprompt.methods.clustering import cosine_kmeans, streamed_kmeans
from visprompt.training.loop import fit
from visprompt.training.recipe import Recipe

RECIPE = Recipe(epochs=2, batch_size=8)


@pytest.fixture(scope="module")
def backbone():
    return small_vit()


@pytest.fixture(scope="module")
def images():
    return torch.randn(70, 3, 16, 16, generator=torch.Generator().manual_seed(0))


def pool_of(backbone, images):
    """All patches entering each block, and those leaving the last, by timm's own blocks: L + 1
    times (n * M, D)."""
    timm, found = backbone.model, []
    with torch.no_grad():
        x = timm._pos_embed(timm.patch_embed(images))
        for block in timm.blocks:
            found.append(x)
            x = block(x)
    return [x[:, 1:].flatten(0, 1) for x in [*found, x]]


def started(backbone, pictures, slug="spt-deep", seed=0, **chosen):
    model = vp.build_method(slug, backbone, 3, **chosen)
    model.method.prepare(
        backbone, pictures, torch.zeros(len(pictures)), torch.Generator().manual_seed(seed)
    )
    prompts = model.method.prompts
    return [prompts.detach()] if slug == "spt-shallow" else [prompt.detach() for prompt in prompts]


def is_among(points, pool):
    return bool((torch.cdist(points.double(), pool.double()).min(1).values < 1e-4).all())


@pytest.mark.parametrize(
    ("source", "levels"), [("same", [0, 1, 2, 3]), ("first", [0] * 4), ("last", [4] * 4)]
)
def test_random_prompts_are_tokens_of_their_level(backbone, images, source, levels):
    pool = pool_of(backbone, images)
    prompts = started(backbone, images, prompt_tokens=9, source=source)
    for prompt, level in zip(prompts, levels, strict=True):
        assert is_among(prompt, pool[level])
        assert not is_among(prompt, pool[(level + 2) % 5])
        assert len(prompt.unique(dim=0)) == 9  # drawn without replacement
    same = all(torch.equal(prompt, prompts[0]) for prompt in prompts)
    assert same == (source != "same")


def test_shallow_prompts_are_tokens_entering_block_0(backbone, images):
    assert is_among(
        started(backbone, images, "spt-shallow", prompt_tokens=7)[0], pool_of(backbone, images)[0]
    )


def test_random_draws_from_all_images_alike(backbone, images):
    """Over many seeds each image is drawn about as often as any other (chi-square, 70 images, 1,400
    draws)."""
    pool = pool_of(backbone, images)[0]
    counts = torch.zeros(70)
    for seed in range(70):
        prompts = started(backbone, images, "spt-shallow", prompt_tokens=20, seed=seed)[0]
        counts += (torch.cdist(prompts, pool).argmin(1) // 16).bincount(minlength=70)
    assert (
        (counts - 20) ** 2 / 20
    ).sum() < 130  # 69 degrees of freedom, beyond one in a hundred thousand


def test_only_as_many_images_pass_as_prompts(backbone, images, monkeypatch):
    """Indices come first: one image a prompt, in batches, whatever the size of the pool."""
    seen = []
    run = type(backbone).stem
    monkeypatch.setattr(
        type(backbone), "stem", lambda self, x, *a: seen.append(len(x)) or run(self, x, *a)
    )
    backbone.shapes()
    seen.clear()
    started(backbone, images, prompt_tokens=5)
    assert sum(seen) <= 5
    seen.clear()
    started(backbone, images, prompt_tokens=50)
    assert 32 < sum(seen) <= 50 and max(seen) == 32


@settings(max_examples=20, deadline=None)
@given(count=st.integers(1, 40), start=st.sampled_from(["mean", "max"]), used=st.integers(3, 70))
def test_pooling_is_windows_over_the_pool(count, start, used):
    backbone = small_vit()
    images = torch.randn(70, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    drawn = torch.randperm(70, generator=torch.Generator().manual_seed(0))[:used]
    prompts = started(backbone, images, prompt_tokens=count, start=start, images=used)
    for prompt, pool in zip(prompts, pool_of(backbone, images[drawn])[:4], strict=True):
        window = len(pool) // count
        windows = pool[: window * count].view(count, window, -1)
        expected = windows.mean(1) if start == "mean" else windows.amax(1)
        assert torch.allclose(prompt, expected, atol=1e-5)


def test_kmeans_is_exact_lloyd_on_all_tokens(backbone, images):
    """scikit-learn's Lloyd on the whole pool, from the same start, ends at the same centroids and
    inertia."""
    prompts = started(backbone, images, prompt_tokens=4, start="k-means", iterations=300)
    drawn = torch.randperm(70, generator=torch.Generator().manual_seed(0))
    for prompt, pool in zip(prompts, pool_of(backbone, images[drawn])[:4], strict=True):
        window = len(pool) // 4
        start = pool[: window * 4].view(4, window, -1).mean(1)
        fitted = KMeans(
            4, init=start.double().numpy(), n_init=1, max_iter=300, tol=0, algorithm="lloyd"
        )
        fitted.fit(pool.double().numpy())
        assert torch.allclose(prompt.double(), torch.from_numpy(fitted.cluster_centers_), atol=1e-4)
        inertia = torch.cdist(pool.double(), prompt.double()).square().min(1).values.sum().item()
        assert abs(inertia / fitted.inertia_ - 1) < 1e-6


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    clusters=st.integers(1, 5),
    size=st.integers(1, 30),
    iterations=st.integers(1, 8),
)
def test_streaming_changes_nothing(seed, clusters, size, iterations):
    generator = torch.Generator().manual_seed(seed)
    problems = [torch.randn(60, 3, generator=generator) for _ in range(2)]
    starts = [points[:clusters].clone() for points in problems]

    def stream(size):
        return lambda: zip(*(points.split(size) for points in problems), strict=True)

    whole = streamed_kmeans(stream(60), starts, iterations, "test")
    pieces = streamed_kmeans(stream(size), starts, iterations, "test")
    assert all(torch.allclose(a, b, atol=1e-9) for a, b in zip(whole, pieces, strict=True))


def test_an_empty_cluster_stays():
    points = torch.tensor([[0.0], [1.0], [10.0]])
    found = streamed_kmeans(
        lambda: [[points]], [torch.tensor([[0.5], [9.0], [500.0]])], 10, "test"
    )[0]
    assert found.tolist() == [[0.5], [10.0], [500.0]]


def test_frozen_prompts_train_the_head_alone(backbone):
    model = vp.build_method("spt-deep", backbone, 3, prompt_tokens=4, frozen=True)
    assert vp.count_parameters(model)["method"] == 0
    fit(model, tiny_task(), RECIPE, seed=0)
    again = vp.build_method("spt-deep", backbone, 3, prompt_tokens=4, frozen=True)
    from visprompt.data.tasks import normalise

    task = tiny_task()
    pixels = normalise(task.train[0], backbone.mean, backbone.std)
    again.method.prepare(backbone, pixels, task.train[1], stream(0, "preparation"))
    assert all(
        torch.equal(a, b) for a, b in zip(model.method.prompts, again.method.prompts, strict=True)
    )


def test_uniform_start_is_vpts(backbone, images):
    deep = vp.build_method("vpt-deep", backbone, 3, prompt_tokens=200).method
    bound = (6 / (3 * 4**2 + 16)) ** 0.5
    values = torch.cat([prompt.detach().flatten() for prompt in deep.prompts])
    assert values.abs().max() < bound and values.abs().mean() == pytest.approx(bound / 2, rel=0.02)
    prompts = started(backbone, images, prompt_tokens=200, start="uniform")
    assert max(prompt.abs().max() for prompt in prompts) < bound


def test_clusters_of_classes_are_kmeans_over_class_means(backbone):
    """Before training: cosine k-means over class means of the frozen features; every prompt has
    classes."""
    task = tiny_task(classes=3)
    model = vp.build_method("da-vpt", backbone, 3, guided_tokens=2)
    from visprompt.data.tasks import normalise

    pixels = normalise(task.train[0], backbone.mean, backbone.std)
    model.method.prepare(backbone, pixels, task.train[1], torch.Generator().manual_seed(0))
    with torch.no_grad():
        features = backbone(pixels)
    means = torch.stack([features[task.train[1] == label].mean(0) for label in range(3)])
    unit = torch.nn.functional.normalize(means, dim=1)
    method = model.method
    assert torch.equal(method.cluster, (unit @ method.centroids.T).argmax(1))
    for number in range(2):  # a fixed point: each centroid is the direction of its classes' mean
        own = torch.nn.functional.normalize(unit[method.cluster == number].sum(0), dim=0)
        assert torch.allclose(own, method.centroids[number], atol=1e-5)


def test_clusters_move_from_the_last_centroids(backbone):
    model = vp.build_method("da-vpt", backbone, 3, guided_tokens=3)
    before = None

    def watch():
        nonlocal before
        before = model.method.centroids.clone()
        type(model.method).after_epoch(model.method)

    model.method.after_epoch = watch
    fit(model, tiny_task(), RECIPE, seed=0)
    assert before is not None and not torch.equal(before, model.method.centroids)
    assert model.method.sums is None  # the next epoch starts its means anew


def test_cosine_kmeans_separates_directions():
    points = torch.tensor([[1.0, 0.1], [5.0, 0.2], [0.1, 2.0], [0.0, 9.0]])
    centroids, nearest = cosine_kmeans(points, points[[0, 2]], 20)
    assert nearest.tolist() == [0, 0, 1, 1]
    assert torch.allclose(centroids.norm(dim=1), torch.ones(2))


def test_pruning_keeps_the_most_important_and_rewinds(backbone):
    chosen = dict(prompt_tokens=8, segments=8, prune_tokens=0.5, prune_segments=0.25)
    model = vp.build_method("e2vpt", backbone, 3, **chosen)
    values = fit(model, tiny_task(), RECIPE, seed=0)
    method = model.method
    assert method.token_mask.sum(1).tolist() == [4] * 4  # half of 8 a block
    assert (method.segment_mask.sum(2) == 6).all()  # three quarters of 8 segments
    assert len(values["loss"]) == 2 * RECIPE.epochs  # trained twice
    plain = vp.build_method(
        "e2vpt", backbone, 3, **{**chosen, "prune_tokens": 0.0, "prune_segments": 0.0}
    )
    first = fit(plain, tiny_task(), RECIPE, seed=0)
    # the first training is that without pruning
    assert values["loss"][: RECIPE.epochs] == first["loss"]
    again = fit(model, tiny_task(), RECIPE, seed=0)
    assert again["loss"] == values["loss"]  # masks do not leak into the next fit


def test_importance_is_the_gradient_of_the_mask(backbone):
    model = vp.build_method("e2vpt", backbone, 3, prompt_tokens=3, segments=4)
    method, images = model.method, torch.randn(2, 3, 16, 16)
    method.train()
    loss = model.training_loss(model.features(model.below(images)), torch.tensor([0, 1]))
    loss.backward()
    step = 1e-3
    method.eval()
    for block, token in ((0, 1), (2, 2)):
        ends = []
        for sign in (1, -1):
            method.token_mask[block, token] = 1 + sign * step
            with torch.no_grad():
                ends.append(
                    model.training_loss(model.features(model.below(images)), torch.tensor([0, 1]))
                )
            method.token_mask[block, token] = 1
        slope = (ends[0] - ends[1]) / (2 * step)
        assert method.importance[0][block, token] == pytest.approx(
            abs(slope.item()), rel=0.05, abs=2e-4
        )


def test_at_least_four_stay(backbone):
    model = vp.build_method(
        "e2vpt", backbone, 3, prompt_tokens=6, segments=8, prune_tokens=0.9, prune_segments=0.9
    )
    fit(model, tiny_task(), RECIPE, seed=0)
    assert (model.method.token_mask.sum(1) == 4).all() and (
        model.method.segment_mask.sum(2) == 4
    ).all()


def test_gates_start_at_skip(backbone):
    """With gates at zero prompts pass every block unchanged, and the temperature is 1."""
    model = vp.build_method("gate-vpt", backbone, 3, prompt_tokens=3, gate=50.0)
    kept = []
    backbone.run(backbone.stem(torch.randn(1, 3, 16, 16)), model.method, keep=kept)
    assert all(torch.allclose(x[0, 1:4], model.method.prompts) for x in kept)
    assert (model.method.temperatures == 1).all()


BAD = [
    ("vpt-deep", dict(prompt_tokens=0), "a whole number of 1 to"),
    ("vpt-deep", dict(prompt_tokens=-3), "a whole number of 1 to"),
    ("vpt-deep", dict(prompt_tokens=2.5), "a whole number of 1 to 65,536, not 2.5"),
    ("vpt-deep", dict(block=4), "blocks 0 to 3"),
    ("vpt-deep", dict(block=()), "blocks 0 to 3"),
    ("vpt-shallow", dict(prompt_tokens=0), "a whole number of 1 to"),
    ("vpt-deep", dict(form="concat"), "Did you mean 'concatenate'"),
    ("ivpt", dict(salient_tokens=17), "1 to 16, the number of patches"),
    ("ivpt", dict(salient_tokens=0), "a whole number of 1 to"),
    ("ivpt", dict(ar="topk"), "Did you mean 'top-k'"),
    ("cdc", dict(cdc="adjacant"), "Did you mean 'adjacent'"),
    ("express", dict(place="behind"), "after, before"),
    ("e2vpt", dict(segments=5), "must divide the width 16"),
    ("e2vpt", dict(prune_tokens=1.0), "at least 0 and below 1"),
    ("gate-vpt", dict(lowest=2.0), "lowest < 1 < highest"),
    ("spt-deep", dict(start="kmeans"), "Did you mean 'k-means'"),
    ("spt-deep", dict(source="middle"), "first, last, same"),
    ("spt-deep", dict(images=0), "1 or more"),
    ("da-vpt", dict(guided_tokens=4), "1 to 3, one cluster of classes each"),
    ("da-vpt", dict(guided_from=4), "blocks 0 to 3"),
    ("da-vpt", dict(guided_from=3, guided_to=1), "no range"),
    ("da-vpt", dict(beta=-1.0), "a number from 0"),
    ("da-vpt", dict(temperature=0.0), "a number from 1e-06"),
    ("da-vpt", dict(betta=0.1), "Did you mean 'beta'"),
    ("da-vpt-plus", dict(biases=("keys",)), "Did you mean 'key'"),
    ("lora", dict(rank=0), "a whole number of 1 to"),
    ("lora", dict(rank=17), "1 to 16"),
    ("lora", dict(targets=("q",)), "key, query, value"),
    ("bias", dict(categories=()), "at least one"),
    ("adapter", dict(bottleneck=0), "a whole number of 1 to"),
    ("adapter", dict(places=("attention",)), "attn, mlp"),
]


@pytest.mark.refused
@pytest.mark.parametrize(("slug", "chosen", "message"), BAD)
def test_impossible_settings_are_refused(backbone, slug, chosen, message):
    with pytest.raises(vp.BadInput, match=message):
        vp.build_method(slug, backbone, 3, **chosen)


def test_backbones_that_cannot_carry_a_method(resnet, swin):
    with pytest.raises(
        vp.BadInput, match="vpt-deep runs on vit and swin backbones; test_resnet is a resnet"
    ):
        vp.build_method("vpt-deep", resnet, 3)
    with pytest.raises(vp.BadInput, match="lora runs on vit backbones; test_swin is a swin"):
        vp.build_method("lora", swin, 3)
    with pytest.raises(vp.BadInput, match="give ar='none'"):
        vp.build_method("ivpt", swin, 3)
    parallel = small_vit()
    parallel.opened = False
    with pytest.raises(vp.BadInput, match="blocks of another kind"):
        vp.build_method("ssf", parallel, 3)


def test_more_prompts_than_tokens_are_refused(backbone, images):
    with pytest.raises(vp.BadInput, match="fewer than the 200 prompts"):
        started(backbone, images, prompt_tokens=200, images=3)
