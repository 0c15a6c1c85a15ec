"""AP's learning rates by block and by variant, where a recipe has them: each is compared at its own
best."""

from visprompt import paths
from visprompt.manifests import load_yaml


def ap_rates(recipe: str, part: str) -> dict:
    """AP's learning rates in a recipe, "by_block" or "by_variant"; empty where none were chosen."""
    return load_yaml(paths.MANIFESTS / "recipes.yaml")[recipe].get("ap_rates", {}).get(part, {})


def block_rates(recipe: str, is_vit: bool, depth: int) -> list[float | None]:
    """AP's learning rate at each block; None, the method's own rate, where none was chosen for this
    depth."""
    rates = ap_rates(recipe, "by_block").get("vit" if is_vit else "resnet", [])
    return rates if len(rates) == depth else [None] * depth


def ap_rate(recipe: str, settings: dict, is_vit: bool, depth: int) -> float | None:
    """The rate of AP with these settings of the method; None: the method's own."""
    kind, block = variant(settings), settings.get("block")
    if kind == "add" and isinstance(block, int) and block < depth:
        return block_rates(recipe, is_vit, depth)[block]
    return ap_rates(recipe, "by_variant").get(kind)


def variant(settings: dict) -> str:
    """Name of an AP variant, as in recipes.yaml: "product", "concatenate", "3 blocks" or plain
    "add"."""
    blocks = settings.get("block")
    return (
        f"{len(blocks)} blocks"
        if isinstance(blocks, (list, tuple))
        else settings.get("kind", "add")
    )
