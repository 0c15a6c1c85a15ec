"""Random edits of all rooms are told apart by records; VISPROMPT_EDITS and VISPROMPT_SEED set how
many and which."""

import json
import os
import subprocess
import sys
from pathlib import Path

from visprompt.paths import PACKAGE


def test_random_edits_of_all_rooms_are_told_apart(tmp_path):
    count, seed = int(os.environ.get("VISPROMPT_EDITS", 1)), os.environ.get("VISPROMPT_SEED", "0")
    words = ["--seed", seed, "--harmful", str(count), "--harmless", str(5 * count)]
    program = Path(__file__).with_name("edits.py")
    environment = {**os.environ, "PYTHONPATH": ""}
    assert (program.parents[1] / "src" / "visprompt").resolve() == PACKAGE.resolve()
    done = subprocess.run(
        [sys.executable, program, tmp_path, *words], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["exceptions"] == [] and found["told"] == {
        "harmful": count,
        "harmless": 5 * count,
    }, found
