"""Counts of trained parameters."""

from . import TunedModel


def count_parameters(model: TunedModel) -> dict:
    """Numbers of trained parameters: {"method", "head", "total"}; the backbone is frozen."""
    method = sum(parameter.numel() for parameter in model.method_parameters())
    head = sum(parameter.numel() for parameter in model.head.parameters())
    return {"method": method, "head": head, "total": method + head}
