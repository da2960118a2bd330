"""Prints the live table of a run as the terminal showed it last: python docs/live_table.py runs/rocket-1v1/20261116-084200-1a2b

Two numbers behind the folder are the width and height of the terminal, 80 and 24 by default.
"""
from __future__ import annotations

import json
import sys
from pathlib import Path

from rich.console import Console

from wavedash.config_file import load_config
from wavedash.envs.make import make_env
from wavedash.ppo.listener import IterationReport
from wavedash.report.dashboard import LiveView, Progress


def main(folder: str, width: str = "80", height: str = "24") -> None:
    lines = [json.loads(line) for line in (Path(folder) / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    last = {name: x for name, x in lines[-1].items() if x is not None}
    seconds = {name[5:]: x for name, x in last.items() if name.startswith("time/") and name != "time/steps_per_second"}
    counted = (int(last[name]) for name in ("run/iteration", "steps", "total_steps", "run/episodes"))
    report = IterationReport(*counted, last, seconds)
    elapsed = sum(line["rollout/steps"] / line["time/steps_per_second"] for line in lines)
    newest = max(path.name for path in Path(folder, "checkpoints").iterdir())
    progress = Progress(elapsed, elapsed * (report.total_steps / report.steps - 1), f"{newest}, 0 s ago", 0)
    env = make_env(load_config(str(Path(folder, "config.yaml")), ["env.count=1", "env.workers=0"]).env)
    Console(width=int(width), height=int(height), force_terminal=False).print(LiveView(report, progress, env.headlines))
    env.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
