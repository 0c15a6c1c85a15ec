"""The structure of a network, all but its tensors: classes, attributes, hooks, replaced methods."""

import functools
import hashlib
import types
from collections.abc import Collection

import torch
from torch import nn

from ..records.code_objects import constant

EMPTY = nn.Module()
TENSORS = {"_parameters", "_buffers", "_modules", "training"}
DEPTH = 4  # of lists, and of objects within objects, that are looked into


def structure(
    network: nn.Module, leave_out: Collection[str] = (), attributes: bool = True
) -> dict[str, str]:
    """(Path of a module and name of a part) -> description, the same in every process.

    Args:
        leave_out: attributes of the network itself, and submodules, that are ignored.
        attributes: whether plain attributes count, or only classes, hooks and replaced methods.
    """
    parts = {}
    for path, module in network.named_modules():
        if path.split(".")[0] in leave_out and path:
            continue
        # a released form stands in front of a method's own class
        kind = getattr(type(module), "plain", type(module))
        parts[f"{path}: class"] = describe(kind)
        for name, value in vars(module).items():
            if (
                name in TENSORS
                or (not path and name in leave_out)
                or vars(kind).get(name, EMPTY) is value
            ):
                continue
            hooks = name.endswith("_hooks")
            if (
                callable(value)
                or (hooks and value)
                or (attributes and not hooks and name not in vars(EMPTY))
            ):
                parts[f"{path}: {name}"] = describe(list(value.values()) if hooks else value)
        parts |= {f"{path}: {name}": code for name, code in replaced_methods(kind).items()}
    return parts


def changed(before: dict[str, str], now: dict[str, str]) -> str:
    """Twelve hex digits of the parts that differ between two structures; "" if none does."""
    other = sorted(
        (name, now.get(name, "")) for name in {**before, **now} if before.get(name) != now.get(name)
    )
    return hashlib.sha256(repr(other).encode()).hexdigest()[:12] if other else ""


def replaced_methods(kind: type) -> dict[str, str]:
    """Methods of a class, or of its bases, that were replaced by functions from elsewhere."""
    every = [
        (each, name, value) for each in kind.__mro__[:-2] for name, value in vars(each).items()
    ]
    functions = [
        (each, name, value) for each, name, value in every if isinstance(value, types.FunctionType)
    ]
    return {
        name: describe(value)
        for each, name, value in functions
        if value.__qualname__ != f"{each.__qualname__}.{name}"
    }


def describe(value, depth: int = 0) -> str:
    """A description of a value that is the same in every process, without addresses."""
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, torch.Tensor):
        bits = (
            ""
            if value.is_meta
            else hashlib.sha256(value.detach().cpu().contiguous().numpy().tobytes()).hexdigest()
        )
        return f"tensor {tuple(value.shape)} {bits}"
    if value is None or isinstance(
        value, (bool, int, float, str, bytes, torch.dtype, torch.device)
    ):
        return repr(value)
    if depth == DEPTH:
        return describe(type(value))
    if isinstance(value, functools.partial):
        parts = (value.func, value.args, value.keywords)
        return f"partial {[describe(part, depth + 1) for part in parts]}"
    if isinstance(value, types.MethodType):
        return describe(value.__func__, depth)
    if isinstance(value, types.FunctionType):
        code, cells = value.__code__, [cell.cell_contents for cell in value.__closure__ or ()]
        words = [constant(part) for part in code.co_consts if not isinstance(part, types.CodeType)]
        inside = [describe(part, depth + 1) for part in (value.__defaults__, cells)]
        return f"{value.__qualname__} {code.co_code.hex()} {code.co_names} {words} {inside}"
    if isinstance(value, nn.Module):
        return describe(type(value))  # a submodule is described at its own path
    if isinstance(value, (list, tuple)):
        return str([describe(part, depth + 1) for part in value])
    if isinstance(value, (set, frozenset)):
        return str(sorted(describe(part, depth + 1) for part in value))
    if isinstance(value, dict):
        return str([(str(name), describe(part, depth + 1)) for name, part in value.items()])
    inside = vars(value) if hasattr(value, "__dict__") else {}
    return f"{describe(type(value))} {describe(inside, depth + 1)}"
