"""The files of the page that ship are what its sources make, small enough, and of nobody else."""
from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.page.browser import required

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "wavedash" / "web" / "static"
FILES = ("icon.svg", "index.html", "page.css", "page.js")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources with the packages that they name, in a folder of their own."""
    npm, folder = required("npm"), tmp_path_factory.mktemp("page")
    shutil.copytree(ROOT / "page", folder, ignore=shutil.ignore_patterns("node_modules"), dirs_exist_ok=True)
    if (ROOT / "page" / "node_modules").exists():
        (folder / "node_modules").symlink_to(ROOT / "page" / "node_modules", target_is_directory=True)
    done = subprocess.run([npm, "ci", "--no-audit", "--no-fund"], cwd=folder, capture_output=True, text=True) \
        if not (folder / "node_modules").exists() else None
    assert done is None or done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_the_bundle_is_built_from_the_sources(sources: Path, tmp_path: Path) -> None:
    """Built anew it is the same byte for byte."""
    subprocess.run([required("node"), "build.mjs", "--out", str(tmp_path)], cwd=sources, check=True, capture_output=True)
    for name in FILES:
        same = (tmp_path / name).read_bytes() == (STATIC / name).read_bytes()
        assert same, f"{name} is old: cd page && npm ci && npm run build"


@pytest.mark.slow
def test_the_sources_have_no_mistakes_of_type(sources: Path) -> None:
    done = subprocess.run([required("npm"), "run", "--silent", "check"], cwd=sources, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_bundle_is_small() -> None:
    packed = sum(len(gzip.compress((STATIC / name).read_bytes(), 9)) for name in FILES)
    assert packed < 250_000


def test_the_page_asks_nobody_else() -> None:
    """It names no other server; the only addresses are names of formats, which nothing fetches."""
    for name in FILES:
        text = (STATIC / name).read_text(encoding="utf-8")
        rest = text.replace("http://www.w3.org/", "")
        assert "//cdn" not in rest and "src=\"http" not in rest
