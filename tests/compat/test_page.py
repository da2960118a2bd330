"""docs/rlgym.md can be followed: its environment trains in workers, its loop plays the trained policy."""
from __future__ import annotations

import re
import sys
from pathlib import Path

from wavedash.evaluate.own_task import evaluate
from wavedash.training import train

PAGE = Path(__file__).parents[2] / "docs" / "rlgym.md"


def test_the_page_can_be_followed(tmp_path, monkeypatch):
    """The environment has teams of changing size on RocketSim and is named in YAML. Only sizes are reduced here."""
    blocks = dict(re.findall(r"^```\w+\n# (\S+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))
    for name, text in blocks.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    watch = re.search(r"^```python\n(import time.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[1]
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    small = ["total_steps=400", "env.count=2", "env.workers=1", "env.groups=1", "ppo.rollout_steps=32", "policy.hidden=[16]",
             "report.console=off", "report.tensorboard=false"]
    try:
        assert train("game.yaml", *small) == 0
        result = evaluate("runs/game", episodes=2)
        assert len(result.returns) >= 2 and max(result.games.lengths) >= 150, "10 s without a touch: 8 ticks a step"
        played = watch.replace("15 * 20", "5").replace("8 / 120", "0")
        exec(compile(played, "docs/rlgym.md", "exec"), {})
    finally:
        sys.modules.pop("my_game", None)
