"""The normal form of code: what it does, whatever its layout, and the names that it uses.

Comments, docstrings, layout, annotations, error messages and names of local variables are left out.
Names from these packages are replaced by the names where they are defined, so that moving a
function or renaming a module changes nothing.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

LAYOUT = {
    "type_comment",
    "type_params",
    "returns",
    "annotation",
    "kind",
    "ctx",
    "simple",
    "type_ignores",
}
BOUND_BY = {
    ast.ExceptHandler: "name",
    ast.MatchAs: "name",
    ast.MatchStar: "name",
    ast.MatchMapping: "rest",
}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# where one of these is named, names of variables are kept
READ_BY_NAME = {"locals", "vars", "eval", "exec"}
MUTATORS = set(
    "append extend insert update setdefault add remove discard pop popitem clear sort "
    "reverse".split()
)


@dataclass
class NormalForm:
    """Normal forms of the nodes of one module.

    Attributes:
        meaning: name -> the name where it is defined, or None if the module does not import it.
        is_module: whether a name is a module of these packages, as in `prompts.Deep`.
        uses: names, and attributes of names, that were read without being bound there, and whether
            each is called.
    """

    meaning: Callable[[str], str | None]
    is_module: Callable[[str], bool]
    uses: list[tuple[ast.AST, bool]] = field(default_factory=list)

    def of(self, node, scopes: tuple["Scope", ...] = (), called: bool = False):
        """A node as nested lists."""
        if isinstance(node, list):
            return [self.of(part, scopes) for part in node if not is_silent(part)]
        if not isinstance(node, ast.AST):
            return [type(node).__name__, repr(node)]
        if isinstance(node, ast.Name):
            return self.name(node, scopes, called)
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and label(node.value.id, scopes) is None
        ):
            self.uses.append((node, called))
            if self.is_module(node.value.id):
                self.uses.append((node.value, False))
                return ["Name", node.attr]
        if isinstance(node, ast.Raise):  # which error, not its words
            quiet = NormalForm(self.meaning, self.is_module)
            return [
                "Raise",
                quiet.of(node.exc.func if isinstance(node.exc, ast.Call) else node.exc, scopes),
            ]
        if isinstance(node, ast.Assert):
            return ["Assert", self.of(node.test, scopes)]
        if isinstance(node, ast.AnnAssign):
            return [
                "Assign",
                ["targets", self.of([node.target], scopes)],
                ["value", self.of(node.value, scopes)],
            ]
        if is_choice(node):
            return self.of(node.args[1], scopes)  # what was given comes back, or an error
        if isinstance(node, ast.Call):
            words = [["func", self.of(node.func, scopes, called=True)]]
            return ["Call", *words, *self.fields(node, scopes, leave_out={"func"})]
        if isinstance(node, COMPREHENSIONS) or isinstance(node, FUNCTIONS):
            return self.inner(node, scopes)
        if isinstance(node, ast.arg):
            return ["arg", label(node.arg, scopes) or node.arg]
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            return [type(node).__name__, [label(name, scopes) or name for name in node.names]]
        bound = BOUND_BY.get(type(node)) or (
            "name" if isinstance(node, ast.ClassDef) and scopes else None
        )
        words = (
            []
            if bound is None
            else [[bound, label(getattr(node, bound), scopes) or getattr(node, bound)]]
        )
        return [type(node).__name__, *words, *self.fields(node, scopes, leave_out={bound})]

    def name(self, node: ast.Name, scopes, called: bool) -> list:
        """A local variable's number, or what another name means."""
        local = label(node.id, scopes)
        if local is not None:
            return ["Name", local]
        if not isinstance(node.ctx, ast.Store):
            self.uses.append((node, called))
        return ["Name", self.meaning(node.id) or node.id]

    def fields(self, node: ast.AST, scopes, leave_out: set) -> list:
        """The fields of a node, without empty ones and layout."""
        named = [
            (name, value)
            for name, value in ast.iter_fields(node)
            if name not in LAYOUT and name not in leave_out
        ]
        return [
            [name, self.of(value, scopes)]
            for name, value in named
            if value is not None and value != []
        ]

    def inner(self, node: Any, scopes=(), named: bool = True) -> list:
        """A function or comprehension, its variables numbered by first occurrence.

        Args:
            named: whether the function's own name counts, as inside a unit.
        """
        scope = Scope(keeps=reads_by_name(node))
        inside = (*scopes, scope)
        if isinstance(node, COMPREHENSIONS):
            for part in node.generators:
                scope.bind(*stored(part.target))
            first = [["first", self.of(node.generators[0].iter, scopes)]]
            rest = [["generators", [["of", self.of(g.iter, inside)] for g in node.generators[1:]]]]
            targets = [
                [
                    "targets",
                    [
                        [self.of(g.target, inside), self.of(g.ifs, inside), g.is_async]
                        for g in node.generators
                    ],
                ]
            ]
            return [
                type(node).__name__,
                *first,
                *rest,
                *targets,
                *self.fields(node, inside, leave_out={"generators"}),
            ]
        arguments = node.args
        every = [
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            arguments.vararg,
            arguments.kwarg,
        ]
        parameters = [part.arg for part in every if part is not None]
        if isinstance(node, ast.Lambda):
            scope.bind(*parameters)
        else:
            scope.keep(*parameters)  # a caller may name them
            scope.bind(*(name for name in bound_in(node) if name not in parameters))
        outside = [self.of(getattr(node, "decorator_list", []), scopes)]
        outside += [self.of([*arguments.defaults, *filter(None, arguments.kw_defaults)], scopes)]
        names = [
            self.of(getattr(arguments, kind), inside)
            for kind in ("posonlyargs", "args", "kwonlyargs")
        ]
        names += [self.of(part, inside) for part in (arguments.vararg, arguments.kwarg)]
        names += [[part is None for part in arguments.kw_defaults]]
        own = (
            [label(node.name, scopes) or node.name]
            if named and not isinstance(node, ast.Lambda)
            else []
        )
        return [type(node).__name__, own, outside, names, self.of(node.body, inside)]


@dataclass
class Scope:
    """The names that a function or comprehension binds: name -> label, None before first use."""

    keeps: bool = False
    labels: dict[str, str | None] = field(default_factory=dict)
    met: int = 0

    def bind(self, *names: str) -> None:
        """Replace names by numbers."""
        self.labels |= {name: name if self.keeps else None for name in names}

    def keep(self, *names: str) -> None:
        """Keep names as they are."""
        self.labels |= {name: name for name in names}

    def label(self, name: str) -> str:
        """The label of a name in this scope."""
        if self.labels[name] is None:
            self.met += 1
            self.labels[name] = f"variable {self.met}"
        return self.labels[name]


def label(name: str | None, scopes: tuple[Scope, ...]) -> str | None:
    """The label of a name in the innermost scope that binds it, with its depth; None if unbound."""
    for depth in reversed(range(len(scopes))):
        if name in scopes[depth].labels:
            text = scopes[depth].label(name)
            return text if text == name else f"{text} of {depth}"
    return None


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes in a function's own scope, and the heads of nested scopes."""
    for part in ast.iter_child_nodes(node):
        yield part
        if isinstance(part, FUNCTIONS):
            continue
        if isinstance(part, (ast.ClassDef, *COMPREHENSIONS)):
            # these bind outside
            yield from (n for n in ast.walk(part) if isinstance(n, ast.NamedExpr))
            continue
        yield from own_nodes(part)


def bound_in(node: ast.AST) -> list[str]:
    """Local variables of a function, without parameters and imports."""
    names, elsewhere = [], set()
    for part in own_nodes(node):
        if isinstance(part, (ast.Global, ast.Nonlocal)):
            elsewhere |= set(part.names)
        elif isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            names.append(part.id)
        elif isinstance(part, ast.NamedExpr):
            names.append(part.target.id)
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(part.name)
        elif type(part) in BOUND_BY and getattr(part, BOUND_BY[type(part)]):
            names.append(getattr(part, BOUND_BY[type(part)]))
    return [name for name in dict.fromkeys(names) if name not in elsewhere]


def stored(node: ast.AST) -> list[str]:
    """The names that a target binds."""
    return [
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    ]


def reads_by_name(node: ast.AST) -> bool:
    """Whether a function may read its variables by name (`locals`, `eval`)."""
    return any(isinstance(part, ast.Name) and part.id in READ_BY_NAME for part in ast.walk(node))


def is_silent(node) -> bool:
    """Whether a statement has no effect: docstring, import, bare annotation, `pass`."""
    text = (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
    annotation = isinstance(node, ast.AnnAssign) and node.value is None
    return text or annotation or isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass))


def is_choice(node) -> bool:
    """Whether a node is `errors.choose(what, given, allowed)`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "choose"
        and len(node.args) > 1
    )


def touched(node: ast.stmt) -> list[str]:
    """Names that a statement outside functions binds, or whose object it changes in place."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    names = []
    for part in own_nodes(ast.Module([node], [])):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            names.append(part.id)
        elif isinstance(part, ast.NamedExpr):
            names.append(part.target.id)
        elif isinstance(part, (ast.FunctionDef, ast.ClassDef)):
            names.append(part.name)
        elif isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(
            part.ctx, ast.Load
        ):
            names += base_of(part)
        elif (
            isinstance(part, ast.Call)
            and isinstance(part.func, ast.Attribute)
            and part.func.attr in MUTATORS
        ):
            names += base_of(part.func)
        elif (
            isinstance(part, ast.Call)
            and isinstance(part.func, ast.Name)
            and part.func.id in ("setattr", "delattr")
        ):
            names += base_of(part.args[0]) if part.args else []
    return list(dict.fromkeys(names))


def base_of(node: ast.AST) -> list[str]:
    """`a` of `a.b[c].d`."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return [node.id] if isinstance(node, ast.Name) else []
