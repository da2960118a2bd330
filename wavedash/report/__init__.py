"""Reports are listeners that write the metrics of a run: metrics file, log file, TensorBoard, Weights & Biases, console."""
from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import LogRecord

    from wavedash.config import RunConfig
    from wavedash.ppo.listener import Listener


def check(config: RunConfig) -> None:
    """Raises UserError if `config.report` asks for something that is not installed."""
    if config.report.wandb:
        from wavedash.report.wandb import check_installed

        check_installed()


def listeners(config: RunConfig, run_folder: str | Path, early: Iterable[LogRecord] = ()) -> list[Listener]:
    """Makes the listeners that `config.report` asks for. Their packages are imported only when they are used. `early` is what
    was logged before, for the log file."""
    from wavedash.report.log_file import LogFile
    from wavedash.report.metrics_file import MetricsFile

    folder, wanted = Path(run_folder), config.report
    found: list[Listener] = [LogFile(folder / "log.txt", early), MetricsFile(folder / "metrics.jsonl")]
    if wanted.tensorboard:
        from wavedash.report.tensorboard import TensorBoard

        found.append(TensorBoard(folder / "tb"))
    if wanted.wandb:
        from wavedash.report.wandb import Wandb

        found.append(Wandb(config, folder))
    if wanted.console != "off":
        from wavedash.report.console import ConsoleView

        found.append(ConsoleView(folder, wanted.console))
    return found
