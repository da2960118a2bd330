"""What the pages in docs/ tell people to do works."""
from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def test_the_page_about_ones_own_environment_can_be_followed(tmp_path: Path) -> None:
    """Its files are written, its commands and its Python are run; only the training is cut short."""
    page = (DOCS / "own-environment.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"}
    trained = 0
    for language, text in blocks:
        named = re.match(r"# (\S+\.\w+)\n", text)
        if named:
            (tmp_path / named[1]).write_text(text, encoding="utf-8")
            continue
        commands = [["-c", text]] if language == "python" else [["-m", *shlex.split(line)] for line in text.splitlines()]
        for command in commands:
            if "train" in command:
                trained += 1
                command += [] if "--smoke" in command else ["total_steps=2000"]
            result = subprocess.run([sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True)
            assert result.returncode == 0, f"{command}:\n{result.stdout}{result.stderr}"
    assert trained == 2


def test_the_page_about_boundaries_names_files_that_exist() -> None:
    page = (DOCS / "details.md").read_text(encoding="utf-8")
    root = DOCS.parent
    named = re.findall(r"`([\w/]+\.py)`", page)
    assert len(named) > 15
    for name in named:
        found = [*root.glob(f"wavedash/{name}"), *root.glob(name), *root.glob(f"tests/**/{name}")]
        assert found, f"docs/details.md names {name}, which does not exist"
