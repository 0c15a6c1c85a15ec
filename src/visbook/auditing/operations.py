"""What a rule of the audit computes from printed cells."""

from visprompt.errors import BadInput

from . import cells
from .cells import Amount, look_up
from .counts import meta


def evaluate(rule: dict | str | float) -> Amount | list[Amount] | None:
    """What a rule computes: an amount, two of them for "range", None where a cell prints no number.

    Raises:
        BadInput: a reference that leads nowhere.
    """
    if isinstance(rule, (int, float)):
        return Amount(float(rule))
    if isinstance(rule, str):
        found = [cell.amount for cell in look_up(rule)]
        return None if None in found else found[0] if len(found) == 1 else found
    name = next(name for name in OPERATIONS if name in rule)
    given = rule[name]
    if name in TEXTS:
        return TEXTS[name](given)
    if isinstance(given, dict):
        parts = [evaluate(given["row"]), *map(evaluate, given["among"])]
        rule = {**given, **rule}
    else:
        parts = [evaluate(part) for part in (given if isinstance(given, list) else [given])]
    if any(part is None for part in parts):
        return None
    if name in SINGLE and any(isinstance(part, list) for part in parts):
        raise BadInput(f"{name} is of single cells; name one column, or take its mean or sum.")
    try:
        return OPERATIONS[name](parts, rule)
    except ZeroDivisionError:
        raise BadInput(f"{name} divides by a cell that is zero; name another.") from None


def flat(parts: list) -> list[Amount]:
    """Amounts and lists of amounts as one list."""
    return [amount for part in parts for amount in (part if isinstance(part, list) else [part])]


def paired(parts: list) -> list[tuple[float, ...]]:
    """The values of several rows, column by column."""
    rows = [
        [amount.value for amount in (part if isinstance(part, list) else [part])] for part in parts
    ]
    if len({len(row) for row in rows}) != 1:
        raise BadInput(
            f"rows of {', '.join(str(len(row)) for row in rows)} columns cannot be paired."
        )
    return list(zip(*rows, strict=True))


def differences(parts: list) -> list[Amount]:
    """The differences of two rows, column by column."""
    paired(parts)  # rows of unlike length are refused
    a, b = (part if isinstance(part, list) else [part] for part in parts)
    return [x - y for x, y in zip(a, b, strict=True)]


def product(amounts: list[Amount]) -> Amount:
    """The product of at least one amount."""
    result = amounts[0]
    for amount in amounts[1:]:
        result = result * amount
    return result


def weighted(parts: list) -> Amount:
    """The mean of several cells, weighted by as many others."""
    paired(parts)
    values, weights = parts
    return cells.total(
        [value.times(weight.value) for value, weight in zip(values, weights, strict=True)]
    ).times(1 / sum(weight.value for weight in weights))


def by_value(amount: Amount) -> float:
    """The key to sort amounts by."""
    return amount.value


def best(parts: list, rule: dict) -> Amount:
    """Columns in which the first row is best."""
    pick = min if rule.get("lower") else max
    return Amount(sum(column[0] == pick(column) for column in paired(parts)))


def rank(parts: list, rule: dict) -> Amount:
    """The place of the first among all; 1 is the highest, or the lowest."""
    (values, *more) = paired(parts)
    if more:
        raise BadInput("rank is of single cells; name one column.")
    better = [v < values[0] if rule.get("lowest") else v > values[0] for v in values]
    return Amount(1 + sum(better))


def wins(parts: list, rule: dict) -> Amount:
    """Columns in which the first row is above the second, or below it."""
    sign = -1 if rule.get("lower") else 1
    return Amount(
        sum(sign * (a - b) > 0 or (rule.get("ties", False) and a == b) for a, b in paired(parts))
    )


def items(reference: str) -> Amount:
    """How many things a text lists, set apart by commas."""
    return Amount(float(sum(len(cell.text.split(",")) for cell in look_up(reference))))


def blocks(backbone: str) -> Amount:
    """How many blocks a backbone of timm has."""
    return Amount(float(len(meta(backbone).shapes())))


SINGLE = ("difference", "relative", "share", "ratio")
TEXTS = {"items": items, "blocks": blocks}
OPERATIONS = {
    "value": lambda parts, rule: parts[0],
    "difference": lambda parts, rule: parts[0] - parts[1],
    "relative": lambda parts, rule: ((parts[0] / parts[1]) - Amount(1.0)).times(100),
    "share": lambda parts, rule: (parts[0] / parts[1]).times(100),
    "ratio": lambda parts, rule: parts[0] / parts[1],
    "mean": lambda parts, rule: cells.mean(flat(parts)),
    "sum": lambda parts, rule: cells.total(flat(parts)),
    "product": lambda parts, rule: product(flat(parts)),
    "weighted": lambda parts, rule: weighted(parts),
    "wins": wins,
    "best": best,
    "rank": rank,
    "largest": lambda parts, rule: max(differences(parts), key=by_value),
    "smallest": lambda parts, rule: min(differences(parts), key=by_value),
    "range": lambda parts, rule: [pick(differences(parts), key=by_value) for pick in (min, max)],
    "largest_of": lambda parts, rule: max(flat(parts), key=by_value),
    "smallest_of": lambda parts, rule: min(flat(parts), key=by_value),
    **TEXTS,
}
