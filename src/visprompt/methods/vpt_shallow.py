"""VPT-Shallow: prompt tokens at the first block, kept through all blocks (SPT Eq. 4-5)."""

from dataclasses import dataclass

from ..checks import Count
from . import prompts


@dataclass(frozen=True)
class Settings:
    """Number of prompts."""

    # AP compares VPT with 10 and 50; VPT itself searches 1 to 200 per task
    prompt_tokens: Count = 50


class Method(prompts.Shallow):
    """Trains N prompts of width D."""
