"""What the YAML files of `data_manifests/` must agree on with each other and with the code, beyond their schemas."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from . import manifests, schemas
from .errors import BadInput
from .validation import against
from .wording import Fault, refusal


def known(path: tuple, kind: str, given: str, allowed: Iterable[str], key: str | None = None) -> Iterable[Fault]:
    """A fault where a name is none of those allowed."""
    allowed = list(dict.fromkeys(allowed))
    if given not in allowed:
        yield Fault(path, refusal(kind, given, allowed), key)


def said(path: tuple, function, *given) -> Iterable[Fault]:
    """A fault where a function refuses what it is given, in its words."""
    try:
        function(*given)
    except BadInput as error:
        yield Fault(path, str(error))


def tasks(content: dict, file: Path) -> Iterable[Fault]:
    """A task is drawn by its name, in as many classes as are named."""
    from . import drawing, targets

    drawn = {name: classes for name, (classes, _) in (drawing.DRAWERS | targets.DRAWERS).items()} | {"digits": 10}
    for name, entry in content["embedded"].items():
        path = ("embedded", name)
        yield from known(("embedded",), "drawing", name, drawn, name)
        if len(entry["classes"]) != drawn.get(name, len(entry["classes"])):
            text = f"{len(entry['classes'])} names are given; write {drawn[name]}, one for each class."
            yield Fault((*path, "classes"), text)
        if name == "digits" and sum(entry["splits"]) != 1797:
            text = f"{sum(entry['splits'])} images are split; write three numbers that add up to 1797."
            yield Fault((*path, "splits"), text)


def backbones(content: dict, file: Path) -> Iterable[Fault]:
    """Sizes fit each other; timm says it in a traceback."""
    for name, entry in content["embedded"].items():
        path, size, given = ("embedded", name, "timm_kwargs"), entry["image_size"], entry["timm_kwargs"]
        if entry["timm_class"] == "VisionTransformer":
            if given["img_size"] != size:
                yield Fault((*path, "img_size"), f"{given['img_size']} is given; write {size}, as in image_size.")
            if given["img_size"] % given["patch_size"]:
                text = f"{given['patch_size']} is given; write a divisor of img_size, {size}."
                yield Fault((*path, "patch_size"), text)
            if given["embed_dim"] % given["num_heads"]:
                text = f"{given['num_heads']} is given; write a divisor of embed_dim, {given['embed_dim']}."
                yield Fault((*path, "num_heads"), text)


def recipes(content: dict, file: Path) -> Iterable[Fault]:
    """Each value is one that `Recipe` takes, and rates by block are as many as an embedded backbone has blocks."""
    from .tuning import Recipe

    depths: dict[str, set] = {"vit": set(), "resnet": set()}
    for entry in manifests.load_yaml(file.parent / "backbones.yaml")["embedded"].values():
        given = entry["timm_kwargs"]
        family, depth = ("vit", given["depth"]) if "depth" in given else ("resnet", sum(given["layers"]))
        depths[family].add(depth)
    for name, recipe in content.items():
        groups = [((name, part), recipe.get(part, {})) for part in ("common", "fine")]
        for part in ("vit", "resnet"):
            groups += [((name, part, slug), entry) for slug, entry in recipe.get(part, {}).items()]
        for path, entry in groups:
            for field, value in entry.items():
                if field != "resize" and value is not None:
                    yield from said((*path, field), lambda one: Recipe(**one), {field: value})
        for family, rates in recipe.get("ap_rates", {}).get("by_block", {}).items():
            if len(rates) not in depths[family]:
                text = f"{len(rates)} rates are given; write one for each block, {sorted(depths[family])} of them."
                yield Fault((name, "ap_rates", "by_block", family), text)


def method_settings(path: tuple, slug: str, given: dict, counts: tuple, more: tuple = ()) -> Iterable[Fault]:
    """Settings are those of the method, of their types; `counts` may stand for whole numbers, `more` are other keys."""
    yield from against(schemas.mapping({}, schemas.settings(slug, *counts) | dict.fromkeys(more, {})), given, path)


def studies(content: dict, file: Path) -> Iterable[Fault]:
    """Parts are played, rates are the benchmark's, settings are the methods'."""
    found = content["studies"]
    yield from played_parts(content["profiles"], found)
    variants = found["benchmark"]["variants"]
    more = ("method", "rate_of", "scratch")
    for name, study in found.items():
        path = ("studies", name)
        if not study["variants"] and "blocks" not in study:
            yield Fault((*path, "variants"), "nothing is given; write at least one variant.")
        rates = [((*path, "rate_of"), study.get("rate_of", True))]
        rates += [((*path, "variants", v, "rate_of"), one.get("rate_of", True)) for v, one in study["variants"].items()]
        for place, rate_of in rates:
            if rate_of is not True:
                yield from known(place, "variant of the benchmark", rate_of, [*variants, "none"])
        for variant, given in study["variants"].items():
            yield from method_settings((*path, "variants", variant), given["method"], given, ("deep", "shallow"), more)


def played_parts(profiles: dict, found: dict) -> Iterable[Fault]:
    """Studies and profiles name the same parts.

    A profile may lack a backbone's part, so that its runs are left out there; but some profile has it, and each part of
    a profile is named by some study. The parts of tasks are in every profile.
    """
    for kind, keys in (("backbones", ("backbones",)), ("tasks", ("tasks", "prepared_on"))):
        named = [(("studies", study, key), part) for study, entry in found.items() for key in keys if key in entry
                 for part in (entry[key] if isinstance(entry[key], list) else [entry[key]])]  # fmt: skip
        played = [part for profile in profiles.values() for part in profile[kind]]
        times = Counter(part for _, part in named)
        # a name that one study has and no profile is the study's mistake; one that several have, a profile's
        alone = [f for path, part in named if times[part] == 1 for f in known(path, "part", part, played)]
        yield from alone
        for name, profile in profiles.items() if not alone else ():
            path = ("profiles", name, kind)
            unused = [f for part in profile[kind] for f in known(path, "part that no study names,", part, times, part)]
            yield from unused
            if kind == "tasks" and not unused:
                missing = [part for part in times if part not in profile[kind]]
                yield from (Fault(path, f"{part!r} is missing, a part that studies name; add it.") for part in missing)
        if kind == "backbones":
            yield from (f for path, part in named for f in known(path, "part", part, played))


def notebooks(content: dict, file: Path) -> Iterable[Fault]:
    """A notebook exists, and what it shows are artifacts that no other shows."""
    there = [path.stem for path in (file.parents[1] / "notebooks").glob("*.py")]
    artifacts, shown = set(manifests.artifacts().index), {}
    for name, entry in content.items():
        yield from known((), "notebook", name, there, name)
        for place, id in enumerate(entry["artifacts"]):
            path = (name, "artifacts", place)
            yield from known(path, "artifact", id, artifacts)
            if id in shown:
                yield Fault(path, f"{id!r} is given to {shown[id]} already; delete one.")
            shown[id] = name


def claims(content: list, file: Path) -> Iterable[Fault]:
    """Claims are of the paper's artifacts, and named after them, each once."""
    table, seen = manifests.artifacts(), set()
    artifacts = set(table.index[table["paper"] == file.parent.name])
    for place, claim in enumerate(content):
        if claim["artifact"] not in artifacts:
            text = refusal("artifact of this paper", claim["artifact"], artifacts).split(" Allowed:")[0]
            yield Fault((place, "artifact"), f"{text} Write a known artifact, from artifacts.csv.")
        elif not claim["id"].startswith(claim["artifact"] + "."):
            yield Fault((place, "id"), f"{claim['id']!r} is given; write '{claim['artifact']}.<short slug>'.")
        if claim["id"] in seen:
            yield Fault((place, "id"), f"{claim['id']!r} is given twice; rename one.")
        seen.add(claim["id"])


def names(content: dict, file: Path) -> Iterable[Fault]:
    """Tables and their columns exist."""
    for table, parts in content["tables"].items():
        try:
            columns = [*manifests.published(table).columns]
        except BadInput as error:
            yield Fault(("tables",), str(error), table)
            continue
        for place, part in enumerate(parts if isinstance(parts, list) else [parts]):
            path = ("tables", table, place) if isinstance(parts, list) else ("tables", table)
            for key, column in part.get("rows", {}).items():
                yield from known((*path, "rows", key), "column", column, columns)
            for column in part.get("where", {}):
                yield from known((*path, "where"), "column", column, columns, column)
            ((dimension, wanted),) = part["columns"].items()
            path = (*path, "columns", dimension)
            if isinstance(wanted, dict):
                for column in wanted:
                    yield from known(path, "column", column, columns, column)
            else:
                for at, text in enumerate(wanted):
                    yield from column_faults((*path, at), text, columns)


def column_faults(path: tuple, text: str, columns: list[str]) -> Iterable[Fault]:
    """The columns of "A", "A, B" or "first .. last" exist."""
    for part in [text] if text in columns else text.replace(" .. ", ", ").split(","):
        yield from known(path, "column", part.strip(), columns)


def counts(content: list, file: Path) -> Iterable[Fault]:
    """Tables, their columns and rows exist, and settings are the methods'."""
    from .counts import of_source, printed_cells

    for place, group in enumerate(content):
        rows: set[str] = set()
        for at, source in enumerate(group["sources"]):
            for field in ("column", "suffix"):
                if isinstance(group.get(field), dict):
                    for key in group[field]:
                        yield from known((place, field), "source", key, group["sources"], key)
            if not source.endswith(".prose"):
                yield from said((place, "sources", at), manifests.artifact, source)
            try:
                table, prose = group.get("table", source), group.get("table", source).endswith(".prose")
                columns = ["id", "where", "value"] if prose else manifests.published(table).columns
                key = "id" if prose else group.get("key", "method")
                yield from known((place, "key") if "key" in group else (place,), "column", key, columns)
                yield from known((place, "column"), "column", of_source(group["column"], source), columns)
                for name in group.get("where", {}):
                    yield from known((place, "where"), "column", name, columns, name)
                if key in columns:
                    rows |= set(printed_cells(table, key).index)
            except BadInput as error:
                yield Fault((place, "table") if "table" in group else (place, "sources", at), str(error))
        shared = {key: group[key] for key in ("slug", "settings") if key in group}
        for name, entry in group["rows"].items():
            yield from known((place, "rows"), "row", name, rows, name)
            path = (place, "rows", name)
            yield from entry_faults(path, shared | entry)
            for key in ("over", "minus"):
                yield from entry_faults((*path, key), entry.get(key, {}))


def entry_faults(path: tuple, given: dict) -> Iterable[Fault]:
    """The settings of something that is counted."""
    if "settings" not in given:
        return
    if "slug" not in given:
        yield Fault(path, "settings without a slug; name the method that they are of.")
    else:
        yield from method_settings((*path, "settings"), given["slug"], given["settings"], ("N", "k"))


def lost(content: dict, file: Path) -> Iterable[Fault]:
    """A table that is lost has no cells here."""
    for name in content:
        if (file.parent / f"{name}.csv").exists():
            yield Fault((), f"{name}.csv holds its cells; delete one of the two.", name)


def audit(content: dict, file: Path) -> Iterable[Fault]:
    """Tables of means and gains exist, with their columns; ids are given once. References are followed when used."""
    for part in ("means", "gains"):
        for place, rule in enumerate(content.get(part, ())):
            path = (part, place)
            try:
                columns = [*manifests.published(rule["table"]).columns]
            except BadInput as error:
                yield Fault((*path, "table"), str(error))
                continue
            for key in ("column", "of", "columns", "within"):
                texts = rule.get(key, ())
                for text in [texts] if isinstance(texts, str) else texts:
                    yield from column_faults((*path, key), text, columns)
            for column in rule.get("where", {}):
                yield from known((*path, "where"), "column", column, columns, column)
    for part in ("statements", "settings"):
        seen = set()
        for place, rule in enumerate(content.get(part, ())):
            if rule["id"] in seen:
                yield Fault((part, place, "id"), f"{rule['id']!r} is given twice; rename one.")
            seen.add(rule["id"])


CHECKS = {f"{check.__name__}.yaml": check for check in (
    tasks, backbones, recipes, studies, notebooks, claims, names, counts, lost, audit)}  # fmt: skip
