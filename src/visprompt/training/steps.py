"""The training steps of a classification run: optimiser, schedule, shuffled batches and crops."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn


def train(model, features, inputs, labels, recipe, generator, watch) -> list[float]:
    """The training steps: shuffled batches, cosine schedule with warm-up.

    Returns:
        The mean loss of each epoch.

    Raises:
        FloatingPointError: the loss is not finite.
    """
    device = labels.device
    groups = [
        {"params": list(model.head.parameters()), "lr": recipe.head_rate or recipe.learning_rate}
    ]
    if model.method_parameters():
        groups.append({"params": model.method_parameters(), "lr": recipe.learning_rate})
    if recipe.optimizer == "adam":
        # fused: one call for all tensors, which matters for small networks
        optimizer = torch.optim.AdamW(groups, weight_decay=recipe.weight_decay, fused=True)
    else:
        optimizer = torch.optim.SGD(groups, momentum=0.9, weight_decay=recipe.weight_decay)
    total = recipe.epochs * math.ceil(len(labels) / recipe.batch_size)
    warm = max(1, round(recipe.warmup * total))
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, 0.5 * (1 + math.cos(math.pi * step / total)))
    )
    losses = []
    watch(0)
    for epoch in range(recipe.epochs):
        # BatchNorm takes the batch's statistics where its own parameters are trained; a frozen
        # backbone stays as it is.
        model.backbone.train(model.method.trains_backbone)
        model.method.train()
        sum_of_losses: Any = 0.0  # a tensor from the first batch on
        for batch in (
            torch.randperm(len(labels), generator=generator).to(device).split(recipe.batch_size)
        ):
            x = inputs[batch]
            if recipe.augmentation != "none":
                x = crop_and_flip(x, generator)
            with autocast(recipe, device):
                loss = model.training_loss(features(x), labels[batch])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            scheduler.step()
            # asking for its value would make a GPU wait
            sum_of_losses += loss.detach().double() * len(batch)
        model.method.after_epoch()
        losses.append(round(sum_of_losses.item() / len(labels), 6))
        if not math.isfinite(losses[-1]):
            raise FloatingPointError(
                f"the loss of {model.slug} is {losses[-1]} after epoch {epoch + 1}; "
                f"lower learning_rate (now {recipe.learning_rate}) or head_rate (now "
                f"{recipe.head_rate})."
            )
        watch(epoch + 1)
    model.eval()
    return losses


def autocast(recipe: Any, device: torch.device):
    """Context manager for the `precision` of a recipe, of classification or of segmentation."""
    return torch.autocast(device.type, torch.bfloat16, enabled=recipe.precision == "bf16")


def cast_once(train: Callable) -> Callable:
    """`train` in bf16, whose steps find the frozen weights as autocast would cast them at each use.

    Values are equal, bit for bit. What happens between epochs finds the weights as they were.
    """

    def trained(model, features, inputs, labels, recipe, generator, watch):
        start, backbone = model.method.start, model.backbone
        # what lies below the first trained block is computed in float32
        above = backbone if start < 0 else nn.ModuleList(backbone.blocks[start:])
        layers = [layer for layer in above.modules() if isinstance(layer, (nn.Linear, nn.Conv2d))]
        frozen = [p for layer in layers for p in layer.parameters(False) if not p.requires_grad]
        other = [p.data.bfloat16() for p in frozen]

        def swap():
            for at, parameter in enumerate(frozen):
                parameter.data, other[at] = other[at], parameter.data

        def outside(epoch):
            swap()
            try:
                watch(epoch)
            finally:
                swap()

        swap()
        try:
            return train(model, features, inputs, labels, recipe, generator, outside)
        finally:
            swap()

    return trained


def crop_and_flip(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Random resized crop of each of (B, 3, S, S), half of them flipped; see `data.originals`."""
    own = getattr(images, "cropped", None)
    if own is not None:
        return own(generator).to(images.device)
    from torchvision.transforms import v2  # slow to import

    change = v2.Compose(
        [v2.RandomResizedCrop(images.shape[-1], antialias=True), v2.RandomHorizontalFlip()]
    )
    with torch.random.fork_rng(devices=[]):  # torchvision asks the global generator
        torch.manual_seed(torch.randint(2**62, (), generator=generator).item())
        return torch.stack([change(image) for image in images])
