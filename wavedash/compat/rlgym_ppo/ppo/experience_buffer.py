"""ExperienceBuffer is a name that scripts import; experience is in our own buffer."""
from __future__ import annotations

from typing import Any

from wavedash.errors import UserError


class ExperienceBuffer:
    """Raises UserError when it is made: the Learner fills its own."""

    def __init__(self, *args: Any, **options: Any) -> None:
        raise UserError("an ExperienceBuffer of one's own cannot be learned from here: the Learner collects, and keeps "
                        "exp_buffer_size steps by itself. Call learner.learn(), and observe it in a metrics_logger")
