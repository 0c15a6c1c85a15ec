"""Schema of `backbones.yaml`."""

from collections.abc import Iterable
from pathlib import Path

from ..manifests.schema import (
    COUNT,
    DIGITS,
    FLAG,
    NUMBER,
    SHARE,
    TEXT,
    listed,
    mapping,
    named,
    one_of,
)
from ..manifests.wording import Fault


def backbones_schema() -> dict:
    """Schema of `backbones.yaml`."""
    vit = mapping(
        {name: COUNT for name in ("img_size", "patch_size", "embed_dim", "depth", "num_heads")},
        {
            "class_token": FLAG,
            "global_pool": one_of(["token", "avg", "max"]),
            "fc_norm": FLAG,
            "pre_norm": FLAG,
            "act_layer": one_of(["gelu", "quick_gelu"]),
        },
    )
    swin = mapping(
        dict.fromkeys(("img_size", "patch_size", "window_size", "embed_dim"), COUNT)
        | dict.fromkeys(("depths", "num_heads"), listed(COUNT, 4, 4)),
    )
    resnet = mapping(
        {"layers": listed(COUNT, 4, 4), "channels": listed(COUNT, 4, 4)},
        {"stem_type": one_of(["", "deep", "deep_tiered"]), "stem_width": COUNT},
    )
    positive = {"type": "number", "exclusiveMinimum": 0}
    entry = {
        "timm_class": one_of(["VisionTransformer", "SwinTransformer", "ResNet"]),
        "timm_kwargs": {"type": "object"},
        "image_size": COUNT,
        "mean": listed(NUMBER, 3, 3),
        "std": listed(positive, 3, 3),
        "weights": TEXT,
        "log": TEXT,
        "source": TEXT,
        "recipe": TEXT,
        "licence": TEXT,
    }
    whole = mapping(entry, {"source_accuracy": SHARE, "probe_accuracy": SHARE})
    whole["allOf"] = [
        {
            "if": {"properties": {"timm_class": {"const": kind}}},
            "then": {"properties": {"timm_kwargs": schema}},
        }
        for kind, schema in (
            ("VisionTransformer", vit),
            ("SwinTransformer", swin),
            ("ResNet", resnet),
        )
    ]
    file = {"timm": TEXT, "mean": listed(NUMBER, 3, 3), "std": listed(positive, 3, 3)}
    known = {"fingerprint": DIGITS}  # of its tensors, as `fingerprint_weights` gives it
    use = mapping({"use": TEXT}, {"pooling": one_of(["patches"])} | known)
    return mapping(
        {"embedded": named(whole), "files": named(mapping(file, known), 0), "published": named(use)}
    )


def backbones_faults(content: dict, file: Path) -> Iterable[Fault]:
    """Faults where sizes do not fit each other, which timm would answer with a traceback."""
    for name, entry in content["embedded"].items():
        path, size, kwargs = (
            ("embedded", name, "timm_kwargs"),
            entry["image_size"],
            entry["timm_kwargs"],
        )
        if entry["timm_class"] == "ResNet":
            continue
        if kwargs["img_size"] != size:
            yield Fault(
                (*path, "img_size"),
                f"{kwargs['img_size']} is given; write {size}, as in image_size.",
            )
        if kwargs["img_size"] % kwargs["patch_size"]:
            text = f"{kwargs['patch_size']} is given; write a divisor of img_size, {size}."
            yield Fault((*path, "patch_size"), text)
        heads = kwargs["num_heads"]
        # each twice as wide as the one before
        stages = [heads] if entry["timm_class"] == "VisionTransformer" else heads
        for stage, count in enumerate(stages):
            if kwargs["embed_dim"] * 2**stage % count:
                text = f"{heads} is given; write a divisor of embed_dim, {kwargs['embed_dim']}."
                if stages is heads:
                    text = (
                        f"{count} is given; write a divisor of "
                        f"{kwargs['embed_dim'] * 2**stage}, the width of stage {stage}."
                    )
                yield Fault((*path, "num_heads"), text)
