"""The benchmark beside busy programs: they run while it measures, and have ended afterwards."""
from __future__ import annotations

import subprocess

import pytest

from wavedash.bench import neighbours
from wavedash.errors import UserError

pytestmark = pytest.mark.slow

SMALL = ["cartpole", "env.count=2", "ppo.rollout_steps=8", "ppo.epochs=1"]


def test_training_is_measured_beside_programs_that_are_gone_afterwards(capsys, monkeypatch):
    started, popen = [], subprocess.Popen

    def watched(*args, **kwargs):
        started.append(popen(*args, **kwargs))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", watched)
    neighbours.main(["--rounds", "1", "--seconds", "0.2", "--beside", "two busy loops", *SMALL])
    out = capsys.readouterr().out
    _, alone, beside = next(line for line in out.splitlines() if line.startswith(neighbours.AS_IT_IS)).split("\t")
    assert "100%" in alone and float(beside.split()[0].replace(",", "")) > 0 and "one busy loop" not in out
    assert len(started) == 3 and all(process.poll() is not None for process in started)


def test_a_training_that_ends_is_reported():
    with pytest.raises(UserError, match="training ended"):
        neighbours.main(["cartpole", "device=nonsense"])
