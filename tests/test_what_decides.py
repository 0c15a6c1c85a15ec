"""What decides a value is in its record: code in every form it can take, files, variables, networks
and a user's own classes."""

import copy
import functools
import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from conftest import small_vit, tiny_task
from torch import nn
from torch.nn import functional as F

import visprompt as vp
from visprompt import records
from visprompt.methods.base import TunedModel
from visprompt.records import code_objects, lists, source, store, watch, watching

# name -> a module of the package, what in it is changed, and into what; `value` is what a run calls
CASES = {
    "entry set": ("T = {'a': 1}\nT['b'] = 2\n\ndef value():\n    return T['b']\n", "= 2", "= 3"),
    "appended": ("T = [1]\nT.append(2)\n\ndef value():\n    return sum(T)\n", "(2)", "(3)"),
    "extended in a loop": (
        "T = []\nfor i in range(3):\n    T.append(i)\n\ndef value():\n    return sum(T)\n",
        "(3)",
        "(4)",
    ),
    "added in place": ("T = [1]\nT += [2]\n\ndef value():\n    return sum(T)\n", "[2]", "[3]"),
    "entry deleted": (
        "T = {'a': 1, 'b': 2}\ndel T['b']\n\ndef value():\n    return len(T)\n",
        "del T['b']",
        "T['c'] = 1",
    ),
    "set by setattr": (
        "class K:\n    x = 1\nsetattr(K, 'x', 2)\n\ndef value():\n    return K.x\n",
        "2)",
        "3)",
    ),
    "attribute of a class set": (
        "class K:\n    x = 1\nK.x = 2\n\ndef value():\n    return K.x\n",
        "= 2",
        "= 3",
    ),
    "read through the class": (
        "class K:\n    x = 1\n\ndef value():\n    return K.x\n",
        "x = 1",
        "x = 2",
    ),
    "inherited": (
        "class A:\n    x = 1\nclass K(A):\n    pass\n\ndef value():\n    return K.x\n",
        "x = 1",
        "x = 2",
    ),
    "plain class made": (
        "class K:\n    x = 1\n\ndef value():\n    return K().x\n",
        "x = 1",
        "x = 2",
    ),
    "entry set in a class": (
        "class K:\n    t = {}\n    t['a'] = 1\n\ndef value():\n    return K.t['a']\n",
        "= 1",
        "= 2",
    ),
    "nested class": (
        "class K:\n    class L:\n        x = 1\n\ndef value():\n    return K.L.x\n",
        "x = 1",
        "x = 2",
    ),
    "enum": (
        "import enum\nclass K(enum.Enum):\n    A = 1\n\ndef value():\n    return K.A.value\n",
        "A = 1",
        "A = 2",
    ),
    "enum walked": (
        "import enum\nclass K(enum.IntEnum):\n    A = 1\n\ndef value():\n    return sum(K)\n",
        "A = 1",
        "A = 2",
    ),
    "named tuple": (
        "from typing import NamedTuple\nclass K(NamedTuple):\n    x: int = 1\n\ndef "
        "value():\n    return K().x\n",
        "= 1",
        "= 2",
    ),
    "dataclass": (
        "from dataclasses import dataclass\n@dataclass\nclass K:\n    x: int = 1\n\ndef "
        "value():\n    return K().x\n",
        "= 1",
        "= 2",
    ),
    "dataclass made by name": (
        "from dataclasses import dataclass\n@dataclass\nclass K:\n    x: int = 1\nKINDS = [K]\n\n"
        "def value():\n    kind = KINDS[0]\n    return kind(**{}).x\n",
        "= 1",
        "= 2",
    ),
    "factory": (
        "from dataclasses import dataclass, field\n@dataclass\nclass K:\n    x: list = "
        "field(default_factory=lambda: [1])\n\n"
        "def value():\n    return K().x[0]\n",
        "[1]",
        "[2]",
    ),
    "dataclass in a constant": (
        "from dataclasses import dataclass\n@dataclass\nclass K:\n    x: int = 1\nC = "
        "K()\n\ndef value():\n    return C.x\n",
        "= 1",
        "= 2",
    ),
    "method in a constant": (
        "class K:\n    def f(self):\n        return 1\nC = K().f()\n\ndef value():\n    return C\n",
        "return 1",
        "return 2",
    ),
    "function in a constant": (
        "def g():\n    return 1\ndef f():\n    return g()\nC = f()\n\ndef value():\n    return C\n",
        "return 1",
        "return 2",
    ),
    "warm cache": (
        "import functools\ndef g():\n    return 1\n@functools.cache\ndef f():\n    return "
        "g()\nf()\n\ndef value():\n    return f()\n",
        "return 1",
        "return 2",
    ),
    "warm property": (
        "import functools\nclass K:\n    def own(self):\n        return self.p\n    "
        "@functools.cached_property\n    def p(self):\n"
        "        return 1\nC = K()\nC.own()\n\ndef value():\n    return C.own()\n",
        "return 1",
        "return 2",
    ),
    "default of an argument": (
        "N = 1\ndef f(x=N):\n    return x\n\ndef value():\n    return f()\n",
        "N = 1",
        "N = 2",
    ),
    "either of two": (
        "import sys\nif sys.argv:\n    N = 1\nelse:\n    N = 0\n\ndef value():\n    return N\n",
        "N = 1",
        "N = 2",
    ),
    "lambda": ("G = lambda x: x + 1\n\ndef value():\n    return G(1)\n", "x + 1", "x + 2"),
    "wrapping decorator": (
        "def d(f):\n    def w():\n        return f() + 1\n    return w\n@d\ndef g():\n    "
        "return 1\n\ndef value():\n    return g()\n",
        "+ 1",
        "+ 2",
    ),
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of one module in the place of the real one; gives a function that imports a text as
    that module."""
    monkeypatch.setattr(source, "PACKAGES", (tmp_path / "src" / "visprompt",))
    for module in (watch, code_objects):
        monkeypatch.setattr(module, "ROOTS", (f"{tmp_path}/src/visprompt/",))
    path = tmp_path / "src" / "visprompt" / "measure" / "hard.py"
    path.parent.mkdir(parents=True)

    def imported(text):
        path.write_text(text)
        source.forget()
        spec = importlib.util.spec_from_file_location("visprompt.measure.hard", path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    yield imported
    monkeypatch.undo()
    source.forget()
    code_objects.compiled.cache_clear()


@pytest.mark.parametrize("name", CASES)
def test_a_changed_value_outdates_in_whatever_form_it_is_written(package, name):
    text, before, after = CASES[name]
    code_objects.compiled.cache_clear()
    module = package(text)
    with watching() as seen:
        first = module.value()
    units = seen.units()
    assert lists.stands(units)
    head, _, tail = text.rpartition(before)
    changed = (
        package(head + after + tail)
        if name != "dataclass in a constant"
        else package(text.replace("= 1", "= 2"))
    )
    assert changed.value() != first, "the edit changes nothing, so this test shows nothing"
    assert not lists.stands(units)


HARMLESS = {
    "annotated variable": ("def value():\n    x = 1\n    return x\n", "x = 1", "x: int = 1"),
    "annotated attribute": (
        "class K:\n    x = 1\n\ndef value():\n    return K.x\n",
        "x = 1",
        "x: int = 1",
    ),
    "annotated constant": ("N = 1\n\ndef value():\n    return N\n", "N = 1", "N: int = 1"),
    "renamed variable": (
        "def value():\n    x = 1\n    return x + x\n",
        "x = 1\n    return x + x",
        "y = 1\n    return y + y",
    ),
    "renamed loop": ("def value():\n    return sum(i for i in (1, 2))\n", "i for i", "j for j"),
    "renamed argument of a lambda": (
        "G = lambda x: x + 1\n\ndef value():\n    return G(1)\n",
        "x: x",
        "y: y",
    ),
    "renamed inner function": (
        "def value():\n    def f():\n        return 1\n    return f()\n",
        "f():\n        return 1\n    return f()",
        "g():\n        return 1\n    return g()",
    ),
    "renamed error": (
        "def value():\n    try:\n        return 1\n    except OSError as e:\n        return e\n",
        "e:\n        return e",
        "why:\n        return why",
    ),
    "pass": ("def value():\n    return 1\n", "    return 1", "    pass\n    return 1"),
    "remark": ("def value():\n    return 1\n", "return 1", "return (1)  # one"),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_an_edit_that_changes_no_value_outdates_nothing(package, name):
    text, before, after = HARMLESS[name]
    code_objects.compiled.cache_clear()
    module = package(text)
    with watching() as seen:
        module.value()
    units = seen.units()
    package(text.replace(before, after))
    assert lists.stands(units)


def test_variables_that_change_places_are_another_function(package):
    texts = [f"def value():\n    a, b = 1, 2\n    return {words}\n" for words in ("a - b", "b - a")]
    hashes = set()
    for text in texts:
        package(text)
        hashes.add(source.hash_of(source.module("measure.hard"), "value"))
    assert len(hashes) == 2


def test_an_annotation_that_makes_a_field_of_a_dataclass_outdates(package):
    text = (
        "from dataclasses import dataclass\n@dataclass\nclass K:\n    x = 1\n\ndef "
        "value():\n    return K.x\n"
    )
    package(text)
    first = source.hash_of(source.module("measure.hard"), "K.x")
    package(text.replace("x = 1", "x: int = 1"))
    assert source.hash_of(source.module("measure.hard"), "K.x") != first


def test_a_renamed_unit_of_the_table_outdates_nothing(package, monkeypatch):
    text = "def helper():\n    return 1\n\ndef value():\n    return helper()\n"
    code_objects.compiled.cache_clear()
    module = package(text)
    with watching() as seen:
        module.value()
    units = seen.units()
    package(text.replace("helper", "one"))
    assert not lists.stands(units)
    monkeypatch.setitem(source.RENAMED, "measure.hard:one", "helper")
    source.forget()
    assert lists.stands(units)


READS = textwrap.dedent(
    """
    import os
    from pathlib import Path
    from visprompt.manifests import Entries, load_yaml
    from visprompt.paths import ROOT

    def value():
        return {what}
    """
)


@pytest.mark.parametrize(
    "what, place",
    [
        ("(ROOT / 'table.txt').read_text()", "file:table.txt"),
        ("open(ROOT / 'table.txt', 'rb').read()", "file:table.txt"),
        ("load_yaml(ROOT / 'data_manifests' / 'x.yaml')", "file:data_manifests/x.yaml"),
        (
            "Entries(ROOT / 'data_manifests' / 'x.yaml', 'some')['a']",
            "file:data_manifests/x.yaml#some.a",
        ),
        (
            "list(Entries(ROOT / 'data_manifests' / 'x.yaml', 'some').values())",
            "file:data_manifests/x.yaml#some",
        ),
        ("os.environ.get('TOY_SIZE')", "variable:TOY_SIZE"),
        ("os.environ['TOY_SIZE']", "variable:TOY_SIZE"),
        ("os.getenv('TOY_SIZE')", "variable:TOY_SIZE"),
    ],
)
def test_what_a_run_reads_is_in_its_list(package, monkeypatch, tmp_path, what, place):
    (tmp_path / "data_manifests").mkdir()
    table, manifest = tmp_path / "table.txt", tmp_path / "data_manifests" / "x.yaml"
    table.write_text("1")
    manifest.write_text("some: {a: 1, b: 2}\n")
    for module in (watch.paths, lists):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(watch.paths, "MANIFESTS", tmp_path / "data_manifests")
    monkeypatch.setattr("visprompt.manifests.validated", plain_yaml)
    # not even the real package, which is elsewhere here
    monkeypatch.setattr(source, "is_users", lambda file: False)
    monkeypatch.setenv("TOY_SIZE", "1")
    code_objects.compiled.cache_clear()
    module = package(READS.format(what=what))
    for _ in range(2):  # cold and warm
        with watching() as seen:
            module.value()
        units = seen.units()
        assert place in units and lists.stands(units)
    manifest.write_text("some: {a: 1, b: 2}  # a remark\n")
    assert lists.stands(units)
    manifest.write_text("some: {a: 1, b: 3}\n")
    assert lists.stands(units) == (
        place not in ("file:data_manifests/x.yaml", "file:data_manifests/x.yaml#some")
    )
    manifest.write_text("some: {a: 3, b: 3}\n")
    table.write_text("2")
    monkeypatch.setenv("TOY_SIZE", "2")
    assert not lists.stands(units)


def test_a_file_that_changes_while_a_run_goes_on_counts_as_it_was_read(
    package, monkeypatch, tmp_path
):
    for module in (watch.paths, lists):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    (tmp_path / "table.txt").write_text("1")
    module = package(READS.format(what="(ROOT / 'table.txt').read_text()"))
    code_objects.compiled.cache_clear()
    with watching() as seen:
        module.value()
        (tmp_path / "table.txt").write_text("2")
    assert not lists.stands(seen.units())


def plain_yaml(path):
    import yaml

    from visprompt.manifests.validation import Source

    return Source(
        *[
            yaml.safe_load(Path(path).read_text()) if name == "content" else None
            for name in Source._fields
        ]
    )


# --- networks, methods and heads that differ from what was built


@pytest.fixture(scope="module")
def trained():
    """A network that carries something, so that a change of it shows in the accuracy; and a task it
    knows."""
    return vp.load_backbone("vit_nano_patch4_24", "pretrained"), vp.load_task(
        "position", train_size=64
    )


RECIPE = vp.Recipe(epochs=2, learning_rate=0.1)


def changed_networks():
    def eps(b):
        for module in b.modules():
            if isinstance(module, nn.LayerNorm):
                module.eps = 1.0

    def relu(b):
        for block in b.blocks:
            block.mlp.act = nn.ReLU()

    def scale(b):
        for block in b.blocks:
            block.attn.scale = 5.0

    def heads(b):
        for block in b.blocks:
            block.attn.num_heads, block.attn.head_dim = (
                1,
                block.attn.num_heads * block.attn.head_dim,
            )

    return {
        "activation": relu,
        "eps": eps,
        "scale": scale,
        "heads": heads,
        "hook": lambda b: b.blocks[1].norm2.register_forward_hook(
            lambda module, given, out: out * 3
        ),
        "hook before": lambda b: b.blocks[1].norm2.register_forward_pre_hook(
            lambda module, given: (given[0].square(),)
        ),
        "forward": lambda b: setattr(b.blocks[1].norm2, "forward", lambda x: torch.zeros_like(x)),
        "layer scale": lambda b: setattr(b.blocks[1], "ls1", nn.Hardtanh(-0.01, 0.01)),
        "method of the backbone": lambda b: setattr(
            b, "pool", lambda x, method=None: 3 * x.mean(1)
        ),
    }


@pytest.mark.parametrize("what", changed_networks())
@pytest.mark.parametrize("slug", ["linear-probe", "vpt-deep"])
def test_a_network_changed_otherwise_than_in_its_weights_is_another_one(
    stores, trained, what, slug
):
    plain, task = trained
    settings = {"prompt_tokens": 2} if slug == "vpt-deep" else {}
    first = vp.tune(vp.build_method(slug, plain, task.classes, **settings), task, RECIPE)
    other = copy.deepcopy(plain)
    changed_networks()[what](other)
    second = vp.tune(vp.build_method(slug, other, task.classes, **settings), task, RECIPE)
    assert (
        second.id != first.id
        and "changed" in second.weights
        and second.values["loss"] != first.values["loss"]
    )
    # not through shared activations
    true = vp.fit(vp.build_method(slug, other, task.classes, **settings), task, RECIPE)
    assert true["loss"] == second.values["loss"]
    assert vp.tune(vp.build_method(slug, plain, task.classes, **settings), task, RECIPE) == first


def test_the_kept_fingerprints_are_those_of_networks_as_they_are_loaded():
    for name, known in (
        ("vit_nano_patch4_24", "pretrained"),
        ("swin_micro_patch3_24", "pretrained"),
    ):
        backbone = vp.load_backbone(name, known)
        before = backbone.fingerprint
        backbone(torch.zeros(1, 3, 24, 24))
        backbone.shapes()
        assert (
            backbone.fingerprint == before == copy.deepcopy(backbone).fingerprint
            and "changed" not in before
        )


def test_more_classes_than_the_task_has_are_another_run(stores):
    backbone, task = small_vit(), tiny_task()
    few, many = (
        vp.tune(vp.build_method("vpt-deep", backbone, n, prompt_tokens=2), task, RECIPE)
        for n in (3, 30)
    )
    assert (
        few.values["parameters"]["head"] == 3 * 17 and many.values["parameters"]["head"] == 30 * 17
    )
    # no kept record has another key
    assert "num_classes" not in few.settings and many.settings["num_classes"] == 30


def other_loss(features, labels):
    return 3 * features.square().mean()


@pytest.mark.parametrize(
    "where", ["training_loss", "classify", "method.loss", "class of the method", "hook on the head"]
)
def test_a_method_or_model_that_was_changed_by_hand_is_another_run(stores, where):
    backbone, task = small_vit(), tiny_task()

    def built():
        return vp.build_method("vpt-deep", backbone, 3, prompt_tokens=2)

    first, model = vp.tune(built(), task, RECIPE), built()
    if where == "training_loss":
        model.training_loss = lambda features, labels: F.cross_entropy(
            3 * model.classify(features), labels
        )
    elif where == "classify":
        plain = model.classify
        model.classify = lambda features: 3 * plain(features)
    elif where == "method.loss":
        model.method.loss = other_loss
    elif where == "hook on the head":
        model.head.register_forward_hook(lambda module, given, out: 3 * out)
    else:
        model = TunedModel(backbone, "vpt-deep", Louder(backbone, model.method.settings, 3), 3)
    second = vp.tune(model, task, RECIPE)
    assert second.key != first.key and second.values["loss"] != first.values["loss"]
    assert vp.tune(built(), task, RECIPE) == first


class Louder(type(vp.build_method("vpt-deep", small_vit(), 3).method)):
    def loss(self, features, labels):
        return other_loss(features, labels)


OWN = """
import sys
sys.path.insert(0, sys.argv[1])
from conftest import small_vit, tiny_task
import visprompt as vp
from visprompt.methods.base import TunedModel
from visprompt.methods.vpt_deep import Method

class Mine(Method):
    def loss(self, features, labels):
        return 2.0 * features.square().mean()

backbone, task = small_vit(), tiny_task()
settings = vp.build_method("vpt-deep", backbone, 3, prompt_tokens=2).method.settings
for _ in range(2):
    model = TunedModel(backbone, "mine", Mine(backbone, settings, 3), 3)
    record = vp.tune(model, task, vp.Recipe(epochs=2, learning_rate=0.1))
    print(record.id, record.values["loss"])
"""


@pytest.mark.parametrize("how", ["file", "typed in", "cell"])
def test_a_class_of_a_users_own_is_watched_or_its_record_is_not_used_again(tmp_path, how):
    def runs(text):
        if how == "file":
            (tmp_path / "mine.py").write_text(text)
            words = ["mine.py"]
        # as a notebook's kernel runs it: a file of its own, that no file of the tree holds
        elif how == "cell":
            cell = f"import linecache\ntext = {text!r}\nname = '/tmp/ipykernel_1/7.py'\n"
            cell += "linecache.cache[name] = (len(text), None, text.splitlines(True), name)\n"
            (tmp_path / "kernel.py").write_text(f"{cell}exec(compile(text, name, 'exec'))")
            words = ["kernel.py"]
        else:
            words = ["-c", text]
        done = subprocess.run(
            [sys.executable, *words, str(Path(__file__).parent)],
            cwd=tmp_path,
            env={
                "VISPROMPT_ROOT": str(tmp_path),
                "PYTHONPATH": str(source.PACKAGES[0].parent),
                "OMP_NUM_THREADS": "1",
                "PATH": "",
            },
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return [line.split(" ", 1) for line in done.stdout.splitlines()]

    (tmp_path / "data_manifests").symlink_to(vp.paths.MANIFESTS)
    (first, loss), (again, _) = runs(OWN)
    (second, other), _ = runs(OWN.replace("2.0 *", "9.0 *"))
    assert other != loss and second != first
    if how == "file":
        assert again == first


def test_defaults_of_settings_that_a_run_builds_by_itself_are_in_its_list(stores):
    """As in records of kind count, cost or bench, whose settings name a method and not all of its
    settings."""
    backbone = small_vit()
    record = records.recorded("count", {"method": "lora"}, functools.partial(counted, backbone))
    units = store.read_code(stores[0] / "code" / f"{record.code}.json")
    assert "methods.lora:Settings.rank" in units and "methods.lora:Settings.targets" in units
    given = records.recorded(
        "count", {"method": "lora", "rank": 4}, functools.partial(counted, backbone, rank=4)
    )
    assert "methods.lora:Settings.rank" not in store.read_code(
        stores[0] / "code" / f"{given.code}.json"
    )


def counted(backbone, **settings):
    return vp.count_parameters(vp.build_method("lora", backbone, 3, **settings))


def test_the_test_images_that_were_named_right_give_the_accuracy(stores):
    backbone, task = small_vit(), tiny_task()
    record = vp.tune(vp.build_method("linear-probe", backbone, 3), task, RECIPE)
    assert record.right.dtype == bool and len(record.right) == len(task.test[1])
    assert round(100 * record.right.mean(), 4) == record.values["test"]
    path = stores[0] / store.place(record.kind, record.settings, record.key)
    from dataclasses import replace

    bits = store.test_images.packed(~record.right)
    path.write_text(
        store.as_text(store.with_id(replace(record, values={**record.values, "right": bits})))
    )
    with pytest.raises(vp.BadInput, match="bits of test images"):
        store.read_record(path)


@pytest.mark.parametrize(
    "file, users",
    [
        ("/home/me/train.py", True),
        ("/tmp/torchinductor_me/mk/cmk6gkatnd4v.py", False),  # what torch.compile writes
        ("/home/me/.triton/cache/x/launcher.py", False),
        ("/elsewhere/compiled/ab/cab.py", False),
        ("/opt/env/lib/python3.12/site-packages/timm/layers/mlp.py", False),
        (functools.__file__, False),
        (store.__file__, False),
    ],
)
def test_whose_code_a_file_holds(monkeypatch, file, users):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/elsewhere/compiled")
    assert source.is_users(file) == users
