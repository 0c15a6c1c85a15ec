"""Operations and memory of a tuned model, counted on shapes alone."""

from dataclasses import asdict

import torch
from torch.utils.flop_counter import FlopCounterMode

from ..checks import Count
from ..methods import TunedModel, build_method
from ..methods.parameters import count_parameters
from ..models.backbones import to_meta


def count_flops(model: TunedModel, training: bool = False, batch_size: Count = 1) -> dict:
    """Operations per image: {"flops", "macs", "unit"}; a multiply-add counts as two FLOPs.

    Args:
        training: also count the backward pass down to the lowest trained parameter.
        batch_size: what a batch shares, such as the keys of prompts, is divided by it.
    """
    meta = on_meta(model)
    images = torch.empty(
        batch_size, 3, model.source.image_size, model.source.image_size, device="meta"
    )
    with FlopCounterMode(display=False) as counter:
        features = meta.features(meta.below(images))
        logits = meta.classify(features)
        if training:
            logits.sum().backward()
    flops = round(counter.get_total_flops() / batch_size)
    return {"flops": flops, "macs": flops // 2, "unit": "FLOPs, two for a multiply-add"}


def training_memory(model: TunedModel, batch_size: int) -> dict:
    """Bytes that one training step must hold at once, counted on shapes alone (float32, Adam).

    Returns:
        {"weights", "gradients", "optimizer", "activations", "total"}: all weights, trained or not;
        a gradient and Adam's two moments per trained parameter; everything autograd saves for the
        backward pass, each storage once, without weights. A framework's workspace and fragmentation
        come on top.
    """
    meta = on_meta(model)
    held = {tensor.untyped_storage()._cdata for tensor in [*meta.parameters(), *meta.buffers()]}
    activations = 0

    def pack(tensor):
        nonlocal activations
        key = tensor.untyped_storage()._cdata
        if key not in held:
            held.add(key)
            kept.append(tensor)  # as long as it lives, its storage's address is its own
            activations += tensor.untyped_storage().nbytes()
        return tensor

    kept = []
    size = model.source.image_size
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        features = meta.features(meta.below(torch.empty(batch_size, 3, size, size, device="meta")))
        meta.training_loss(features, torch.zeros(batch_size, dtype=torch.long, device="meta"))
    weights = sum(p.numel() * p.element_size() for p in meta.parameters())
    trained = 4 * count_parameters(model)["total"]
    parts = {
        "weights": weights,
        "gradients": trained,
        "optimizer": 2 * trained,
        "activations": activations,
    }
    return {**parts, "total": sum(parts.values())}


def on_meta(model: TunedModel) -> TunedModel:
    """A copy of the model on the meta device, ready for a training step."""
    meta = build_method(
        model.slug, to_meta(model.source), model.num_classes, **asdict(model.method.settings)
    )
    meta.backbone.train(meta.method.trains_backbone)
    meta.method.train()
    return meta
