"""Every count of trained parameters and of operations that the papers print, recomputed from the
architectures.

`data_manifests/papers/counts.yaml` says for each printed cell what is built; here it is built on
shapes alone.
"""

import math
import re

import pandas as pd

from visprompt import manifests, papers, paths
from visprompt.measure.cost import count_flops
from visprompt.methods import build_method, names
from visprompt.methods.parameters import count_parameters
from visprompt.models.backbones import Backbone, load_backbone
from visprompt.papers.rounding import stands_for
from visprompt.records import remember
from visprompt.training.decoders import Decoder, build_decoder

# Whose class counts the head has, and how a reading names them; class counts are those of iVPT's
# Table 17.
TASKS = {
    "cifar-10": "a head of 10 classes",
    "imagenet": "a head of 1,000 classes",
    "fgvc": "the mean head of FGVC's 5 tasks",
    "vtab": "the mean head of VTAB's 19 tasks",
    "all": "the heads of all 24 tasks",
}
PER_TASK = {"fgvc": "ivpt.table-15", "vtab": "ivpt.table-16"}  # where iVPT prints N and k
UNITS = {
    "parameters": "M parameters",
    "operations": "GFLOPs",
    "percent": "%",
    "ratio": "ratio",
    "together": "ratio",
}
DEFAULTS = {"tasks": "cifar-10", "head": True, "measure": "parameters", "settings": {}}
# what "over" and "minus" take over from their entry
SHARED = ("backbone", "tasks", "head", "measure", "decoder")
CLASSES = 1000  # of the models that are built; heads are added by arithmetic


def printed_counts(source: str | None = None) -> pd.DataFrame:
    """One row for every printed count, or for every one of an artifact or a paper's prose, in the
    order of `counts.yaml`.

    Returns:
        Columns `id`, `artifact`, `where`, `method` (as printed), `unit` ("M parameters", "GFLOPs",
        where the papers mean multiply-adds, "ratio" or "%"), `printed`, `computed` (NaN for what is
        not of this package), `agrees` (True when `computed` rounded or cut off is `printed`; None
        when a setting is not stated) and `reading`, in words.
    """
    rows, path = [], paths.MANIFESTS / "papers" / "counts.yaml"
    for number, group in enumerate(manifests.load_yaml(path)):
        for one in group["sources"]:
            if source in (None, one):
                with manifests.located(path, number):
                    rows += group_counts(group, one)
    return pd.DataFrame(rows)


def group_counts(group: dict, source: str) -> list[dict]:
    """The rows of one group of `counts.yaml` that one of its sources prints."""
    table, column = group.get("table", source), of_source(group["column"], source)
    cells = printed_cells(table, group.get("key", "method"))
    for name, wanted in group.get("where", {}).items():
        cells = cells[cells[name] == wanted]
    suffix, found = of_source(group.get("suffix", ""), source), []
    for name, entry in group["rows"].items():
        if name not in cells.index or cells.loc[name, column] in ("", "-"):
            continue
        entry, text = {**DEFAULTS, **group, **entry}, cells.loc[name, column]
        printed, unit = number(text, entry.get("decimals"))
        entry = with_head(entry, printed)
        computed = value(entry) if "slug" in entry else math.nan
        short = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        found.append(
            {
                "id": f"{source}.{group.get('prefix', '')}{short}{suffix}",
                "artifact": source,
                "where": cells.loc[name, "where"],
                "method": name,
                "unit": UNITS[entry["measure"]],
                "printed": printed,
                "computed": computed,
                "agrees": verdict(entry, text, printed, unit, computed),
                "reading": reading(entry),
            }
        )
    return found


def with_head(entry: dict, printed: float) -> dict:
    """An entry whose head is not stated, "either", with what comes nearer: no head, or
    ImageNet's."""
    if entry["head"] != "either":
        return entry
    return min(
        ({**entry, "head": head, "tasks": "imagenet"} for head in (False, True)),
        key=lambda e: abs(value(e) - printed),
    )


def of_source(given: str | dict, source: str) -> str:
    """A field of a group that is one text, or one for each of its sources."""
    return given.get(source, "") if isinstance(given, dict) else given


def printed_cells(table: str, key: str = "method") -> pd.DataFrame:
    """A table, or "<paper>.prose", as printed, by the name of the row, with a column `where`."""
    paper, kind = table.split(".", 1)
    if kind == "prose":
        return manifests.read_table(paths.MANIFESTS / "papers" / paper / "prose.csv").set_index(
            "id"
        )
    cells = papers.published(table).set_index(key)
    return cells.assign(where=f"Table {papers.artifact(table)['number']}")


def number(text: str, decimals: int | None = None) -> tuple[float, float]:
    """A printed count, thousands as millions, and the unit of its last digit: "0.60M" -> (0.6,
    0.01)."""
    digits, thousands = re.search(r"(\d+(?:\.\d+)?)(k?)", text).groups()
    if decimals is None:
        decimals = len(digits.partition(".")[2]) + (3 if thousands else 0)
    return float(digits) / (1000 if thousands else 1), 10.0**-decimals


def verdict(entry: dict, text: str, printed: float, unit: float, computed: float) -> bool | None:
    """Whether the computed count is the printed one, rounded or cut off; None where nothing can be
    judged."""
    if entry.get("fitted") or math.isnan(computed):
        return None
    if "less than" in text:
        return computed < printed
    if "plus" in entry and "decoder" not in entry:  # that cell is rounded as well
        unit += number(plus_cell(entry))[1]
    return bool(stands_for(printed, unit, computed))


def value(entry: dict) -> float:
    """What an entry counts, in the unit of its measure."""
    if entry["measure"] == "together":
        bare = whole = amount({**entry, "slug": "full-finetune", "settings": {}, "head": False})
        backbone = 0 if entry["slug"] == "full-finetune" else bare
        return (backbone + len(class_counts(entry["tasks"])) * amount(entry)) / whole
    result = amount(entry)
    if "over" in entry:
        result /= amount({**kept(entry, *SHARED, "plus"), **entry["over"]})
    return 100 * result if entry["measure"] == "percent" else result


def amount(entry: dict) -> float:
    """Parameters in millions, or multiply-adds in billions, on average over the tasks."""
    operations = entry["measure"] == "operations"
    chosen = [count(entry["backbone"], entry["slug"], s, operations) for s in task_settings(entry)]
    result = sum(chosen) / len(chosen)
    if entry["head"]:
        classes = class_counts(entry["tasks"])
        result += (meta(entry["backbone"]).width + (not operations)) * sum(classes) / len(classes)
    if "decoder" in entry and not operations:
        result += decoder_count(entry["backbone"], entry["decoder"])
    result /= 1e9 if operations else 1e6
    if "minus" in entry:
        result -= amount({**kept(entry, *SHARED), **entry["minus"]})
    plus = "plus" in entry and "decoder" not in entry
    return result + (number(plus_cell(entry))[0] if plus else 0)


def kept(entry: dict, *names: str) -> dict:
    """What the entry of a divisor or a subtrahend begins with: defaults, and some fields of its own
    entry."""
    return {**DEFAULTS, **{name: entry[name] for name in names if name in entry}}


@remember
def count(backbone: str, slug: str, settings: tuple, operations: bool) -> int:
    """Trained parameters, or multiply-adds of one image, of a method on a backbone, without the
    head."""
    model = build_method(slug, meta(backbone), CLASSES, **dict(settings))
    if operations:
        return count_flops(model)["macs"] - meta(backbone).width * CLASSES
    return count_parameters(model)["method"]


@remember
def decoder_count(backbone: str, classes: int) -> int:
    """Parameters of SETR-PUP with its three auxiliary heads."""
    return sum(
        parameter.numel()
        for parameter in build_decoder(Decoder(), meta(backbone), classes).parameters()
    )


@remember
def meta(backbone: str) -> Backbone:
    """A backbone's shapes; its last block is whole, as the papers run it."""
    found = load_backbone(backbone, device="meta")
    found.trims = False
    return found


def class_counts(tasks: str) -> list[int]:
    """The class counts of a set of tasks."""
    if tasks in ("cifar-10", "imagenet"):
        return [10 if tasks == "cifar-10" else 1000]
    table = papers.published("ivpt.table-17")
    fgvc = table["description"].str.endswith("recognition")
    vtab = table["description"].isin(["Natural", "Specialized", "Structured"])
    return [
        int(count)
        for count in table["classes"][{"fgvc": fgvc, "vtab": vtab, "all": fgvc | vtab}[tasks]]
    ]


def task_settings(entry: dict) -> list[tuple]:
    """The settings of each task when they name N or k, else one for all; hashable, (name, value)
    pairs."""
    settings = {
        name: tuple(v) if isinstance(v, list) else v for name, v in entry["settings"].items()
    }
    if not {"N", "k"} & {v for v in settings.values() if isinstance(v, str)}:
        return [tuple(settings.items())]
    chosen = (
        papers.published(PER_TASK[entry["tasks"]])
        .set_index("hyper_parameter")
        .drop(columns="doubt")
    )
    return [
        tuple(
            (name, int(chosen.loc[v, task]) if v in ("N", "k") else v)
            for name, v in settings.items()
        )
        for task in chosen.columns
    ]


def plus_cell(entry: dict) -> str:
    """The printed cell that stands for the parts that are not of this package."""
    plus = entry["plus"]
    return printed_cells(plus["source"]).loc[plus["row"], plus["column"]]


def setting(name: str, value) -> str:
    """A method's setting in words: "50 prompt tokens", "blocks 0, 1, 2", "rank 10"."""
    if isinstance(value, list):
        return f"{name}s {', '.join(map(str, value))}"
    words = name.replace("_", " ")
    return f"{value} {words}" if words.endswith("tokens") else f"{words} {value}"


def reading(entry: dict) -> str:
    """What was counted, in words, and the note."""
    note = str(entry.get("note", "")).strip()
    if "slug" not in entry:
        return note or "Not a method of this package."
    settings = "".join(f", {setting(name, value)}" for name, value in entry["settings"].items())
    head = TASKS[entry["tasks"]] if entry["head"] else "no head"
    head = f"SETR-PUP with {entry['decoder']} classes" if "decoder" in entry else head
    fitted = "; fitted, because not stated" if entry.get("fitted") else ""
    return f"{names()[entry['slug']]}{settings}; {head}{fitted}. {note}".strip()
