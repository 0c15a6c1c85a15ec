"""`make lab`: a page opens as a notebook, and saving the notebook writes the page's text."""

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest

from visprompt.paths import ROOT

PAGE = "methods_spt"
SERVER = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.port=0"]


@pytest.fixture
def folder(tmp_path):
    """A folder with one page, and what pairs it."""
    (tmp_path / "notebooks").mkdir()
    shutil.copy(ROOT / "jupytext.toml", tmp_path)
    return Path(shutil.copy(ROOT / "notebooks" / f"{PAGE}.py", tmp_path / "notebooks"))


def sync(path):
    subprocess.run([sys.executable, "-m", "jupytext", "--quiet", "--sync", path], check=True)


def test_an_edit_goes_from_the_text_to_the_notebook_and_back(folder):
    before = folder.read_text()
    sync(folder)
    paired = folder.parent.parent / "build" / "lab" / f"{PAGE}.ipynb"
    found = nbformat.read(paired, 4)
    assert folder.read_text() == before
    cell = next(cell for cell in found.cells if cell.metadata.get("name") == "try-it")
    cell.source = cell.source.replace("prompt_tokens=20", "prompt_tokens=5")
    cell.outputs = [nbformat.v4.new_output("stream", text="an output")]
    nbformat.write(found, paired)
    later = folder.stat().st_mtime + 2
    os.utime(paired, (later, later))
    sync(paired)
    assert folder.read_text() == before.replace("prompt_tokens=20", "prompt_tokens=5")
    folder.write_text(before.replace("prompt_tokens=20", "prompt_tokens=7"))
    os.utime(folder, (later + 2, later + 2))
    sync(folder)
    cell = next(c for c in nbformat.read(paired, 4).cells if c.metadata.get("name") == "try-it")
    assert "prompt_tokens=7" in cell.source and cell.outputs


def asked(address: str, token: str, body: dict | None = None) -> dict:
    """What the server answers; `body` is put there."""
    request = urllib.request.Request(address, headers={"Authorization": f"token {token}"})
    if body is not None:
        request.data, request.method = json.dumps(body).encode(), "PUT"
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


@pytest.mark.skipif(not find_spec("jupyterlab"), reason="make lab installs JupyterLab")
@pytest.mark.whole
def test_the_lab_opens_a_page_as_a_notebook_and_saves_its_text(folder, tmp_path):
    env = os.environ | {"JUPYTER_RUNTIME_DIR": str(tmp_path / "run"), "HOME": str(tmp_path)}
    before, place = folder.read_text(), f"notebooks/{PAGE}.py"
    server = subprocess.Popen(
        [*SERVER, f"--ServerApp.root_dir={tmp_path}"], env=env, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(240):
            if told := [*tmp_path.glob("run/jpserver-*.json")]:
                break
            assert server.poll() is None
            time.sleep(0.5)
        here = json.loads(told[0].read_text())
        address, token = f"{here['url']}api/contents/{place}", here["token"]
        page = asked(f"{address}?type=notebook", token)
        assert page["type"] == "notebook"
        cells = page["content"]["cells"]
        cell = next(cell for cell in cells if cell["metadata"].get("name") == "try-it")
        cell["source"] = cell["source"].replace("prompt_tokens=20", "prompt_tokens=5")
        asked(address, token, {"type": "notebook", "format": "json", "content": page["content"]})
    finally:
        server.terminate()
        server.wait(60)
    assert folder.read_text() == before.replace("prompt_tokens=20", "prompt_tokens=5")
    assert (tmp_path / "build" / "lab" / f"{PAGE}.ipynb").exists()
