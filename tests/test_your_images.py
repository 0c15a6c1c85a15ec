"""The page "Bring your own images": every command and line of it, on a tiny folder."""

import json
import re
import shlex

import numpy as np
import pytest
from PIL import Image
from safetensors import safe_open

import visprompt as vp
from visprompt.__main__ import main, parse
from visprompt.paths import ROOT

PAGE = (ROOT / "book" / "your-images.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.S)
COMMANDS = [
    line[2:]
    for kind, text in BLOCKS
    if kind == "console"
    for line in text.splitlines()
    if line.startswith("$ ")
]
# nothing to fetch, no GPU
HERE = [line for line in COMMANDS if "--weights" not in line and "--device" not in line]


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    """Dark ants and light bees, as the page lays them out, and a light picture of one's own."""
    generator = np.random.default_rng(0)
    for name, light in (("ant", 0), ("bee", 150)):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for number in range(20):
            picture = generator.integers(light, light + 100, (30, 40, 3), np.uint8)
            Image.fromarray(picture).save(
                tmp_path / "pictures" / name / f"{number:02d}.{'png' if number % 2 else 'jpg'}"
            )
    Image.fromarray(picture).save(tmp_path / "new.jpg")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_are_understood(line):
    name, *words = shlex.split(line)
    assert name == "visprompt" and callable(parse(words).run)


def test_commands_train_and_name_a_picture(pictures, capsys):
    assert [line.split()[1] for line in HERE] == ["fit", "predict"]
    for line in HERE:
        assert main(shlex.split(line)[1:]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "2 classes; pictures: 24 for train, 8 for val, 8 for test"
    assert told[1:3] == ["named right: 100.0 % of val, 100.0 % of test", "saved: mine.safetensors"]
    first, second = (line.split("\t") for line in told[3:])
    assert first[:2] == ["new.jpg", "bee"] and second[:2] == ["new.jpg", "ant"]
    assert float(first[2]) + float(second[2]) == pytest.approx(1, abs=0.002)


def test_a_folder_is_fitted_with_other_rates_sizes_and_settings(pictures, capsys):
    words = "fit pictures --epochs 2 --image-size 32 --set prompt_tokens=3 --search"
    assert main(words.split()) == 0
    assert capsys.readouterr().out.count("learning rate ") == 3
    model = safe_open("method.safetensors", "pt")
    assert json.loads(model.metadata()["visprompt"])["settings"]["prompt_tokens"] == 3
    assert main(["predict", "method.safetensors", "new.jpg"]) == 0
    assert main([*words.split()[:-1], "--learning-rate", "1e-9"]) == 0


def test_lines_of_python_do_the_same(pictures, capsys):
    (code,) = [text for kind, text in BLOCKS if kind == "python"]
    space = {}
    exec(code, space)  # noqa: S102 (the page's own lines)
    assert len([line for line in code.splitlines() if line]) <= 10
    assert capsys.readouterr().out.startswith("100.0 % of the test pictures")
    assert vp.predict(space["model"], "new.jpg")["class"].tolist() == ["bee"]


def test_least_and_splits_are_as_said(pictures):
    for path in (pictures / "pictures").glob("*/*"):
        if int(path.stem) >= 5:
            path.unlink()
    task = vp.load_task("pictures", pictures, image_size=8)
    assert [len(labels) for _, labels in (task.train, task.val, task.test)] == [6, 2, 2]
    names = re.findall(r"`pictures/(\w+)/CLASS", PAGE)
    assert names == ["train", "test", "val"]


def test_what_is_decoded_once_is_said_with_its_limit():
    from visprompt.data import image_cache

    (mebibytes,) = re.findall(r"more than (\d+) MiB", PAGE)
    assert int(mebibytes) * 2**20 == image_cache.SMALL


@pytest.mark.refused
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("fit nowhere", "nowhere is not a folder; give the one that holds one folder per class"),
        ("fit pictures --out mine.pt", "ends in .safetensors, not 'mine.pt'"),
        ("fit pictures --method vpt-dep", "Did you mean 'vpt-deep'"),
        ("fit pictures --backbone vit_mikro_patch4_24", "unknown backbone"),
        ("fit pictures --epochs 0", "epochs must be above 0"),
        ("fit pictures --resize cropped", "Did you mean 'crop'"),
        ("fit pictures --set prompt_tokens", "takes NAME=VALUE, such as prompt_tokens=20"),
        ("fit pictures --set promt_tokens=2", "Did you mean 'prompt_tokens'"),
        ("fit pictures --learning-rate 0", "learning_rate must be above 0"),
        ("fit pictures --image-size 25", "patches of 4 pixels do not fill images of 25; give 24"),
        ("fit pictures/ant", "split train has no picture|no layout|is missing"),
        ("predict mine.safetensors new.jpg", "mine.safetensors does not exist"),
    ],
)
def test_mistakes_are_one_line(pictures, capsys, words, message):
    assert main(words.split()) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert re.search(message, error[-1]) and error[-1].startswith("visprompt: ")
    assert (
        not (pictures / "mine.safetensors").exists()
        and not (pictures / "method.safetensors").exists()
    )
