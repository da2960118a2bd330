"""`report_metrics` prints the report of an iteration as rlgym-ppo does, and sends it to a run at Weights & Biases."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wavedash.compat.rlgym_ppo.report import as_text


def report_metrics(loggable_metrics: Mapping[str, Any], debug_metrics: Mapping[str, Any] | None, wandb_run: Any = None) -> None:
    if wandb_run is not None:
        wandb_run.log(loggable_metrics)
    if debug_metrics is not None:
        print(dump_dict_to_debug_string(debug_metrics))
    print(as_text(loggable_metrics), flush=True)


def dump_dict_to_debug_string(dictionary: Mapping[str, Any]) -> str:
    """Returns one line for each entry."""
    return "".join(f"{name}: {value}\n" for name, value in dictionary.items())
