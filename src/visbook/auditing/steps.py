"""Lines of proofs, computed at a point that meets the paper's conditions: what a line prints, and
what the lines before it give."""

import ast
import math
import operator
from collections.abc import Mapping

from visprompt import papers
from visprompt.errors import BadInput, choose

from .findings import EXACT, Finding

FUNCTIONS = {
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "gamma": math.gamma,
    "tail": lambda x: math.erfc(x / math.sqrt(2)) / 2,  # of a standard Gaussian, above x
}
MAKES = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
TWICE = 2.0  # an order holds if the quotient of both sides changes by less than this
# What a step says of the computed side against the printed one, at its point.
AT = {
    "equal": lambda computed, printed: math.isclose(computed, printed, rel_tol=EXACT),
    "at least": lambda computed, printed: computed >= printed - EXACT,
    "at most": lambda computed, printed: computed <= printed + EXACT,
    "above": operator.gt,
    "below": operator.lt,
}
# The same up to a constant: of the factor by which the quotient changes from the first point to the
# last.
ALONG = {
    "of the order": lambda factor: 1 / TWICE <= factor <= TWICE,
    "at least of the order": lambda factor: factor >= 1 / TWICE,
    "at most of the order": lambda factor: factor <= TWICE,
}
SAID = {"equal": "equal to", **{sense: f"{sense} of" for sense in ALONG}}


def value(text: str | float, names: Mapping[str, float]) -> float:
    """The value of an expression such as "exp(-x)/(1 + x**2)"; of a comparison 1.0 or 0.0.

    Raises:
        BadInput: it has another name, another sign, or no value.
    """

    def of(node: ast.AST) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return float(number)
            case ast.Name(id=name):
                choose(f"name in {text!r}:", name, names)
                return names[name]
            case ast.Call(func=ast.Name(id=name), args=[one], keywords=[]):
                choose(f"function in {text!r}:", name, FUNCTIONS)
                return FUNCTIONS[name](of(one))
            case ast.UnaryOp(op=op, operand=one) if type(op) in MAKES:
                return MAKES[type(op)](of(one))
            case ast.BinOp(left=one, op=op, right=other) if type(op) in MAKES:
                return MAKES[type(op)](of(one), of(other))
            case ast.Compare(left=one, ops=[op], comparators=[other]) if type(op) in MAKES:
                return float(MAKES[type(op)](of(one), of(other)))
        raise BadInput(f"{text!r}: write numbers, names, + - * / ** and {', '.join(FUNCTIONS)}.")

    try:
        return float(of(ast.parse(str(text), mode="eval").body))
    except (SyntaxError, ArithmeticError, ValueError, TypeError) as error:
        raise BadInput(f"{text!r} has no value: {error}.") from None


def sides(rule: dict, point: Mapping[str, float]) -> tuple[float, float]:
    """What a step prints and what is computed, at a point that meets its conditions.

    Raises:
        BadInput: the point does not meet them.
    """
    names: dict[str, float] = {}
    for name, given in (rule["given"] | dict(point)).items():
        names[name] = value(given, names)
    for condition in rule.get("provided", ()):
        if not value(condition, names):
            raise BadInput(f"step {rule['id']}: its point does not meet {condition!r}.")
    return value(rule["printed"], names), value(rule["computed"], names)


def step(paper: str, rule: dict) -> Finding:
    """A line of a proof against what the lines before it give.

    At one point both sides are compared; `along` has two, between which the quotient of two sides
    of the same order may not change much.
    """
    id = f"{paper}.step.{rule['id']}"
    choose(f"artifact in {id}:", rule["artifact"], papers.artifacts().index)
    sense, along = rule.get("sense", "equal"), rule.get("along", {})
    choose(f"sense in {id}:", sense, ALONG if along else AT)
    points = [{name: ends[at] for name, ends in along.items()} for at in (0, 1) if along] or [{}]
    found = [sides(rule, point) for point in points]
    if along:
        (first, last) = ((computed / printed) for printed, computed in found)
        right = ALONG[sense](last / first)
    else:
        ((printed, computed),) = found
        right = AT[sense](computed, printed)
    shown, again = (", then ".join(f"{pair[side]:.5g}" for pair in found) for side in (0, 1))
    return Finding(
        id,
        paper,
        rule["artifact"],
        rule["where"],
        "step",
        f"{rule['what']}; should be {SAID.get(sense, sense)} what is printed, at {at_point(rule)}",
        shown,
        again,
        "agrees" if right else "disagrees",
        estimate=found[0][1],
        quote=f"{rule['line']} ({rule['where']})",
        marks=(),
    )


def at_point(rule: dict) -> str:
    """The point of a step in words; its names that are computed are left out."""
    ends = rule.get("along", {})
    numbers = {name: f"{n:g}" for name, n in rule["given"].items() if not isinstance(n, str)}
    numbers |= {name: f"{first:g}, then {last:g}" for name, (first, last) in ends.items()}
    return "; ".join(f"{name} = {number}" for name, number in numbers.items())
