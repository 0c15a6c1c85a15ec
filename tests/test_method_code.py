"""Each method's page shows its code, and lines that do what they say."""

import ast
import html
import inspect
import re

import pytest

from visbook.chapters import method_code, methods
from visprompt.methods import METHODS, method_class


@pytest.mark.parametrize("slug", METHODS)
def test_the_lines_below_a_method_print_what_they_say(slug):
    code, printed = method_code.example(slug, methods.cost(slug)).split("  # ")
    lines = code.splitlines()
    names = {}
    exec("\n".join(lines[:-1]), names)
    found = eval(lines[-1], names)
    assert ast.literal_eval(printed) == found


@pytest.mark.parametrize("slug", METHODS)
def test_what_is_shown_is_the_method_without_imports_and_settings(slug):
    module = inspect.getmodule(method_class(slug))
    shown, whole = method_code.method_source(module), inspect.getsource(module)
    names = {getattr(node, "name", "") for node in ast.parse(shown).body}
    assert "Method" in names and "Settings" not in names and "import " not in shown
    assert all(line in whole for line in shown.splitlines())


def test_the_forward_pass_of_prompts_is_shown_where_it_is_inherited():
    """VPT-Deep adds its keys and values in the class that it inherits from; LoRA has no prompts."""
    shown = method_code.shared_source("vpt-deep")
    assert "def extra(" in shown and "class Shallow" not in shown
    assert "class Shallow" in method_code.shared_source("vpt-shallow")
    assert method_code.shared_source("lora") == ""


def test_a_box_has_the_code_letter_by_letter():
    code = 'X = "a < b"  # why\n\n\ndef f(x: int) -> str:\n    return f"{x} & {X!r}"\n'
    box = method_code.fold("title", code)
    shown = html.unescape(re.sub("<[^>]+>", "", box.split("</summary>")[1]))
    assert shown.rstrip() == code.rstrip() and '<span class="n"' not in box and '"k"' in box


def test_a_comment_stays_with_its_statement():
    lines = ["import os", "# why", "@wraps", "def f():", "    return 1", "", "X = 2"]
    tree = ast.parse("\n".join(lines)).body
    assert method_code.with_comments(lines, tree[1]) == "\n".join(lines[1:5])
