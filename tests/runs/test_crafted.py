"""Every kind of wrong content with right checksums ends in an error that names the file and what is wrong in it."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs.crafted import COMMANDS, KINDS, RUNS, Kind, craft, run_command, train_all

pytestmark = pytest.mark.slow

DATA_ONLY = ("load_policy",)
"""These commands and `resume` are tried with every kind; the others read a policy the same way and are tried with some."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Path]:
    return train_all(tmp_path_factory.mktemp("good"))


def commands_for(kind: Kind) -> list[str]:
    more = COMMANDS if kind.name in ("NaN", "another shape", "state.json is empty") else ("resume", *DATA_ONLY)
    return [command for command in more if kind.concerns(command)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.run}, {kind.part}: {kind.name}")
def test_wrong_content_is_refused_with_its_place_and_the_next_step(runs, kind: Kind, tmp_path) -> None:
    run = craft(runs[kind.run], tmp_path / "run", kind.change)
    checkpoint = next((run / "checkpoints").iterdir())
    config = (run / "config.yaml").read_bytes()
    for command in commands_for(kind):
        code, message = run_command(command, checkpoint)
        assert code == 2, f"{command}: {message}"
        assert str(checkpoint) in message
        assert kind.says in message
        assert "use another checkpoint" in message or "Set environment and networks" in message
    assert (run / "config.yaml").read_bytes() == config, "a run that cannot go on stays as it was"


@pytest.mark.parametrize("run", RUNS)
def test_a_checkpoint_that_is_signed_again_without_a_change_works(runs, run: str, tmp_path) -> None:
    again = craft(runs[run], tmp_path / "run", lambda content: None)
    for command in COMMANDS:
        assert run_command(command, again) == (0, "works")
