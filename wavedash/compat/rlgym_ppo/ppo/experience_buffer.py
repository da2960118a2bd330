"""ExperienceBuffer: a name that scripts import; what is learned from lies in our own buffer."""
from __future__ import annotations

from typing import Any

from wavedash.errors import UserError


class ExperienceBuffer:
    """Refused: the Learner fills its own."""

    def __init__(self, *args: Any, **options: Any) -> None:
        raise UserError("an ExperienceBuffer of one's own cannot be learned from here: the Learner collects, and keeps "
                        "exp_buffer_size steps by itself. Call learner.learn(), and let a metrics_logger look on")
