"""Options of the recordings that a run makes of itself."""
from __future__ import annotations

from wavedash.config.section import Positive, Section


class RecordingsConfig(Section):
    """Highlights of a training, for env.rocket: goals, saves, long rallies and mechanics that succeeded are kept as recordings
    (docs/recordings.md). The training itself is the same with and without them, bit for bit. When a run fails, the last seconds
    of the watched arenas are kept too."""

    watched: Positive = 4
    """Arenas that are watched for highlights, spread over all of them. More: more to choose from, more time (less than a
    percent with 4)."""
    keep: Positive = 20
    """Recordings that stay, the best of each kind; kinds have equal shares, at least one each. More: more disk, about 30 kB
    each."""
