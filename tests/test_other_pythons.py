"""Later Pythons than the locked one: every source compiles there without a warning, and where one
with the packages is named (VISPROMPT_PYTHON), a fit leaves the record that it leaves here."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from visprompt.paths import ROOT

OTHER = os.environ.get("VISPROMPT_PYTHON")
COMPILE = """
import pathlib, sys, warnings
warnings.simplefilter("error")
for folder in sys.argv[1:]:
    for path in pathlib.Path(folder).rglob("*.py"):
        compile(path.read_text(encoding="utf-8"), str(path), "exec")
"""
FIT = """
import json, sys
import visprompt as vp
backbone = vp.load_backbone("vit_nano_patch4_24", "pretrained")
task = vp.load_task("position", train_size=40)
found = {}
for slug in ("linear-probe", "vpt-deep", "da-vpt", "e2vpt"):
    more = {"segments": 4} if slug == "e2vpt" else {}
    model = vp.build_method(slug, backbone, task.classes, **more)
    record = vp.tune(model, task, vp.Recipe(epochs=1))
    found[slug] = [record.key, record.code]
print(json.dumps(found))
"""
CALLS = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("calls", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
told = []

def called(frame):
    if frame.f_globals is not globals():
        return True
    told.append(frame.f_code.co_name)
    return frame.f_code.co_varnames[:1] != ("self",)

class One:
    def method(self):
        pass

def plain():
    pass

def both():
    plain()
    One().method()

sys.monitoring.use_tool_id(4, "another program")
calls = module.Monitoring(called, lambda code: None)
outer = calls.switch(True)
both(), both()
inner = calls.switch(True)  # sees anew what the outer one has seen
both()
off = calls.switch(False)
both()
calls.restore(off, True)
calls.restore(inner, True)
One().method()
calls.restore(outer, False)
both()
assert told == ["both", "plain", "method", "method", "both", "plain", "method", "method"], told
"""


def other_python(version):
    homes = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    found = str(homes[0]) if homes else shutil.which(f"python{version}")
    if found is None:
        pytest.skip(f"Python {version} is not installed")
    return found


@pytest.mark.parametrize("python", ["3.12", "3.13", "3.14"])
def test_a_watch_is_told_of_code_as_long_as_it_asks(python):
    calls = ROOT / "src" / "visprompt" / "records" / "calls.py"
    done = subprocess.run(
        [other_python(python), "-c", CALLS, calls], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("python", ["3.12", "3.13", "3.14"])
def test_sources_compile_without_a_warning(python):
    found = other_python(python)
    folders = [ROOT / name for name in ("src", "notebooks")]
    done = subprocess.run([found, "-c", COMPILE, *folders], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not OTHER, reason="VISPROMPT_PYTHON names no other Python with the packages")
def test_a_fit_leaves_the_same_record(tmp_path):
    def records(python, folder):
        folder.mkdir()
        (folder / "data_manifests").symlink_to(ROOT / "data_manifests")
        place = {"VISPROMPT_ROOT": str(folder), "PYTHONPATH": str(ROOT / "src")}
        done = subprocess.run(
            [python, "-c", FIT], env={**os.environ, **place}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    assert records(OTHER, tmp_path / "there") == records(sys.executable, tmp_path / "here")
