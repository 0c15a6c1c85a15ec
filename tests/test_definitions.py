"""Every method against its plain definition: concatenate, run timm's own block, drop. Value and
gradient.

The definitions are written from the papers' formulas on timm's modules alone; they share no code
with the package but the parameters.
"""

import pytest
import torch
from conftest import carries, small_vit
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.func import functional_call
from torch.nn import functional as F

import visprompt as vp
from visprompt.methods.da_vpt import proxy_anchor
from visprompt.methods.method_fields import settings as settings_schema


def cut(x, prefix, tokens):
    """(B, N, D) -> class token and registers, prompts, patches."""
    return x[:, :prefix], x[:, prefix : prefix + tokens], x[:, prefix + tokens :]


def put(x, prompts, prefix):
    return torch.cat([x[:, :prefix], prompts.expand(len(x), -1, -1), x[:, prefix:]], 1)


def drop(x, tokens, prefix):
    before, _, patches = cut(x, prefix, tokens)
    return torch.cat([before, patches], 1)


def attend(attn, q, k, v, temperature=1.0):
    """softmax(Q K' / (sqrt(d) T)) V and the output projection, in matrices."""
    weights = (q @ k.transpose(-2, -1) / (attn.head_dim**0.5 * temperature)).softmax(-1)
    return attn.proj((weights @ v).transpose(1, 2).flatten(2)), weights


def split_heads(attn, x):
    """(B, N, 3D) -> queries, keys, values (B, heads, N, d)."""
    return x.view(*x.shape[:2], 3, attn.num_heads, attn.head_dim).permute(2, 0, 3, 1, 4).unbind(0)


def by_hand(block, x, temperature=1.0, more=None):
    """A pre-norm block with its attention in matrices; `more` is added to keys and values alike (1,
    heads, M, d)."""
    attn = block.attn
    q, k, v = split_heads(attn, attn.qkv(block.norm1(x)))
    if more is not None:
        k, v = (torch.cat([part, more.expand(len(x), -1, -1, -1)], 2) for part in (k, v))
    out, weights = attend(attn, q, k, v, temperature)
    x = x + out
    return x + block.mlp(block.norm2(x)), weights


def vpt_shallow(method, blocks, x, prefix):
    x = put(x, method.prompts, prefix)
    for block in blocks:
        x = block(x)
    return drop(x, len(method.prompts), prefix)


def vpt_deep(method, blocks, x, prefix):
    at = getattr(method, "at", range(len(blocks)))
    for index, block in enumerate(blocks):
        if index in at:  # SPT Eq. 6
            prompts = method.prompts[list(at).index(index)]
            x = drop(block(put(x, prompts, prefix)), len(prompts), prefix)
        else:
            x = block(x)
    return x


def gate_vpt(method, blocks, x, prefix):
    x, tokens = put(x, method.prompts, prefix), len(method.prompts)
    for index, block in enumerate(blocks):
        entered = cut(x, prefix, tokens)[1]
        x, _ = by_hand(block, x, temperature=method.temperatures[index])
        if index < len(blocks) - 1:
            before, left, patches = cut(x, prefix, tokens)
            gate = 1 / (1 + torch.exp(-method.gates[index]))
            x = torch.cat([before, gate * left + (1 - gate) * entered, patches], 1)
    return drop(x, tokens, prefix)


def e2vpt(method, blocks, x, prefix):
    for index, block in enumerate(blocks):
        heads, width = block.attn.num_heads, x.shape[-1]
        # P_K = P_V
        more = method.key_values[index].view(1, -1, heads, width // heads).transpose(1, 2)
        mask = method.segment_mask[index].repeat_interleave(width // method.settings.segments, 1)
        prompts = method.prompts[index] * mask * method.token_mask[index][:, None]
        x = drop(by_hand(block, put(x, prompts, prefix), more=more)[0], len(prompts), prefix)
    return x


def provp(method, blocks, x, prefix):
    x, tokens = put(x, method.prompts, prefix), len(method.prompts)
    for index, block in enumerate(blocks):  # P^l + T^{l-1}(P)
        if index:
            before, left, patches = cut(x, prefix, tokens)
            x = torch.cat([before, method.added[index - 1] + left, patches], 1)
        x = block(x)
    return drop(x, tokens, prefix)


def express(method, blocks, x, prefix):
    x, tokens = put(x, method.prompts, prefix), len(method.prompts)

    def plus(x, residual):
        before, prompts, patches = cut(x, prefix, tokens)
        return torch.cat([before, prompts + residual, patches], 1)

    for index, block in enumerate(blocks):
        first, second, third = (residual[index] for residual in method.residuals)
        attn = block.attn
        if method.settings.place == "before":
            h = plus(attn.qkv(plus(block.norm1(plus(x, first)), second)), third)
            x = x + attend(attn, *split_heads(attn, h))[0]
        else:
            h = plus(attn.qkv(plus(block.norm1(x), first)), second)
            x = x + plus(attend(attn, *split_heads(attn, h))[0], third)
        x = x + block.mlp(block.norm2(x))
    return drop(x, tokens, prefix)


def cdc(method, blocks, x, prefix):
    for index, block in enumerate(blocks):
        prompts = method.prompts[index]
        if method.settings.cdc == "adjacent" and index:  # iVPT Eq. 4
            prompts = prompts + method.prompts[index - 1]
        if method.settings.cdc == "all":  # Sec. 4.3 (D), the sum form
            prompts = sum(method.prompts[: index + 1])
        x = drop(block(put(x, prompts, prefix)), len(prompts), prefix)
    return x


def ivpt(method, blocks, x, prefix):
    gammas, tokens, own = method.gamma, method.settings.prompt_tokens, method.prompts
    for index, block in enumerate(blocks):
        prompts = own[index]
        # Eq. 5-6, the sum written out
        if index and method.settings.cdc == "adjacent" and method.settings.da:
            gamma = gammas[str(index)]
            rows = [
                sum(gamma[i, j] * own[index - 1][j] for j in range(tokens)) for i in range(tokens)
            ]
            prompts = prompts + torch.stack(rows)
        elif index and method.settings.cdc == "adjacent":
            prompts = prompts + own[index - 1]
        elif index and method.settings.cdc == "all":
            entered = own[0]
            for earlier in range(1, index):
                entered = own[earlier] + (
                    gammas[str(earlier)] @ entered if method.settings.da else entered
                )
            prompts = prompts + (gammas[str(index)] @ entered if method.settings.da else entered)
        x, weights = by_hand(block, put(x, prompts, prefix))
        x = drop(x, tokens, prefix)
        if method.reinforce is None or index == len(blocks) - 1:
            continue
        added = method.reinforce[index]
        if method.settings.ar == "all":
            x = torch.cat([x[:, :prefix], x[:, prefix:] + added], 1)
            continue
        rows = (
            weights.mean(1)[:, 0]
            if method.has_class_token
            else weights[:, :, prefix + tokens :].mean((1, 2))
        )
        x = x.clone()
        for image, row in enumerate(rows[:, prefix + tokens :]):  # Eq. 14-15, image by image
            for place, prompt in zip(row.argsort(descending=True), added):
                x[image, prefix + place] = x[image, prefix + place] + prompt
    return x


def adapter(method, blocks, x, prefix):
    def bottleneck(name, index, y):
        key = f"{name}_{index}"
        if key not in method.adapters:
            return y
        a = method.adapters[key]
        return y + F.gelu(y @ a.down.T + a.down_bias) @ a.up.T + a.up_bias

    for index, block in enumerate(blocks):
        x = x + bottleneck("attn", index, block.attn(block.norm1(x)))
        x = x + bottleneck("mlp", index, block.mlp(block.norm2(x)))
    return x


def adaptformer(method, blocks, x, prefix):
    for block, a in zip(blocks, method.adapters, strict=True):
        x = x + block.attn(block.norm1(x))
        h = block.norm2(x)
        side = F.relu(h @ a.down.T + a.down_bias) @ a.up.T + a.up_bias
        x = x + block.mlp(h) + method.settings.scale * side
    return x


DEFINITIONS = {
    "vpt-shallow": vpt_shallow,
    "vpt-deep": vpt_deep,
    "gate-vpt": gate_vpt,
    "e2vpt": e2vpt,
    "provp": provp,
    "express": express,
    "cdc": cdc,
    "ivpt": ivpt,
    "adapter": adapter,
    "adaptformer": adaptformer,
    "spt-shallow": vpt_shallow,
    "spt-deep": vpt_deep,
    "da-vpt": vpt_deep,
}


def plain_logits(model, images):
    """The definition's logits, through timm's own embedding, norm and pooling."""
    timm, prefix = model.source.model, model.source.prefix
    x = DEFINITIONS[model.slug](
        model.method, list(timm.blocks), timm._pos_embed(timm.patch_embed(images)), prefix
    )
    return model.head(
        (timm.forward_head(timm.norm(x), pre_logits=True) - model.feature_mean)
        / model.feature_scale
    )


def randomised(model, seed=0, scale=0.3):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in [*model.head.parameters(), *model.method.parameters()]:
            parameter.add_(scale * torch.randn(parameter.shape, generator=generator).to(parameter))
    return model


def gradients(model, logits):
    parameters = [*model.head.parameters(), *model.method_parameters()]
    found = torch.autograd.grad(logits.sin().sum(), parameters, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)]


def check_equal(model, images, definition, dtype):
    """Same logits and same gradient of every trained parameter."""
    tolerance = 1e-10 if dtype == torch.float64 else 1e-4
    fast, plain = model(images), definition(model, images)
    assert torch.allclose(fast, plain, atol=tolerance, rtol=tolerance)
    ours, theirs = gradients(model, fast), gradients(model, plain)
    for mine, other in zip(ours, theirs, strict=True):
        assert torch.allclose(
            mine, other, atol=tolerance * (1 + other.abs().max().item()), rtol=tolerance
        )
    assert any(g.abs().sum() > 0 for g in ours)


def images_of(backbone, batch, dtype, seed=1):
    size = backbone.image_size
    return torch.randn(batch, 3, size, size, generator=torch.Generator().manual_seed(seed)).to(
        dtype
    )


SHAPES = dict(
    heads=st.sampled_from([1, 2, 3]),
    grid=st.sampled_from([2, 3, 5]),
    tokens=st.sampled_from([1, 2, 5, 33, 200]),
    batch=st.integers(1, 3),
    pool=st.sampled_from(["token", "avg", "avg with class token"]),
    dtype=st.sampled_from([torch.float64, torch.float32]),
)


def make(slug, heads, grid, pool, dtype, classes=5, **chosen):
    backbone = small_vit(
        pool.split()[0],
        width=16 * heads,
        heads=heads,
        size=4 * grid,
        depth=3,
        class_token=pool != "avg",
    ).to(dtype)
    return randomised(vp.build_method(slug, backbone, classes, **chosen).to(dtype))


VARIANTS = [
    ("vpt-shallow", {}),
    ("vpt-deep", {}),
    ("vpt-deep", {"form": "concatenate"}),
    ("vpt-deep", {"block": 1}),
    ("vpt-deep", {"block": (0, 2), "form": "concatenate"}),
    ("gate-vpt", {"gate": 0.5}),
    ("e2vpt", {"segments": 8}),
    ("provp", {}),
    ("express", {}),
    ("express", {"place": "after"}),
    ("cdc", {}),
    ("cdc", {"cdc": "all"}),
    ("cdc", {"cdc": "none"}),
    ("spt-shallow", {}),
    ("spt-deep", {}),
]


@pytest.mark.parametrize(("slug", "chosen"), VARIANTS)
@settings(max_examples=12, deadline=None)
@given(**SHAPES)
def test_prompt_methods_are_their_definition(slug, chosen, heads, grid, tokens, batch, pool, dtype):
    model = make(slug, heads, grid, pool, dtype, prompt_tokens=tokens, **chosen)
    if slug == "e2vpt":  # half pruned
        for mask in model.method.masks():
            mask.copy_(
                torch.rand(mask.shape, generator=torch.Generator().manual_seed(tokens)) < 0.5
            )
    check_equal(model, images_of(model.source, batch, dtype), plain_logits, dtype)


# methods whose definition is tested elsewhere in this file, or with the variants of prompt methods
ELSEWHERE = {slug for slug, _ in VARIANTS} | {"ivpt", "adapter", "adaptformer", "da-vpt"}


@pytest.mark.parametrize("slug", [slug for slug in DEFINITIONS if slug not in ELSEWHERE])
@settings(max_examples=12, deadline=None)
@given(**SHAPES)
def test_other_methods_are_their_definition(slug, heads, grid, tokens, batch, pool, dtype):
    chosen = {"prompt_tokens": tokens} if "prompt_tokens" in settings_schema(slug) else {}
    model = make(slug, heads, grid, pool, dtype, **chosen)
    check_equal(model, images_of(model.source, batch, dtype), plain_logits, dtype)


IVPT_PARTS = [
    {},
    {"da": False},
    {"ar": "none"},
    {"ar": "all"},
    {"cdc": "none"},
    {"cdc": "all"},
    {"cdc": "all", "da": False},
    {"form": "concatenate"},
]


@pytest.mark.parametrize("parts", IVPT_PARTS)
@settings(max_examples=10, deadline=None)
@given(**{**SHAPES, "tokens": st.sampled_from([1, 4, 13])}, salient=st.integers(1, 4))
def test_ivpt_is_its_definition(parts, heads, grid, tokens, batch, pool, dtype, salient):
    model = make(
        "ivpt", heads, grid, pool, dtype, prompt_tokens=tokens, salient_tokens=salient, **parts
    )
    check_equal(model, images_of(model.source, batch, dtype), plain_logits, dtype)


@pytest.mark.parametrize(
    ("slug", "chosen"),
    [("adapter", {}), ("adapter", {"places": ("mlp",)}), ("adaptformer", {"bottleneck": 5})],
)
@settings(max_examples=8, deadline=None)
@given(**{name: SHAPES[name] for name in ("heads", "grid", "batch", "pool", "dtype")})
def test_adapters_are_their_definition(slug, chosen, heads, grid, batch, pool, dtype):
    model = make(slug, heads, grid, pool, dtype, **chosen)
    check_equal(model, images_of(model.source, batch, dtype), plain_logits, dtype)


def changed_weights(model):
    """The weights that the method's formula gives: W + B A, gamma W, b + shift."""
    timm, method, slug = model.source.model, model.method, model.slug
    weights = {name: value for name, value in timm.named_parameters()}
    modules = {id(module): name for name, module in timm.named_modules()}
    width = model.source.width
    for (index, name), layer in model.source.layers().items():
        path = modules[id(layer)]
        weight, bias = f"{path}.weight", f"{path}.bias"
        if slug == "ssf":
            gamma, beta = method.scales[f"{name}_{index}"], method.shifts[f"{name}_{index}"]
            weights[weight] = gamma.view(-1, *[1] * (layer.weight.ndim - 1)) * layer.weight
            weights[bias] = gamma * layer.bias + beta
        elif slug == "bias" and f"{name}_{index}" in method.shifts.parts:
            part, shift = method.shifts.parts[f"{name}_{index}"], torch.zeros_like(layer.bias)
            if name == "qkv":
                for place, third in enumerate(method.shifts.thirds):
                    piece = part[place * width : (place + 1) * width]
                    shift = torch.cat([shift[: third * width], piece, shift[(third + 1) * width :]])
            else:
                shift = part
            weights[bias] = layer.bias + shift
        elif slug == "lora" and name == "qkv":
            change = [torch.zeros(width, width).to(layer.weight)] * 3
            for place, target in enumerate(method.settings.targets):
                at = index * len(method.settings.targets) + place
                change[["query", "key", "value"].index(target)] = (
                    method.scale * method.up[at] @ method.down[at]
                )
            weights[weight] = layer.weight + torch.cat(change)
    return weights


def reweighted_logits(model, images):
    timm = model.source.model
    # num_classes = 0: pooled features
    features = functional_call(timm, changed_weights(model), (images,))
    return model.head(features)


@pytest.mark.parametrize(
    ("slug", "chosen"),
    [
        ("bias", {}),
        ("bias", {"categories": ("key", "value")}),
        ("bias", {"categories": ("fc1", "norm2", "query")}),
        ("ssf", {}),
        ("lora", {"rank": 3}),
        ("lora", {"rank": 2, "alpha": 8, "targets": ("query", "key", "value")}),
    ],
)
@settings(max_examples=8, deadline=None)
@given(**{name: SHAPES[name] for name in ("heads", "grid", "batch", "pool", "dtype")})
def test_changed_weights_are_their_definition(slug, chosen, heads, grid, batch, pool, dtype):
    model = make(slug, heads, grid, pool, dtype, **chosen)
    check_equal(model, images_of(model.source, batch, dtype), reweighted_logits, dtype)


def test_a_key_bias_does_nothing(vit):
    """It moves every score of a query alike, so softmax does not see it (DA-VPT Sec. 2.5 tunes
    it)."""
    backbone = small_vit().double()
    model = vp.build_method("bias", backbone, 3, categories=("key",)).double()
    images = images_of(backbone, 2, torch.float64)
    before = model(images)
    randomised(model, scale=0.0)
    with torch.no_grad():
        for part in model.method.shifts.parts.values():
            part.normal_()
    assert torch.allclose(model(images), before, atol=1e-12)
    gradient = torch.autograd.grad(model(images).sum(), list(model.method.parameters()))
    assert max(g.abs().max() for g in gradient) < 1e-12


# ---- DA-VPT's losses


@settings(max_examples=30, deadline=None)
@given(
    proxies=st.integers(1, 5),
    samples=st.integers(1, 12),
    normaliser=st.sampled_from(["positive", "all"]),
    seed=st.integers(0, 10**6),
)
def test_proxy_anchor_is_equation_4(proxies, samples, normaliser, seed):
    generator = torch.Generator().manual_seed(seed)
    similarity = (2 * torch.rand(proxies, samples, generator=generator) - 1).double()
    positive = torch.rand(proxies, samples, generator=generator) < 0.4
    margin, tau = 0.1, 1 / 32
    attract, repel, with_positives = 0.0, 0.0, 0
    for k in range(proxies):
        near = [
            torch.exp(-(similarity[k, i] - margin) / tau) for i in range(samples) if positive[k, i]
        ]
        far = [
            torch.exp((similarity[k, j] + margin) / tau)
            for j in range(samples)
            if not positive[k, j]
        ]
        attract += torch.log(torch.tensor(1.0).double() + sum(near))
        repel += torch.log(torch.tensor(1.0).double() + sum(far))
        with_positives += bool(near)
    divisor = max(1, with_positives) if normaliser == "positive" else proxies
    expected = attract / divisor + repel / proxies
    assert torch.allclose(
        proxy_anchor(similarity, positive, margin, tau, normaliser), expected, atol=1e-10
    )


@pytest.mark.parametrize("slug", ["da-vpt", "da-vpt-plus"])
@pytest.mark.parametrize("pool", ["token", "avg"])
@pytest.mark.parametrize("guided", [(None, None), (0, 1), (1, 2)])
@pytest.mark.parametrize(
    ("projection", "patches"), [("query", "attention"), ("none", "tokens"), ("query", "tokens")]
)
def test_da_vpt_loss_is_equation_5(slug, pool, guided, projection, patches):
    """Cross-entropy + beta L(x, p) + lambda L(p, x_cls), from a plain run with concatenated
    prompts."""
    chosen = dict(
        prompt_tokens=3,
        guided_tokens=4,
        guided_from=guided[0],
        guided_to=guided[1],
        projection=projection,
        patches=patches,
        beta=0.3,
        lambda_=0.7,
    )
    model = make(slug, 2, 3, pool, torch.float64, classes=6, **chosen)
    method, backbone = model.method, model.source
    images, labels = images_of(backbone, 5, torch.float64), torch.tensor([0, 1, 2, 5, 1])
    method.cluster.copy_(torch.tensor([0, 3, 1, 1, 2, 0]))
    method.train()
    ours = model.training_loss(model.features(model.below(images)), labels)

    timm, prefix = backbone.model, backbone.prefix
    weights = dict(timm.named_parameters())
    # the value bias, and the class token; the key bias as well, though it does nothing
    if slug == "da-vpt-plus":
        for index in range(backbone.depth):
            key, value = method.shifts.parts[f"qkv_{index}"].chunk(2)
            name = f"blocks.{index}.attn.qkv.bias"
            weights[name] = weights[name] + torch.cat([torch.zeros_like(key), key, value])
        if prefix:
            weights["cls_token"] = weights["cls_token"] + method.class_shift

    def plain(images):
        x, terms = timm._pos_embed(timm.patch_embed(images)), []
        for index, block in enumerate(timm.blocks):
            prompts = method.prompts[index]
            seen = x
            q, k, v = split_heads(block.attn, block.attn.qkv(block.norm1(put(x, prompts, prefix))))
            out, attention = attend(block.attn, q, k, v)
            if patches == "attention":
                seen = drop((attention @ v).transpose(1, 2).flatten(2), len(prompts), prefix)
            proxies = q.transpose(1, 2).flatten(2)[0, prefix : prefix + len(prompts)]
            proxies = proxies if projection == "query" else prompts
            x = drop(block(put(x, prompts, prefix)), len(prompts), prefix)
            if index not in method.guided:
                continue
            for weight, points in ((0.3, seen[:, prefix:]), (0.7, seen[:, :1])):
                if weight == 0.7 and not prefix:
                    continue
                # (M, B, n)
                cosine = F.cosine_similarity(proxies[:, None, None], points[None], dim=-1)
                positive = (method.cluster[labels][None, :] == torch.arange(4)[:, None])[
                    ..., None
                ].expand_as(cosine)
                terms.append(
                    weight * proxy_anchor(cosine.flatten(1), positive.flatten(1), 0.1, 1 / 32)
                )
        logits = model.head(timm.forward_head(timm.norm(x), pre_logits=True))
        return F.cross_entropy(logits, labels) + sum(terms) / len(method.guided)

    class Plain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.timm = timm

        def forward(self, images):
            return plain(images)

    theirs = functional_call(
        Plain(), {f"timm.{name}": value for name, value in weights.items()}, (images,)
    )
    assert torch.allclose(ours, theirs, atol=1e-10)
    parameters = [*model.head.parameters(), *model.method_parameters()]
    for a, b in zip(
        torch.autograd.grad(ours, parameters), torch.autograd.grad(theirs, parameters), strict=True
    ):
        assert torch.allclose(a, b, atol=1e-10)


# ---- other backbones


def test_every_slug_has_a_definition():
    reweighted, image = {"bias", "ssf", "lora"}, {"vp", "ap"}
    # no change, own weights, tested above
    plain = {"linear-probe", "full-finetune", "norm-tune", "da-vpt-plus"}
    missing = set(vp.METHODS) - set(DEFINITIONS) - reweighted - image - plain
    assert not missing, f"DEFINITIONS of this file lacks {', '.join(sorted(missing))}"


NAMES = [
    "vit_tiny_patch16_224",
    "vit_small_patch14_reg4_dinov2",
    "vit_base_patch16_clip_224",
    "deit3_small_patch16_224",
]


@pytest.mark.parametrize("name", NAMES)
def test_timms_variants_are_carried(name):
    """Registers, layer scale, pre-norm (CLIP's image tower), patch 14: the opened block is timm's
    block."""
    import timm as library

    from visprompt.models.backbones import Backbone

    torch.manual_seed(0)
    small = dict(
        embed_dim=24, depth=3, num_heads=3, img_size=28 if "14" in name else 32, num_classes=0
    )
    model = library.create_model(name, **small)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))
    backbone = Backbone(model, name, small["img_size"], (0.5,) * 3, (0.5,) * 3)
    assert backbone.opened
    images = images_of(backbone, 2, torch.float32)
    assert torch.allclose(backbone(images), model(images), atol=1e-5)
    for slug in vp.METHODS:
        if carries(slug, "vit"):
            chosen = {"salient_tokens": 2} if slug == "ivpt" else {}
            chosen |= {"segments": 4} if slug == "e2vpt" else {}
            tuned = randomised(vp.build_method(slug, backbone, 3, **chosen))
            if slug in ("vpt-deep", "spt-deep", "provp", "vpt-shallow"):
                x = model.norm_pre(model._pos_embed(model.patch_embed(images)))
                x = DEFINITIONS[slug](tuned.method, list(model.blocks), x, backbone.prefix)
                expected = tuned.head(model.forward_head(model.norm(x), pre_logits=True))
                assert torch.allclose(tuned(images), expected, atol=1e-4)
            assert tuned(images).shape == (2, 3)


@pytest.mark.parametrize("slug", ["vpt-deep", "cdc", "ivpt"])
@pytest.mark.parametrize("batch", [1, 2])
def test_prompts_in_swins_windows(swin, slug, batch):
    """Every window attends to its tokens and to the prompts, whose relative position bias is 0."""
    backbone = swin
    chosen = {"ar": "none"} if slug == "ivpt" else {}
    model = randomised(vp.build_method(slug, backbone, 3, prompt_tokens=3, **chosen))
    images, timm, index = images_of(backbone, batch, torch.float32), backbone.model, 0
    x = timm.patch_embed(images)
    for stage in timm.layers:
        x = stage.downsample(x)
        for place, block in enumerate(stage.blocks):
            prompts = model.method.prompts[index]
            if slug != "vpt-deep" and place:
                before = model.method.prompts[index - 1]
                prompts = prompts + (
                    model.method.gamma[str(index)] @ before if slug == "ivpt" else before
                )
            attn, height, width = block.attn, x.shape[1], x.shape[2]
            side, shift = block.window_size[0], block.shift_size[0]
            h = torch.roll(block.norm1(x), (-shift, -shift), (1, 2))
            out, number = torch.zeros_like(h), 0
            for top in range(0, height, side):
                for left in range(0, width, side):
                    window = h[:, top : top + side, left : left + side].flatten(1, 2)
                    joined = torch.cat([block.norm1(prompts).expand(batch, -1, -1), window], 1)
                    qkv = attn.qkv(joined).view(batch, joined.shape[1], 3, attn.num_heads, -1)
                    q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
                    scores = q @ k.transpose(-2, -1) * attn.scale
                    bias = torch.zeros_like(scores)
                    bias[:, :, 3:, 3:] += attn._get_rel_pos_bias()[0]
                    if block.attn_mask is not None:
                        bias[:, :, 3:, 3:] += block.attn_mask[number]
                    new = attn.proj(((scores + bias).softmax(-1) @ v).transpose(1, 2).flatten(2))[
                        :, 3:
                    ]
                    out[:, top : top + side, left : left + side] = new.unflatten(1, (side, side))
                    number += 1
            x = x + torch.roll(out, (shift, shift), (1, 2))
            x = x + block.mlp(block.norm2(x))
            index += 1
    expected = model.head(timm.forward_head(timm.norm(x), pre_logits=True))
    assert torch.allclose(model(images), expected, atol=1e-5)


def test_swin_loop_is_timm(swin):
    images = images_of(swin, 2, torch.float32)
    assert torch.allclose(swin(images), swin.model(images), atol=1e-5)
    model = randomised(vp.build_method("ap", swin, 3, block=2))
    x = swin.model.patch_embed(images)
    x = swin.model.layers[0](x)
    x = swin.model.layers[1].blocks(swin.model.layers[1].downsample(x) + model.method.prompts[0])
    expected = model.head(swin.model.forward_head(swin.model.norm(x), pre_logits=True))
    assert torch.allclose(model(images), expected, atol=1e-5)
