"""Counts of trained parameters."""

from . import TunedModel


def count_parameters(model: TunedModel) -> dict:
    """Trained parameters: {"method", "head", "total"}. The frozen backbone counts nothing."""
    method = sum(parameter.numel() for parameter in model.method_parameters())
    head = sum(parameter.numel() for parameter in model.head.parameters())
    return {"method": method, "head": head, "total": method + head}
