"""A real training for tests, in a process of its own."""
from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any, Self

from tests import prepared
from tests.web.serving import PATIENCE, until

LONG = ("cartpole", "total_steps=1000000000", "report.console=plain", "report.tensorboard=false", "env.count=4",
        "ppo.epochs=1", "policy.hidden=[8]")
"""A training that does not end by itself"""


class Training:
    """`wavedash train`, or `resume`, with what it prints in a file."""

    def __init__(self, root: Path, *words: str, command: str = "train") -> None:
        self.root, self.printed = root, root / "printed.txt"
        root.mkdir(parents=True, exist_ok=True)
        with self.printed.open("w") as printed:
            self.process = prepared.popen(["-m", "wavedash", command, *words], stdout=printed, stderr=printed,
                                          env={**os.environ, "WAVEDASH_RUNS": str(root), "OMP_NUM_THREADS": "1"})

    @property
    def run(self) -> Path:
        """Its run folder, once it learns."""
        def begun() -> Path | None:
            found = next((path.parent for path in self.root.glob("*/*/metrics.jsonl")), None)
            assert found is not None or self.process.poll() is None, self.printed.read_text()
            return found

        return until(begun, f"training: {self.printed.read_text()}")

    @property
    def steps(self) -> int:
        lines = (self.run / "metrics.jsonl").read_text().splitlines()
        return max((json.loads(line)["steps"] for line in lines[-2:] if line.endswith("}")), default=0)

    def goes_on(self) -> bool:
        """Whether it learns on from now."""
        before = self.steps
        return bool(until(lambda: self.steps > before, "further step"))

    def events(self) -> list[dict[str, Any]]:
        path = self.run / "events.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def link(self) -> str:
        """The address that it prints."""
        return str(until(lambda: re.search(r"http://\S+", self.printed.read_text()), "address")[0])

    def end(self, how: signal.Signals = signal.SIGKILL) -> int:
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.end()
