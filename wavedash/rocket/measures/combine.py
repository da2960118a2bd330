"""Measures: all measures of a task and of its lanes, and the metrics that their outcomes become."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from wavedash.config import Named
from wavedash.envs.errors import EnvError
from wavedash.errors import UserError
from wavedash.rocket import names
from wavedash.rocket.constants import TICK_RATE
from wavedash.rocket.parts import Measure, Part
from wavedash.rocket.state import Events, GameState
from wavedash.tasks.lanes import Lanes
from wavedash.tasks.part import Parts
from wavedash.tasks.rewards import label

if TYPE_CHECKING:
    from wavedash.rocket.sim.measuring import MeasuringKernels

SUCCESS = "attempt/{}"
TICKS = "attempt/{}_ticks"
PER_MINUTE = "per_minute/{}_attempts"


class Measures(Part):
    """Measures by name. For each there are metrics of every car: the share of its attempts that succeeded, the ticks that a
    success took where the measure is timed, and how many attempts there were per minute.

    An attempt counts in the step that decides it. Where no attempt was decided, its metrics are NaN and count for nothing: the
    rate of an iteration without attempts is absent, not 0. An attempt that is still open when its episode ends counts for
    nothing either.

    Measures of the main task see all arenas, whatever they play. Those that only a lane has see the arenas of that lane, and
    their metrics are NaN elsewhere.
    """

    holds_parts = True
    may_read = False
    """Whether a step may read on the host that no attempt was decided, and leave out what follows from one"""

    def __init__(self, measures: Mapping[str, Measure] | None = None,
                 lanes: Mapping[str, Mapping[str, Measure]] | None = None) -> None:
        """`lanes`: the measures of each lane, which may be the same objects as those of the main task."""
        self.parts = Parts(measures or {})
        self.titles = _Titles.of(self.parts)
        self.listed = {lane: dict(own) for lane, own in (lanes or {}).items()}
        """All measures of each lane"""
        of_main = {id(measure) for measure in self.parts.values()}
        own = {lane: {name: x for name, x in listed.items() if id(x) not in of_main} for lane, listed in self.listed.items()}
        self.of_lanes = Parts({lane: _OfLane(measures) for lane, measures in own.items() if measures})
        """The measures that only a lane has"""

    @classmethod
    def named(cls, given: Sequence[Named], lanes: Mapping[str, Sequence[Named]] | None = None) -> Measures:
        """Makes measures as a YAML file has them: `[turtle, {dribble: {seconds: 3}}, my_module:MyMeasure]`. `lanes`: those of
        each lane; one with the same options as in the main task is the same measure."""
        main = _read(given, "env.rocket.measures")
        made = {label(name): names.make("measure", name, options) for name, options in main.items()}
        of_lanes = {}
        for lane, listed in (lanes or {}).items():
            own = _read(listed, f"env.rocket.lanes.{lane}.measures")
            same = {name for name, options in own.items() if main.get(name) == options}
            of_lanes[lane] = {label(name): made[label(name)] if name in same else names.make("measure", name, options)
                              for name, options in own.items()}
        return cls(made, of_lanes)

    def each(self) -> Iterator[tuple[str, Measure]]:
        """All measures with their names; those that only a lane has with its name before it."""
        yield from self.parts.items()
        for lane, own in self.of_lanes.items():
            yield from ((f"{lane}.{name}", measure) for name, measure in own.parts.items())

    def follow(self, lanes: Lanes) -> None:
        """Is called before `bind` with the lanes that arenas play."""
        for lane, own in self.of_lanes.items():
            own.block, own.plays = lanes.blocks[lane], lanes.parts[lane].plays

    def bind(self, state: GameState) -> None:
        self.may_read = state.device.type == "cpu"
        rows = state.arenas * state.seats
        self.idle = _idle_metrics(self.titles, torch.full((rows,), torch.nan, device=state.device),
                                  torch.zeros(rows, device=state.device))
        """The metrics of a step in which no attempt was decided"""
        for part in (*self.parts.values(), *self.of_lanes.values()):
            part.bind(state)
        self.judge = _Judge(self.parts, state)

    def begin(self, state: GameState, arenas: Tensor) -> None:
        for part in (*self.parts.values(), *self.of_lanes.values()):
            part.begin(state, arenas)

    def lanes_changed(self) -> None:
        """Is called after arenas have changed their lanes."""
        for own in self.of_lanes.values():
            own.lanes_changed()

    def shown(self) -> dict[str, str]:
        """The metrics that people look at, each with what it is called on the screen."""
        return _shown(self.parts.items(), "")

    def shown_in(self, lane: str) -> dict[str, str]:
        """The same for a lane."""
        return _shown(self.listed[lane].items(), f"lane/{lane}/")

    def __call__(self, state: GameState, previous: GameState, events: Events, ticks: int) -> dict[str, Tensor]:
        """The metrics of a step of so many `ticks`, [E * C] each."""
        metrics: dict[str, Tensor] = {}
        if len(self.parts):
            rows = self.judge(previous, ticks, self.may_read)
            metrics |= self.idle if rows is None else _metrics(self.titles, rows.unbind(0))
        for own in self.of_lanes.values():
            found = own(previous, ticks, self.may_read)
            both = {name: torch.where(own.rows, x, metrics[name]) for name, x in found.items() if name in metrics}
            metrics |= found
            metrics |= both
        return metrics


class _OfLane(Part):
    """The measures that only one lane has. They see the block of arenas that is set aside for it."""

    block: slice
    plays: Tensor
    """[E] bool: the arenas that play the lane now"""
    rows: Tensor
    """[E * C] bool: the cars in them"""

    def __init__(self, measures: Mapping[str, Measure]) -> None:
        self.parts = Parts(measures)
        self.titles = _Titles.of(self.parts)

    def bind(self, state: GameState) -> None:
        self.part = state.part(self.block)
        self.previous: GameState | None = None
        self.columns = (self.block.start * state.seats, (state.arenas - self.block.stop) * state.seats)
        """How many rows there are before and after the block"""
        self.register_buffer("rows", torch.zeros(state.arenas * state.seats, dtype=torch.bool, device=state.device),
                             persistent=False)
        for measure in self.parts.values():
            measure.bind(self.part)
        self.judge = _Judge(self.parts, self.part)
        self.nothing = torch.full((len(self.rows),), torch.nan, device=state.device)
        self.lanes_changed()

    def begin(self, state: GameState, arenas: Tensor) -> None:
        mine = arenas[self.block]
        for measure in self.parts.values():
            measure.begin(self.part, mine)

    def lanes_changed(self) -> None:
        self.rows.view(len(self.plays), -1).copy_(self.plays.unsqueeze(-1))
        # New tensors: somebody may still hold those of the last step.
        self.idle = _idle_metrics(self.titles, self.nothing, torch.where(self.rows, 0.0, torch.nan))

    def __call__(self, previous: GameState, ticks: int, may_read: bool) -> dict[str, Tensor]:
        """The metrics, [E * C] each; NaN where an arena does not play the lane."""
        if previous is not self.previous:
            self.previous, self.previous_part = previous, previous.part(self.block)
        rows = self.judge(self.previous_part, ticks, may_read)
        if rows is None:
            return self.idle
        rows = torch.where(self.rows, pad(rows, self.columns, value=torch.nan), torch.nan)
        return _metrics(self.titles, rows.unbind(0))


class _Judge:
    """Measures over one state, and what they decide in a step. Those that ship have a kernel, which is used where Warp is
    installed: all of them are one launch instead of some thirty operations each."""

    def __init__(self, measures: Parts[Measure], state: GameState) -> None:
        self.measures, self.state = measures, state
        self.previous: GameState | None = None
        self.kernels: MeasuringKernels | None = None

    def __call__(self, previous: GameState, ticks: int, may_read: bool) -> Tensor | None:
        """[n, E * C]: the success of attempts for each measure, then attempts per minute, then ticks for each that is timed.
        None: no attempt was decided, which is known only where it may be read on the host."""
        if previous is not self.previous:
            self.previous, self.kernels = previous, _kernels(self.measures, self.state, previous)
        found = {} if self.kernels is None else self.kernels()
        outcomes = [found[name] if name in found else measure(self.state, previous, self.state.events)
                    for name, measure in self.measures.items()]
        if self.kernels is not None and len(found) == len(outcomes):
            over = self.kernels.over  # [M, E, C]
        else:
            over = torch.stack([outcome.over for outcome in outcomes])
        if may_read and not bool(over.any()):
            return None
        over, success = over.flatten(1), torch.stack([outcome.success for outcome in outcomes]).flatten(1)
        timed = [(success[index], outcome.ticks) for index, outcome in enumerate(outcomes) if outcome.ticks is not None]
        times = [torch.where(succeeded, taken.flatten().float(), torch.nan).unsqueeze(0) for succeeded, taken in timed]
        return torch.cat([torch.where(over, success.float(), torch.nan), over * (60 * TICK_RATE / ticks), *times])


def _kernels(measures: Parts[Measure], state: GameState, previous: GameState) -> MeasuringKernels | None:
    try:
        from wavedash.rocket.sim.measuring import MeasuringKernels
    except UserError:  # Warp is not installed
        return None
    return MeasuringKernels(measures, state, previous)


def _metrics(titles: Sequence[_Titles], rows: Iterable[Tensor]) -> dict[str, Tensor]:
    """The metrics of all measures, in the order of what `_Judge` says."""
    ticks = [each.ticks for each in titles if each.ticks is not None]
    return dict(zip([*(each.success for each in titles), *(each.per_minute for each in titles), *ticks], rows, strict=True))


def _idle_metrics(titles: Sequence[_Titles], nothing: Tensor, never: Tensor) -> dict[str, Tensor]:
    """The metrics of all measures if no attempt was decided: a share of `nothing`, and `never` any in a minute."""
    timed = sum(each.ticks is not None for each in titles)
    return _metrics(titles, [nothing] * len(titles) + [never] * len(titles) + [nothing] * timed)


class _Titles(NamedTuple):
    """The names of a measure's metrics."""

    success: str
    per_minute: str
    ticks: str | None

    @classmethod
    def of(cls, measures: Parts[Measure]) -> list[_Titles]:
        return [cls(SUCCESS.format(name), PER_MINUTE.format(name), TICKS.format(name) if measure.timed else None)
                for name, measure in measures.items()]


def _shown(measures: Iterable[tuple[str, Measure]], prefix: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, measure in measures:
        title = name.replace("_", " ")
        found[prefix + SUCCESS.format(name)] = title
        if measure.timed:
            found[prefix + TICKS.format(name)] = f"{title} ticks"
    return found


def _read(given: Sequence[Named], where: str) -> dict[str, dict[str, Any]]:
    """The options of measures by name."""
    found: dict[str, dict[str, Any]] = {}
    for named in given:
        if not isinstance(named, str) and len(named) != 1:
            raise EnvError(f"{where}: each entry is one measure, a name or {{name: options}}, not {named}")
        ((name, options),) = {named: {}}.items() if isinstance(named, str) else named.items()
        if label(name) in map(label, found):
            raise EnvError(f"{where} has {label(name)!r} twice: each may be there once")
        found[name] = dict(options)
    return found
