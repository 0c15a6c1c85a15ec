"""VPT-Deep: new prompt tokens at every block, dropped behind it (SPT Eq. 6, iVPT Eq. 2, DA-VPT Eq. 1)."""

from dataclasses import dataclass

from . import prompts


@dataclass(frozen=True)
class Settings:
    """How many prompt tokens a block has, and how they are computed."""

    prompt_tokens: int = 10  # iVPT's "good choice for initialization"; VPT itself searches 1 to 200 per task
    form: str = "keys and values"  # equal to "concatenate", the plain definition, and faster


class Method(prompts.Deep):
    """Trains N prompts of width D a block."""
