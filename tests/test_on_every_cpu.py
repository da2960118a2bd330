"""The command that runs the numeric tests as other CPUs would: its files exist, and it reports failures."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests import on_every_cpu
from tests.on_every_cpu import ELSEWHERE, ISAS, PARTS, forgotten, run

TESTS = Path(__file__).parent


def test_every_file_that_it_names_exists():
    assert all((TESTS / name).exists() for name in [*ELSEWHERE, *(name for names in PARTS.values() for name in names)])


def test_a_file_with_tolerances_that_is_in_no_part_is_reported(monkeypatch):
    assert "ppo/test_gae.py" not in forgotten()
    monkeypatch.setitem(PARTS, "ppo", [name for name in PARTS["ppo"] if name != "ppo/test_gae.py"])
    assert "ppo/test_gae.py" in forgotten()


@pytest.mark.slow
def test_torch_is_limited_to_the_instruction_set_and_a_failure_is_reported(monkeypatch, tmp_path):
    asked = tmp_path / "test_asked.py"
    asked.write_text("import os, torch\n"
                     "def test_right():\n    assert torch.backends.cpu.get_cpu_capability() == 'DEFAULT'\n"
                     "    assert torch.get_num_threads() == 1 and os.environ['ONEDNN_MAX_CPU_ISA'] == 'SSE41'\n"
                     "def test_wrong():\n    assert torch.get_num_threads() == 2\n")
    monkeypatch.setitem(PARTS, "asked", [str(asked)])
    monkeypatch.setattr(on_every_cpu, "ROOT", tmp_path)
    code, result, output = run("asked", "default", 1)
    assert (code, result) == (1, "1 failed, 1 passed"), output
    assert list(ISAS) == ["default", "avx2", "avx512"]
