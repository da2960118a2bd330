"""What rewards pay in a few scenes whose meaning is clear, and whether blue and orange are paid alike."""
from __future__ import annotations

from math import pi

import torch
from torch import Tensor

from wavedash.config import EnvConfig, RocketConfig
from wavedash.findings import Findings, number, table
from wavedash.rocket.constants import BALL_REST_Z, TICK_RATE
from wavedash.rocket.debug.arenas import arenas, driven_directly, one_size, snapshot
from wavedash.rocket.debug.mirror import paid_unlike
from wavedash.rocket.geometry import rotation
from wavedash.rocket.parts import Start
from wavedash.rocket.state import CONTROLS, THROTTLE, GameState
from wavedash.rocket.task import Task
from wavedash.trained_policy import TrainedPolicy

DRIVES, LEAVES, FORTH, BACK, SCORES, CONCEDES = range(6)
SCENES = ("to the ball", "away from it", "ball to goal", "ball to own goal", "scores", "concedes")
"""Each has an arena of its own; what counts is what the first car is paid"""
PAIRS = {
    (DRIVES, LEAVES): ("driving to the ball", "driving away from it"),
    (FORTH, BACK): ("a ball that rolls to the other goal", "one that rolls to the own goal"),
    (SCORES, CONCEDES): ("scoring", "conceding"),
}
"""Scenes of which the first should pay more"""
SECONDS = 0.8


class Scenes(Start):
    """Writes the scenes, one after the other, as if the first car attacked toward +Y. Other cars stand at the side."""

    def write(self, state: GameState, generator: torch.Generator) -> None:
        for scene in range(len(SCENES)):
            self._write(state.part(slice(scene, None)), scene)
        side = 1.0 - 2.0 * state.cars.team[:, :1].float()  # [E, 1]
        for body, factor in ((state.ball, side), (state.cars, side.unsqueeze(-1))):
            for field in (body.position, body.velocity):
                field[..., :2] *= factor
            body.rotation[..., :2, :] *= factor.unsqueeze(-1)

    def _write(self, state: GameState, scene: int) -> None:
        """Writes one scene into all of these arenas: the next one overwrites all but the first."""
        cars, ball = state.cars, state.ball
        ours = cars.team == cars.team[:, :1]
        cars.position[..., 0] = -3000.0
        beside = 300.0 * torch.arange(state.seats, device=state.device) % 1200
        cars.position[..., 1] = torch.where(ours, -2600.0, 2600.0) + beside
        cars.rotation.copy_(rotation(torch.full_like(cars.boost, pi)))
        cars.velocity.zero_()
        ball.position.copy_(torch.tensor([0.0, 0.0, BALL_REST_Z]))
        ball.velocity.zero_()
        if scene in (DRIVES, LEAVES):
            ahead = 1.0 if scene == DRIVES else -1.0
            self._put(state, 0, (-1500.0, 0.0), 0.0 if scene == DRIVES else pi, (1000.0 * ahead, 0.0))
        elif scene in (FORTH, BACK):
            self._put(state, 0, (-1500.0, 0.0), 0.0, (0.0, 0.0))
            ball.velocity[:, 1] = 1500.0 if scene == FORTH else -1500.0
        else:
            goal = 1.0 if scene == SCORES else -1.0
            others = (~ours[0]).nonzero().flatten().tolist()
            seat = 0 if scene == SCORES or not others else others[0]
            self._put(state, seat, (0.0, 4500.0 * goal), goal * pi / 2, (0.0, 2200.0 * goal))
            ball.position[:, 1] = 4720.0 * goal
            ball.velocity[:, 1] = 1000.0 * goal

    @staticmethod
    def _put(state: GameState, seat: int, place: tuple[float, float], yaw: float, velocity: tuple[float, float]) -> None:
        cars = state.cars
        cars.position[:, seat, :2] = torch.tensor(place, device=state.device)
        cars.velocity[:, seat, :2] = torch.tensor(velocity, device=state.device)
        cars.rotation[:, seat] = rotation(torch.tensor(yaw)).to(state.device)


def examine_rewards(config: EnvConfig, device: torch.device, policy: TrainedPolicy) -> Findings:
    assert config.rocket is not None
    found = Findings()
    _scenes(found, config, one_size(config.rocket), "", device)
    for name, lane in config.rocket.lanes.items():
        if lane.rewards is not None:
            paid_in_full = one_size(config.rocket, rewards=lane.rewards, reward_mode="dense", zero_sum=False)
            _scenes(found, config, paid_in_full, f"lane {name}: ", device)
    return found


def _scenes(found: Findings, config: EnvConfig, rocket: RocketConfig, lane: str, device: torch.device) -> None:
    terms, paid = _paid(config, rocket, device)
    pairs = {pair: words for pair, words in PAIRS.items() if pair != (SCORES, CONCEDES) or (rocket.blue and rocket.orange)}
    shown = [scene for pair in pairs for scene in pair]
    found.say(f"{lane}what a car is paid in {SECONDS:g} s of hand-made scenes, by term before it is shared, and in all:",
              *table(("term", *(SCENES[scene] for scene in shown)), (
                  (name, *(number(x[scene]) for scene in shown)) for name, x in {**terms, "paid": paid}.items())))
    for (better, worse), (good, bad) in pairs.items():
        small = 1e-6 + 1e-3 * float(paid.abs().max())
        if float(paid[better]) < float(paid[worse]) - small:
            guilty = max(terms, key=lambda name: float(terms[name][worse] - terms[name][better]))
            found.problem(f"{lane}{good} pays {float(paid[better]):.4g}, {bad} pays {float(paid[worse]):.4g}: the bot will "
                          f"learn the latter, mostly from {guilty}. Its sign looks wrong")
        elif better != SCORES:
            for name, x in terms.items():
                if float(x[better]) < float(x[worse]) - 1e-6 - 1e-3 * float(x.abs().max()):
                    found.problem(f"{lane}reward {name} pays {float(x[better]):.4g} for {good} and {float(x[worse]):.4g} for "
                                  f"{bad}: its sign looks wrong")
    for name, apart, size in paid_unlike(config, rocket, device):
        found.problem(f"{lane}reward {name} pays blue and orange differently for the same thing: by {apart:.3g} on average, "
                      f"where it pays {size:.3g}, when the field is turned by half and the teams exchanged. Look at how it "
                      "tells the goals of both teams apart (state.cars.team)")


def _paid(config: EnvConfig, rocket: RocketConfig, device: torch.device) -> tuple[dict[str, Tensor], Tensor]:
    """Returns what each term pays the first car in every scene, up to a goal, and what it is paid in all."""
    def staged(task: Task) -> None:
        driven_directly(task)
        task.start = Scenes()

    count = len(SCENES)
    with arenas(config, rocket, count, device, staged) as env:
        env.reset(0)
        seats, ticks = env.num_rows // count, env.tasks[0].action.ticks
        controls = torch.zeros(count, seats, len(CONTROLS), device=env.device)
        controls[:2, 0, THROTTLE] = 1.0
        terms: dict[str, Tensor] = {}
        paid, goes_on = torch.zeros(count), torch.ones(count, dtype=torch.bool)
        for _ in range(-(-round(SECONDS * TICK_RATE) // ticks)):
            step = env.step(controls.view(env.num_rows, -1))
            first = slice(0, None, seats)
            paid += step.reward[first].cpu() * goes_on
            for name, x in step.metrics.items():
                if name.startswith("reward/"):
                    term = name.removeprefix("reward/")
                    terms[term] = terms.get(term, torch.zeros(count)) + x[first].cpu() * goes_on
            goes_on = goes_on & (snapshot(env).game.goal < 0)
    return terms, paid
