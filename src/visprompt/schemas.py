"""What each YAML file of `data_manifests/` may hold, as JSON Schemas (Draft 2020-12), by the file's name.

Names that the code knows, such as methods, their settings and the fields of a recipe, are taken from there; therefore
the schemas are built when they are first needed.
"""

import functools
import sys
import types
import typing
from dataclasses import fields

TEXT = {"type": "string", "pattern": r"\S", "description": "a text"}
FLAG = {"type": "boolean"}
COUNT = {"type": "integer", "minimum": 1}
SHARE = {"type": "number", "minimum": 0, "maximum": 1}
NUMBER = {"type": "number"}
CLAIM_NUMBERS = {"published": NUMBER, "margin": NUMBER, "tolerance": {"type": "number", "minimum": 0}}
RANGES = {  # of the fields of a recipe that Recipe does not check itself
    "learning_rate": {"type": ["number", "null"]},  # null: the method's own
    "weight_decay": {"type": "number", "minimum": 0},
    "cache_gib": {"type": "number", "minimum": 0},
}
TYPES = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}


def mapping(required: dict, optional: dict | None = None, **more) -> dict:
    """A mapping with these keys and no others."""
    return {"type": "object", "properties": required | (optional or {}), "required": list(required),
            "additionalProperties": False, **more}  # fmt: skip


def named(value: dict, least: int = 1) -> dict:
    """A mapping whose keys are free names."""
    return {"type": "object", "additionalProperties": value, "properties": {}, "minProperties": least}


def listed(item: dict, least: int = 1, most: int | None = None, **more) -> dict:
    """A list of `least` to `most` of these."""
    return {"type": "array", "items": item, "minItems": least, **({} if most is None else {"maxItems": most}), **more}


def one_of(words, title: str = "") -> dict:
    """One of some words; `title` is what they are called."""
    return {"enum": list(words), **({"title": title} if title else {})}


def either(*kinds: dict) -> dict:
    """What fits one of several schemas."""
    return {"anyOf": list(kinds)}


def of_hint(hint: object) -> dict:
    """The schema of an annotation: scalars, `X | None`, `tuple[X, ...]` and unions of these."""
    parts = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    lists = [typing.get_args(part)[0] for part in parts if typing.get_origin(part) is tuple]
    kinds = [TYPES[part] for part in parts if part in TYPES] + ["array"] * bool(lists)
    return {"type": kinds if len(kinds) > 1 else kinds[0], **({"items": of_hint(lists[0])} if lists else {})}


@functools.cache
def settings(slug: str, *counts: str) -> dict:
    """Schema by name of a method's settings; `counts` are words that may stand for a whole number."""
    from .methods import method_class

    hints = typing.get_type_hints(sys.modules[method_class(slug).__module__].Settings)
    found = {name: of_hint(hint) for name, hint in hints.items()}
    return {name: either(schema, one_of(counts)) if counts and "integer" in schema["type"] else schema
            for name, schema in found.items()}  # fmt: skip


def method() -> dict:
    """The slug of a method."""
    from .methods import METHODS

    return one_of(METHODS, "method")


def tasks() -> dict:
    """`tasks.yaml`."""
    from .drawing import SIZE

    entry = {"group": one_of(["natural", "specialized", "structured", "fine"]), "nature": TEXT,
             "classes": listed(TEXT, 2, uniqueItems=True), "splits": listed(COUNT, 3, 3),
             "seed": {"type": "integer", "minimum": 0},
             "image_size": {"const": SIZE, "description": f"{SIZE}, the size of the drawings"},
             "source": TEXT, "licence": TEXT, "purpose": TEXT}  # fmt: skip
    return mapping({"embedded": named(mapping(entry, {"pool": COUNT}))})


def backbones() -> dict:
    """`backbones.yaml`."""
    vit = mapping(
        {name: COUNT for name in ("img_size", "patch_size", "embed_dim", "depth", "num_heads")},
        {"class_token": FLAG, "global_pool": one_of(["token", "avg", "max"]), "fc_norm": FLAG},
    )
    resnet = mapping(
        {"layers": listed(COUNT, 4, 4), "channels": listed(COUNT, 4, 4)},
        {"stem_type": one_of(["", "deep", "deep_tiered"]), "stem_width": COUNT},
    )
    positive = {"type": "number", "exclusiveMinimum": 0}
    entry = {"timm_class": one_of(["VisionTransformer", "ResNet"]), "timm_kwargs": {"type": "object"},
             "image_size": COUNT, "mean": listed(NUMBER, 3, 3), "std": listed(positive, 3, 3), "weights": TEXT,
             "log": TEXT, "source": TEXT, "recipe": TEXT, "licence": TEXT}  # fmt: skip
    whole = mapping(entry, {"source_accuracy": SHARE, "probe_accuracy": SHARE})
    whole["allOf"] = [
        {"if": {"properties": {"timm_class": {"const": kind}}}, "then": {"properties": {"timm_kwargs": schema}}}
        for kind, schema in (("VisionTransformer", vit), ("ResNet", resnet))
    ]
    file = {"timm": TEXT, "mean": listed(NUMBER, 3, 3), "std": listed(positive, 3, 3)}
    return mapping({"embedded": named(whole), "files": named(mapping(file), 0)})


def recipes() -> dict:
    """`recipes.yaml`."""
    from .methods import METHODS
    from .tasks import RESIZES
    from .tuning import Recipe

    known = {f.name: RANGES.get(f.name) or of_hint(f.type) for f in fields(Recipe)}
    methods = mapping({}, {slug: mapping({}, known) for slug in METHODS}, minProperties=1)
    rates = {"type": "number", "exclusiveMinimum": 0}
    ap = {"by_block": mapping({}, {"vit": listed(rates), "resnet": listed(rates)}), "by_variant": named(rates)}
    recipe = mapping({"common": mapping({}, known), "vit": methods},
                     {"resnet": methods, "fine": mapping({}, known | {"resize": one_of(RESIZES)}),
                      "ap_rates": mapping({}, ap)})  # fmt: skip
    return named(recipe) | {"required": ["quick", "paper"]}


def studies() -> dict:
    """`studies.yaml`; the settings of a variant are in `references`."""
    from .results import PROFILES

    profile = mapping({"prompts": mapping({"deep": COUNT, "shallow": COUNT}), "backbones": named(TEXT),
                       "tasks": named(listed(TEXT, uniqueItems=True))})  # fmt: skip
    rate_of = {"enum": [True], "description": "true, none or the name of a variant of the benchmark"}
    rate_of = either(rate_of, TEXT) | {"description": rate_of["description"]}
    variant = {"type": "object", "properties": {"method": method(), "rate_of": rate_of, "scratch": FLAG},
               "required": ["method"]}  # fmt: skip
    study = mapping(
        {"title": TEXT, "backbones": listed(TEXT, uniqueItems=True), "tasks": TEXT, "variants": named(variant, 0)},
        {"rate_of": rate_of, "blocks": method(), "prepared_on": TEXT,
         "train_sizes": mapping({}, {name: listed(COUNT, uniqueItems=True) for name in PROFILES})},
    )  # fmt: skip
    return mapping({"profiles": mapping({name: profile for name in PROFILES}),
                    "studies": named(study) | {"required": ["benchmark"]}})  # fmt: skip


def notebooks() -> dict:
    """`notebooks.yaml`."""
    from .results import PROFILES

    slices = mapping({}, {name: named(named({}, 0), 0) for name in PROFILES})
    return named(mapping({"title": TEXT, "artifacts": listed(TEXT, 0, uniqueItems=True), "slices": slices}))


def papers() -> dict:
    """`papers/papers.yaml`."""
    return named(mapping({"title": TEXT, "short": TEXT, "subject": TEXT}))


def lost() -> dict:
    """`papers/<paper>/lost.yaml`."""
    return named(TEXT)


def claims() -> dict:
    """`papers/<paper>/claims.yaml`."""
    from .manifests import DIRECTIONS, EVIDENCE

    text = {name: TEXT for name in ("id", "artifact", "where", "metric", "why")}
    evidence = listed(one_of(EVIDENCE, "evidence"), uniqueItems=True)
    claim = mapping({**text, "direction": one_of(DIRECTIONS), "settles": evidence}, {"printed": TEXT, **CLAIM_NUMBERS})
    needs = [
        (["equal"], ["published", "tolerance"], "direction 'equal' needs published and tolerance as numbers."),
        (["greater", "less"], ["margin"], "direction 'greater' or 'less' needs a margin; write 0 for none."),
    ]
    claim["allOf"] = [
        {"if": {"properties": {"direction": {"enum": given}}, "required": ["direction"]},
         "then": {"required": needed, "errorMessage": message}}
        for given, needed, message in needs
    ]  # fmt: skip
    return listed(claim, 0)


def names() -> dict:
    """`papers/names.yaml`."""
    from .auditing.quoted import DIMENSIONS

    def by_dimension(value: dict, **more) -> dict:
        return mapping({}, {name: value for name in DIMENSIONS}, **more)

    columns = {"type": ["array", "object"], "minItems": 1, "items": TEXT, "minProperties": 1,
               "additionalProperties": TEXT, "properties": {},
               "description": "a list of columns, or a mapping from columns to names"}  # fmt: skip
    one = by_dimension(columns, minProperties=1, maxProperties=1, description="a mapping with one dimension")
    part = mapping(
        {"columns": one},
        {"fixed": by_dimension(TEXT), "rows": by_dimension(TEXT), "where": named({"type": "string"}),
         "rename": named(TEXT)},
    )  # fmt: skip
    parts = {"type": ["object", "array"], "if": {"type": "array"}, "then": listed(part), "else": part,
             "description": "a mapping, or a list of them"}  # fmt: skip
    return mapping({"names": by_dimension(named(listed(TEXT, 0))), "tables": named(parts)})


def counts() -> dict:
    """`papers/counts.yaml`; the settings of an entry are in `references`."""
    from .counts import TASKS, UNITS

    entry = {"slug": method(), "settings": {"type": "object"}, "backbone": TEXT, "tasks": one_of(TASKS), "head": FLAG,
             "measure": one_of(UNITS), "fitted": FLAG, "decimals": {"type": "integer", "minimum": 0}, "note": TEXT,
             "plus": mapping({"source": TEXT, "row": TEXT, "column": TEXT})}  # fmt: skip
    part = mapping({"slug": entry["slug"]}, {name: entry[name] for name in ("settings", "backbone", "tasks", "head")})
    entry |= {"over": part, "minus": part}
    by_source = {"type": ["string", "object"], "additionalProperties": TEXT, "properties": {}, "pattern": r"\S",
                 "description": "a text, or a mapping from sources to texts"}  # fmt: skip
    group = mapping(
        {"sources": listed(TEXT, uniqueItems=True), "column": by_source, "rows": named(mapping({}, entry))},
        {"table": TEXT, "key": TEXT, "where": named(TEXT), "prefix": TEXT, "suffix": by_source, **entry},
    )
    return listed(group)


def audit() -> dict:
    """`papers/<paper>/audit.yaml`."""
    from .auditing.findings import SENSES
    from .auditing.operations import OPERATIONS

    kinds = "a number, a reference 'artifact | row | column' or an operation"
    operand, flags = {"$ref": "#/$defs/operand", "description": kinds}, dict.fromkeys(("lower", "ties", "lowest"), FLAG)
    reference = {"type": ["number", "string", "object"], "pattern": r" \| .*\S", "description": kinds}
    among = mapping({"row": operand, "among": listed(operand)}, flags)
    pair, some = listed(operand, 2, 2), {"type": ["number", "string", "array", "object"], "if": {"type": "array"},
                                         "then": listed(operand), "else": operand}  # fmt: skip
    pairs = ("difference", "relative", "share", "ratio", "wins", "largest", "smallest", "range")
    special = {"value": operand, "best": among, "rank": among, **dict.fromkeys(pairs, pair)}
    operations = {name: special.get(name, some) for name in OPERATIONS}
    one = {"oneOf": [{"required": [name]} for name in operations]}
    nested = mapping({}, operations | flags)
    message = f"write one of {', '.join(operations)}, once."
    cell = {"type": "string", "pattern": reference["pattern"], "description": "a reference 'artifact | row | column'"}
    texts = {"type": ["string", "array"], "items": {"type": "string"}, "minItems": 1}
    statement = mapping(
        {"id": TEXT, "what": TEXT},
        {"prose": TEXT, "cell": TEXT, "artifact": TEXT, "sense": one_of(SENSES), "scale": NUMBER, "claim": TEXT,
         **flags, **operations},
        allOf=[{**one, "errorMessage": f"write prose or cell, and {message.removeprefix('write ')}"},
               {"oneOf": [{"required": ["prose"]}, {"required": ["cell"]}],
                "errorMessage": "write the printed number as prose or as cell, one of the two."}],
    )  # fmt: skip
    columns = texts | {"description": "a column, or a list of them"}
    parts = {
        "means": listed(mapping({"table": TEXT, "column": TEXT, "of": columns}, {"where": named(texts)}), 0),
        "gains": listed(mapping({"table": TEXT, "columns": columns, "over": TEXT}, {"within": TEXT}), 0),
        "statements": listed(statement, 0),
        "settings": listed(mapping({"id": TEXT, "what": TEXT, "places": listed(cell, 2), "artifact": TEXT}), 0),
        "readings": named(TEXT, 0),
    }
    whole = {"if": {"type": "object"}, "then": {"allOf": [nested, {**one, "errorMessage": message}]}}
    return mapping({}, parts, **{"$defs": {"operand": reference | whole}})


SCHEMAS = {f"{make.__name__}.yaml": functools.cache(make) for make in (
    tasks, backbones, recipes, studies, notebooks, papers, lost, claims, names, counts, audit)}  # fmt: skip
