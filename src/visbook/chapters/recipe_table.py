"""How a page's runs were made, read off their records, beside the recipe of the page's paper and
its sources."""

from collections.abc import Sequence

from visprompt import paths
from visprompt.manifests import load_yaml
from visprompt.records import Record
from visprompt.training.protocol import protocol
from visprompt.training.recipe import recorded_recipe

from ..pages.recipe_words import values, word
from ..studies.case import rate_name

# what a reader asks of a recipe, and in which words; the other fields are on the page on recipes
ASKED = {
    "optimizer": "optimiser",
    "weight_decay": "weight decay",
    "head_decay": "the head's weight decay",
    "epochs": "epochs",
    "batch_size": "batch",
    "warmup": "warm-up, share of the steps",
    "schedule": "schedule",
    "augmentation": "augmentation",
    "dropout": "dropout",
    "drop_path": "drop path",
    "standardise": "features standardised",
    "learning_rate": "learning rates",
    "selection": "reported epoch",
}


def rows(records: Sequence[Record], paper: str) -> list[tuple[str, str, str]]:
    """(field in words, its values in these records, what the paper or its code says)."""
    own, entry = protocol(paper), load_yaml(paths.MANIFESTS / "recipes.yaml")[paper]
    said = {
        field: f"{'; '.join(values(field, entry, own))} ({source})"
        for field, source in own.sources.items()
    }
    found = []
    for field, asked in ASKED.items():
        own_rate = field == "learning_rate"  # a linear probe's is its head's
        names = [
            (record, rate_name(record.settings["method"]) if own_rate else field)
            for record in records
        ]
        every = {recorded_recipe(record.settings)[name] for record, name in names}
        found.append((asked, listed(every, field), said.get(field, "not stated")))
    norms = {tuple(record.settings["normalisation"]["mean"]) for record in records}
    trained = {record.about.get("trained_on", "train") for record in records}
    sizes = {record.settings["train_size"] for record in records}
    found += [
        (
            "backbones",
            listed({record.settings["backbone"] for record in records}),
            said.get("checkpoints", "not stated"),
        ),
        (
            "mean subtracted from pixels",
            "; ".join(str(mean) for mean in sorted(norms)),
            said.get("statistics", "not stated"),
        ),
        (
            "resizing",
            listed({record.settings["resize"] for record in records}),
            said.get("resize", "not stated"),
        ),
        (
            "trained on",
            f"{listed(trained)}: {listed(sizes)} images",
            said.get("trained_on", "not stated"),
        ),
        (
            "seeds",
            listed({record.settings["seed"] for record in records}),
            own.sources.get("seeds", "not stated"),
        ),
    ]
    return found


def listed(found: set, field: str = "") -> str:
    """Values of a field in a line; of many numbers the ends."""
    numbers = sorted(
        value for value in found if isinstance(value, (int, float)) and not isinstance(value, bool)
    )
    words = sorted(
        word(value, field)
        for value in found
        if not isinstance(value, (int, float)) or isinstance(value, bool)
    )
    shown = (
        [f"{numbers[0]:g} to {numbers[-1]:g}"]
        if len(numbers) > 4
        else [f"{number:g}" for number in numbers]
    )
    return ", ".join([*words, *shown])
