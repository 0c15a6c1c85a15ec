"""Random streams: one independent generator per seed and purpose."""

import hashlib

import torch

# of parameters; of what a method draws before training; of the batches
PURPOSES = ("start", "preparation", "order")


def stream(seed: int, purpose: str) -> torch.Generator:
    """The generator of a purpose.

    Two methods with one seed see the same batches, whatever either draws before.
    """
    assert purpose in PURPOSES
    digest = hashlib.sha256(f"{purpose} {seed}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7]))
