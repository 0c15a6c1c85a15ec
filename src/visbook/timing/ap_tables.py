"""What the pages on AP's cost time: Tables 2 and 4 at the papers' model sizes, random weights."""

from visprompt.records import Record

from .method_cost import measured_cost
from .side_by_side import speeds_in_turns, variants_in_turns

LARGE = {"resnet": "resnet101", "vit": "vit_large_patch16_224"}
FRAME = {"vp": {"padding": 48}}
SHORT = {
    "full-finetune": "full",
    "linear-probe": "linear",
    "norm-tune": "norm",
    "vp": "vp",
    "ap": "ap",
}

IN_TURNS = {  # timed in turns, with the settings that the paper states
    "ap": {},
    "bias": {},
    "lora": {"rank": 10},
    "vpt-deep": {"prompt_tokens": 10},
    "adapter": {},
    "adaptformer": {},
    "ssf": {},
}
HELD = {  # whose peak memory is measured, each in a process of its own
    "AP": ("ap", {}),
    "AP-3": ("ap", {"block": [0, 1, 2]}),
    "AP-5": ("ap", {"block": [0, 1, 2, 3, 4]}),
    "VPT-10": ("vpt-deep", {"prompt_tokens": 10}),
    "VPT-50": ("vpt-deep", {"prompt_tokens": 50}),
}
# whose training step is timed in turns
TIMED = {name: HELD[name] for name in ("AP", "AP-3", "AP-5")} | {
    f"LORA, rank {rank}": ("lora", {"rank": rank}) for rank in (10, 50)
}


def batch_size(word: str, device: str) -> int:
    """Images of a step that is timed: the paper's on an accelerator, few on a processor."""
    return {"resnet": 8, "vit": 2}[word] if device == "cpu" else 128


def turns_of_table_2(word: str, device: str, run: bool) -> Record | None:
    """The times of Table 2's methods in turns, on one of LARGE; see `speeds_in_turns`."""
    choices = {slug: FRAME.get(slug, {}) for slug in SHORT}
    given = dict(batch_size=batch_size(word, device), device=device, run=run)
    return speeds_in_turns(LARGE[word], choices, repeats=4, **given)


def peak_of_table_2(word: str, slug: str, device: str, run: bool) -> Record | None:
    """The peak memory of one of Table 2's methods; see `measured_cost`."""
    given = dict(batch_size=batch_size(word, device), device=device, run=run)
    return measured_cost(LARGE[word], slug, repeats=5, **given, **FRAME.get(slug, {}))


def turns_of_table_4(device: str, run: bool) -> Record | None:
    """The times of Table 4's methods in turns, on ViT-Large/16."""
    given = dict(batch_size=batch_size("vit", device), device=device, run=run)
    return speeds_in_turns(LARGE["vit"], IN_TURNS, repeats=3, **given)


def peak_of_table_4(name: str, device: str, run: bool) -> Record | None:
    """The peak memory of one of HELD, on ViT-Large/16."""
    slug, settings = HELD[name]
    given = dict(batch_size=batch_size("vit", device), device=device, run=run)
    return measured_cost(LARGE["vit"], slug, repeats=5, **given, **settings)


def variants(device: str, run: bool) -> Record | None:
    """The training steps of TIMED in turns, on ViT-Large/16."""
    given = dict(batch_size=batch_size("vit", device), device=device, run=run)
    return variants_in_turns(LARGE["vit"], TIMED, repeats=10, **given)


def everything(device: str) -> list:
    """(what, function that leaves its record) of all of these, those in turns first."""
    words = [("vit", "ViT-Large"), ("resnet", "ResNet-101")]
    found = [
        (f"Table 2, {name}", lambda word=word: turns_of_table_2(word, device, True))
        for word, name in words
    ]
    found += [
        ("Table 4", lambda: turns_of_table_4(device, True)),
        ("AP at more blocks", lambda: variants(device, True)),
    ]
    found += [
        (f"memory, {name}, {slug}", lambda w=word, s=slug: peak_of_table_2(w, s, device, True))
        for word, name in words
        for slug in SHORT
    ]
    return found + [
        (f"memory, {name}", lambda name=name: peak_of_table_4(name, device, True)) for name in HELD
    ]
