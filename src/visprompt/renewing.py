"""Kept records made by older code, run again with their own settings."""

from . import records
from .backbones import load_backbone
from .errors import BadInput, choose
from .methods import build_method
from .metrics.cost import measured_cost
from .metrics.turns import speeds_in_turns
from .progress import progress
from .studies import share
from .tasks import load_task
from .tuning import Recipe, tune


def again(record: records.Record) -> records.Record:
    """Run what the settings of a record of kind tune, cost or turns describe, with today's code."""
    s = dict(record.settings)
    if record.kind == "tune":
        backbone = load_backbone(s["backbone"], "pretrained")
        task = load_task(s["task"])
        if len(task.train[1]) != s["train_size"]:
            task = load_task(s["task"], train_size=s["train_size"])
        chosen = {name: tuple(v) if isinstance(v, list) else v for name, v in s["method_settings"].items()}
        model = build_method(s["method"], backbone, task.classes, **chosen)
        return tune(model, task, Recipe(**s["recipe"]), s["seed"])
    if record.kind == "cost":
        return measured_cost(s.pop("backbone"), s.pop("method"), **s.pop("method_settings"), **s)
    return speeds_in_turns(s.pop("backbone"), s.pop("methods"), **s)


def agrees(old, new) -> bool:
    """Whether new settings are the old ones, but for fields that came later."""
    if isinstance(old, dict) and isinstance(new, dict):
        return all(key in new and agrees(value, new[key]) for key, value in old.items())
    return old == new


def renew(kind: str, part: str = "1/1") -> int:
    """Run the outdated kept records of a kind again; `part` "2/3" takes the second of every three. Returns how many.

    Raises:
        BadInput: unknown kind, an impossible part, or a record whose settings or data are not the same any more.
    """
    choose("kind", kind, ["tune", "cost", "turns"])
    number, parts = share(part)
    kept = records.stores()[1]
    found = [records.read_record(path) for path in sorted(kept.glob(f"{kind}/*.json"))]
    outdated = [record for record in found if not records.is_current(record)]
    for record in progress(outdated[number - 1 :: parts], f"renewing {kind}"):
        renewed = again(record)
        same = agrees(record.settings, renewed.settings) and renewed.fingerprints["data"] == record.fingerprints["data"]
        if not same:
            raise BadInput(f"record {record.id} cannot be renewed: its settings or its data are not the same any more.")
        path = kept / kind / f"{renewed.id}.json"
        path.write_bytes((records.stores()[0] / kind / path.name).read_bytes())
        (kept / kind / f"{record.id}.json").unlink()
    return len(outdated[number - 1 :: parts])
