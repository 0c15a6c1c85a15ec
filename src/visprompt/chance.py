"""Random streams: one seed, and from it a generator for each purpose, so that one cannot shift
another."""

import hashlib

import torch

# of parameters; of what a method draws before training; of the batches
PURPOSES = ("start", "preparation", "order")


def stream(seed: int, purpose: str) -> torch.Generator:
    """The generator of a purpose: two methods with one seed see the same batches, whatever either
    draws before."""
    assert purpose in PURPOSES
    digest = hashlib.sha256(f"{purpose} {seed}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7]))
