"""A method's code as a page shows it, folded: without imports and settings, and a line that runs
it."""

import ast
import html
import inspect
import re
from types import ModuleType

from IPython.display import HTML, display
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from visprompt.methods import base, method_class, prompts
from visprompt.models.backbones import Backbone
from visprompt.models.blocks import Hooks, vit_block
from visprompt.paths import PACKAGE
from visprompt.records import Record

IMPORTS = (ast.Import, ast.ImportFrom)
# Pieces that stay in the colour of the text: all but keywords, strings and comments. Their marks
# would be two thirds of a box's bytes.
PLAIN = re.compile(r'<span class="(?![ksc])\w+">([^<]*)</span>')


def method_source(module: ModuleType) -> str:
    """The code of a method's module without its docstring, imports and `Settings`."""
    text = inspect.getsource(module)
    nodes = [
        node
        for node in ast.parse(text).body
        if not isinstance(node, (*IMPORTS, ast.Expr)) and getattr(node, "name", "") != "Settings"
    ]
    return "\n\n".join(with_comments(text.splitlines(), node) for node in nodes)


def with_comments(lines: list[str], node: ast.stmt) -> str:
    """The lines of a statement with its decorators and the comments right above it."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) - 1
    while first and lines[first - 1].startswith("#"):
        first -= 1
    return "\n".join(lines[first : node.end_lineno])


def fold(title: str, *codes: str) -> str:
    """A box that opens to pieces of highlighted code; `title` may hold HTML."""
    body = "".join(highlight(code, PythonLexer(), HtmlFormatter()) for code in codes)
    body = PLAIN.sub(r"\1", body)
    return f'<div class="vp-code"><details><summary>{title}</summary>{body}</details></div>'


def example(slug: str, record: Record) -> str:
    """Lines that build a method on the shapes of a ViT-B/16, and what they print, as `record`
    says."""
    chosen = record.settings
    printed = {name: record.values[name] for name in ("method", "head", "total")}
    return (
        f"import visprompt as vp\n\n"
        f'backbone = vp.load_backbone("{chosen["backbone"]}", device="meta")\n'
        f'model = vp.build_method("{slug}", backbone, {chosen["classes"]})\n'
        f"vp.count_parameters(model)  # {printed}\n"
    )


def shared_source(slug: str) -> str:
    """The code that a method inherits from the classes of prompts; "" where it has none of it."""
    ancestors = inspect.getmro(method_class(slug))
    shared = [kind for kind in (prompts.Shallow, prompts.Deep) if kind in ancestors]
    return "\n\n".join(inspect.getsource(kind) for kind in shared)


def show_method(slug: str, record: Record) -> None:
    """Display a method's code, folded, that which it inherits, and lines that run it with what
    they print."""
    module = inspect.getmodule(method_class(slug))
    code, shared = method_source(module), shared_source(slug)
    place = inspect.getfile(module).removeprefix(f"{PACKAGE.parent}/")
    lines = len(code.splitlines())
    title = f"The code of the method: {lines} lines of <code>{html.escape(place)}</code>"
    if shared:
        title += f", and {len(shared.splitlines())} that it inherits"
        shared = f"# Inherited, from visprompt/methods/prompts.py\n{shared}"
    display(HTML(fold(title, code, *filter(None, [shared]), example(slug, record))))


def show_loop() -> None:
    """Display the block loop, a block, and what a method may change, folded."""
    for title, things in {
        "The loop over the blocks": [Backbone.run],
        "A block of a ViT": [vit_block],
        "What a method may change: the hooks, with their defaults": [
            Hooks,
            base.Method,
        ],
        "What methods with prompts share": [prompts.Shallow, prompts.Deep],
    }.items():
        code = "\n\n".join(inspect.cleandoc("\n" + inspect.getsource(thing)) for thing in things)
        display(HTML(fold(title, code)))
