"""Highlights: a listener that watches a few arenas of a training, keeps their best moments, and what they did before a crash.

A step of the environment writes to a tape on the device; the host reads it once an iteration. Nothing of the training depends
on it, and whatever goes wrong here never ends a run.
"""
from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from wavedash.config import RecordingsConfig
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.recordings.layout import RecordingError
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.recording.crash import write_crash
from wavedash.rocket.recording.episodes import Episode
from wavedash.rocket.recording.moments import KINDS, find_moments, may_have_moments
from wavedash.rocket.recording.shelf import Shelf
from wavedash.rocket.recording.watched import Watched, watch
from wavedash.runs.folder import RunFolder

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

log = logging.getLogger(__name__)


class Highlights(Listener):
    """Watches arenas of the first process of a run. It keeps no state in checkpoints: files tell what there is."""

    def __init__(self, config: RecordingsConfig, run: RunFolder) -> None:
        self.config, self.run = config, run
        self.title = "/".join(run.path.absolute().parts[-2:])
        self.watched: list[Watched] = []
        self.shelf = Shelf(run.recordings, config.keep)
        self._failing = False

    def on_start(self, learner: Learner) -> None:
        env, rocket = learner.env, learner.config.env.rocket
        if not isinstance(env, RocketEnv) or rocket is None:
            log.info("recordings: no highlights are kept, because the arenas of this environment are out of reach")
            return
        self.watched = watch(env, self.config.watched, learner.config.ppo.rollout_steps, rocket.simulator)
        kinds = len(KINDS) + max(len(one.measures) for one in self.watched)
        self.shelf.each = max(1, self.config.keep // kinds)
        self.shelf.look()

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        try:
            for one in self.watched:
                for raw in one.episodes.read():
                    if may_have_moments(raw):
                        self._keep(one, raw.encoded(one.frames), learner.config.name, report.steps)
        except Exception as error:  # training is worth more than its highlights, whatever went wrong
            log.error("no more highlights are kept of this run: %s: %s", type(error).__name__, error)
            self._stop_watching(learner)

    def on_stop(self, learner: Learner, error: BaseException | None) -> None:
        if isinstance(error, Exception) and self.watched and isinstance(learner.env, RocketEnv):
            write_crash(self.watched, learner.env, error, self.run.crash, learner.config.name, learner.steps, self.title)
        self._stop_watching(learner)

    def _keep(self, one: Watched, episode: Episode, name: str, step: int) -> None:
        for moment in find_moments(episode, one.teams, one.frame_seconds, one.measures):
            if not self.shelf.wants(moment.kind, moment.score, step):
                continue
            part, title = episode.part(*moment.shown), f"{moment.title}, step {step:,}"
            recording = one.recording(part, f"{name}@{step}", title, "highlight", run=self.title, step=step)
            try:
                self.shelf.put(recording, moment.kind, moment.score, step)
                self._failing = False
            except RecordingError as error:
                if not self._failing:  # a full disk is said once, not with every highlight
                    log.warning("could not keep a highlight: %s", error)
                self._failing = True

    def _stop_watching(self, learner: Learner) -> None:
        """A captured CUDA graph goes on writing to the tape, which does no harm."""
        if self.watched and isinstance(learner.env, RocketEnv):
            learner.env.attach([None] * len(learner.env.states))
        self.watched = []

