"""A run folder gets the files that its configuration asks for."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.reports import make_report, stand_in_learner
from wavedash.config_file import load_config
from wavedash.report import listeners


@pytest.mark.parametrize(("overrides", "expected"), [
    (["report.console=plain"], {"log.txt", "metrics.jsonl", "tb"}),
    (["report.console=off", "report.tensorboard=false"], {"log.txt", "metrics.jsonl"}),
])
def test_a_run_leaves_the_files_that_were_asked_for(
    overrides: list[str], expected: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learner, everyone = stand_in_learner(), listeners(load_config("cartpole", overrides), tmp_path)
    for listener in everyone:
        listener.on_start(learner)
    for listener in everyone:
        listener.on_iteration(learner, make_report(1))
    for listener in everyone:
        listener.on_stop(learner, None)
    assert {path.name for path in tmp_path.iterdir()} == expected
    assert ("100/1,000 steps" in capsys.readouterr().out) == ("report.console=plain" in overrides)
