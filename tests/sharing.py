"""Files of records as a hostile sender would make them: what changes a file, by kind."""

import copy
import json
import random

from visbook.sharing import possible
from visbook.studies.from_record import plain
from visprompt.methods import settings_of
from visprompt.records import key_of, store, test_images
from visprompt.training.recipe import Recipe


def named_again(record: dict) -> dict:
    """The record with the key and the id that its content would have."""
    s = record["settings"]
    settings = s | {
        "method_settings": settings_of(s["method"], **plain(s["method_settings"])),
        "recipe": Recipe(**s["recipe"]),
    }
    record["key"] = key_of(record["kind"], settings, record["data"], record["weights"])
    record["id"] = store.digest(record)
    return record


def listed_again(content: dict, name: str, units: dict) -> None:
    """Put a changed list of code under its new name."""
    new = store.short_hash(units)
    content["code"][new] = units
    del content["code"][name]
    for record in content["records"]:
        if record["code"] == name:
            record["code"] = new
            named_again(record)


def forged(record: dict, rng: random.Random, points: float = 8.0) -> dict:
    """Accuracy, bits and curves edited together, so that all of it fits: a better run."""
    values = record["values"]
    bits = test_images.unpacked(values).copy()
    wrong = [place for place, right in enumerate(bits) if not right]
    bits[rng.sample(wrong, min(len(wrong), round(points * len(bits) / 100)))] = True
    values["right"] = test_images.packed(bits)
    values["test"] = round(100 * float(bits.mean()), 4)
    values["val_by_epoch"] = [min(100.0, one + points) for one in values["val_by_epoch"]]
    values["val"] = values["val_by_epoch"][-1]
    values["loss"] = [round(one * rng.uniform(0.97, 0.99), 6) for one in values["loss"]]
    return named_again(record)


def better(content, rng):
    one(content, rng)["values"]["test"] += rng.choice([0.1, 0.5, 1, 5])


def better_by_a_part(content, rng):
    one(content, rng)["values"]["test"] += 0.0371


def better_validation(content, rng):
    one(content, rng)["values"]["val"] += rng.choice([0.5, 1, 2.5])


def other_bits(content, rng):
    record = one(content, rng)
    bits = test_images.unpacked(record["values"]).copy()
    bits[rng.randrange(len(bits))] ^= True
    record["values"]["right"] = test_images.packed(bits)


def fewer_images(content, rng):
    record = one(content, rng)
    bits = test_images.unpacked(record["values"])[: -rng.randint(1, 300)]
    record["values"]["right"] = test_images.packed(bits)
    record["values"]["test"] = round(100 * float(bits.mean()), 4)


def other_seed(content, rng):
    """The run of one seed sent as that of another."""
    record = copy.deepcopy(one(content, rng))
    record["settings"]["seed"] += rng.randint(3, 1000)
    content["records"].append(named_again(record))


def seed_in_place_of_another(content, rng):
    a, b = pair(content, rng, lambda x, y: x["settings"]["method"] == y["settings"]["method"])
    b["values"] = copy.deepcopy(a["values"])


def swapped_methods(content, rng):
    a, b = pair(content, rng, lambda x, y: x["settings"]["method"] != y["settings"]["method"])
    a["values"], b["values"] = b["values"], a["values"]
    named_again(a)


def renamed_method(content, rng):
    record = one(content, rng)
    s = record["settings"]
    s["method"] = rng.choice(["bias", "norm-tune", "full-finetune"])
    s["method_settings"] = {}


def curve_longer(content, rng):
    values = one(content, rng)["values"]
    values["loss"].append(values["loss"][-1])


def curve_shorter(content, rng):
    values = one(content, rng)["values"]
    del values[rng.choice(["loss", "val_by_epoch"])][0]


def curve_edited(content, rng):
    values = one(content, rng)["values"]
    values["val_by_epoch"][rng.randrange(len(values["val_by_epoch"]))] += 0.123


def curve_not_finite(content, rng):
    record = one(content, rng)
    record["values"]["loss"][0] = rng.choice([float("nan"), float("inf"), 10**400])


def best_epoch(content, rng):
    """The best epoch reported in the place of the last."""
    record = one(content, rng)
    record["values"]["val"] = max(record["values"]["val_by_epoch"]) + 0.5


def parameters(content, rng):
    counts = one(content, rng)["values"]["parameters"]
    counts["method"] += 5
    counts["total"] += 5


def other_data(content, rng):
    one(content, rng)["data"] = "0123456789ab"


def other_weights(content, rng):
    one(content, rng)["weights"] = rng.choice(["0123456789ab", "random, seed 0"])


def other_task(content, rng):
    record = one(content, rng)
    record["settings"]["task"] = rng.choice(["texture", "my-cats", "../../etc/passwd"])


def other_rate(content, rng):
    """A copy under another learning rate."""
    record = copy.deepcopy(one(content, rng))
    record["settings"]["recipe"]["learning_rate"] = 0.3
    record["settings"]["recipe"]["head_rate"] = 0.3
    content["records"].append(named_again(record))


def impossible_recipe(content, rng):
    one(content, rng)["settings"]["recipe"][rng.choice(["epochs", "lr"])] = 5


def not_renamed(content, rng):
    """An edit by hand: the names of the record stay."""
    record = one(content, rng)
    place = rng.choice(["seconds", "peak_memory_mb", "date", "commit"])
    old = record[place]
    record[place] = (
        old + 1 if isinstance(old, float) else "2026-11-02" if place == "date" else "a" * 12
    )
    return "as it is"


def same_twice(content, rng):
    content["records"].append(one(content, rng))


def unknown_commit(content, rng):
    one(content, rng)["commit"] = rng.choice(["f" * 12, "0" * 12])


def future(content, rng):
    one(content, rng)["date"] = rng.choice(["2031-01-01", "1999-01-01", "soon", "2026-02-30"])


def changed_function(content, rng):
    name = rng.choice(sorted(content["code"]))
    units = dict(content["code"][name])
    units[rng.choice(sorted(units))] = "0123456789ab"
    listed_again(content, name, units)


def unknown_function(content, rng):
    name = rng.choice(sorted(content["code"]))
    bad = rng.choice(["training.loop:better", "outside cheat:fit", "file:../../etc/passwd"])
    listed_again(content, name, content["code"][name] | {bad: "0123456789ab"})


def function_left_out(content, rng):
    name = rng.choice(sorted(content["code"]))
    units = {place: said for place, said in content["code"][name].items() if ":fit" not in place}
    listed_again(content, name, units)


def list_under_another_name(content, rng):
    name = rng.choice(sorted(content["code"]))
    content["code"][name] = content["code"][name] | {"training.loop:fit": "0123456789ab"}


def no_list(content, rng):
    del content["code"][rng.choice(sorted(content["code"]))]


def more_fields(content, rng):
    record = one(content, rng)
    place = rng.choice([record, record["values"], record["settings"], record["about"], content])
    place[rng.choice(["picture", "path", "__class__", "host"])] = "x"


def fields_left_out(content, rng):
    record = one(content, rng)
    place = rng.choice([record["values"], record["settings"], record["about"]])
    del place[rng.choice(["right", "seed", "images"][:1] if "right" in place else [*place][:1])]


def other_types(content, rng):
    values = one(content, rng)["values"]
    values["test"] = rng.choice([str(values["test"]), True, None, [values["test"]], {}])


def markup(content, rng):
    text = rng.choice(["<script>alert(1)</script>", "<img src=x>", "a&b", "two\nlines", "\x1b[31m"])
    record = one(content, rng)
    where = rng.choice(["sender", "cpu", "data", "version"])
    if where == "sender":
        content["sender"][rng.choice(["name", "contact", "licence"])] = text
    elif where == "cpu":
        record["hardware"]["cpu"] = text
    elif where == "data":
        record["about"]["data"] = text
    else:
        record["versions"]["torch"] = text


def traversal(content, rng):
    text = rng.choice(["../../../etc", "/etc/passwd", "..\\..\\x", "a/../b"])
    record = one(content, rng)
    where = rng.choice(["code", "kind", "backbone", "sender", "about"])
    if where == "code":
        content["code"][text] = content["code"].pop(record["code"])
        record["code"] = text
    elif where == "sender":
        content["sender"]["name"] = text
    elif where == "about":
        record["about"]["data"] = text
    elif where == "kind":
        record["kind"] = text
    else:
        record["settings"]["backbone"] = text


def not_ours(content, rng):
    record = one(content, rng)
    how = rng.choice(["failed", "rehearsal", "carried", "kind"])
    if how == "failed":
        record["status"] = "failed"
    elif how == "kind":
        record["kind"] = "cost"
    elif how == "carried":
        record["carried"] = {"from": "0123456789ab"}
    else:
        record["about"]["rehearsal"] = "yes"


def bomb(content, rng):
    """Text that costs memory or depth where it is read."""
    whole = json.dumps(content)
    return rng.choice(
        [
            "[" * 200_000,
            '{"form": 1, "sender": ' + '{"a":' * 50_000 + "1" + "}" * 50_000 + "}",
            whole.replace('"form": 1', '"form": ' + "9" * 100_000),
            whole.replace('"form": 1', '"form": 1, "form": 1'),
            whole.replace('"form": 1', '"form": 1e999'),
            whole[: rng.randrange(len(whole))],
            "\x1f\x8b\x08" + whole,
            "",
            "null",
            json.dumps(content | {"records": content["records"][:1] * 20_001}),
        ]
    )


def one(content: dict, rng: random.Random) -> dict:
    """One of the records."""
    return rng.choice(content["records"])


def pair(content: dict, rng: random.Random, fits) -> tuple[dict, dict]:
    """Two of the records."""
    found = content["records"]
    pairs = [(a, b) for a in found for b in found if a is not b and fits(a, b)]
    return rng.choice(pairs)


KINDS = [
    *(better, better_by_a_part, better_validation, other_bits, fewer_images, other_seed),
    *(seed_in_place_of_another, swapped_methods, renamed_method, curve_longer, curve_shorter),
    *(curve_edited, curve_not_finite, best_epoch, parameters, other_data, other_weights),
    *(other_task, other_rate, impossible_recipe, not_renamed, same_twice, unknown_commit, future),
    *(changed_function, unknown_function, function_left_out, list_under_another_name, no_list),
    *(more_fields, fields_left_out, other_types, markup, traversal, not_ours, bomb),
]


def tampered(content: dict, kind, rng: random.Random) -> str:
    """The file with one change of a kind, all names made to fit where they can."""
    content = copy.deepcopy(content)
    before = [json.dumps(record) for record in content["records"]]
    text = kind(content, rng)
    if isinstance(text, str) and text != "as it is":
        return text
    for record, was in zip(content["records"], before, strict=False):
        if text is None and json.dumps(record) != was:
            try:
                named_again(record)
            except (KeyError, TypeError, ValueError):
                pass  # such a record has no names that fit
    return json.dumps(content)


__all__ = ["KINDS", "forged", "named_again", "possible", "tampered"]
