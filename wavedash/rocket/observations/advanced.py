"""AdvancedObsPlus: everything a car can know, as its team sees the field and as its driver sees it."""
from __future__ import annotations

from wavedash.rocket.observations.by_name import ObservationByName
from wavedash.rocket.observations.names import FLAGS, PREVIOUS, TIMERS, WHEELS, local, of, vectors


class AdvancedObsPlus(ObservationByName):
    """Own car, ball, all other cars, goals and boost pads: in the field's coordinates as the own team sees it (+y is always
    toward the other goal), and in the car's own (forward, right, up), where a ball on the left always looks the same.
    Numbers are about -1 to 1: 1 is 5120 uu, 2300 uu/s, 5.5 radians/s, 100 boost, 10 s of a pad's timer.

    frames: how many steps it sees, the newest first. 1 is right for policies with memory; 2 to 4 can help those without.
    team_size: places per team, so that the same policy plays 1v1 up to this size; fewer make the network smaller.
    pads: how many near the car, and how many near the ball. timers: whether all 34 timers are seen.
    """

    def __init__(self, frames: int = 1, team_size: int = 3, pads: int = 4, timers: bool = True):
        super().__init__(frames, team_size, pads)
        self.sees_timers = timers

    def sees(self) -> list[str]:
        return [
            *self.own_car(), *self.ball(), *self.goal("other_goal"), *self.goal("own_goal"),
            *(name for car in self.known.others for name in self.other_car(car)),  # allies first; zeros without a car
            *(name for pad in self.known.near_pads for name in self.near_pad(pad)),
            *(TIMERS if self.sees_timers else []),
            *PREVIOUS,  # the controls that the car chose last
        ]

    def own_car(self) -> list[str]:
        return [
            *vectors("own", "position", "forward", "up", "velocity", "angular_velocity"),
            *local("own", "velocity", "angular_velocity"),
            *of("own", "velocity.length", "angular_velocity.length", "boost", "has_flip", *FLAGS[1:], *WHEELS),
            *of("own", "boost_time", "handbrake", "air_time_since_jump", "jump_time", "flip_time", "flip_torque.x",
                "flip_torque.y", "demo_timer"),
        ]

    def ball(self) -> list[str]:
        return [
            *vectors("ball", "position", "velocity", "angular_velocity", "relative_position", "relative_velocity"),
            *local("ball", "relative_position", "relative_velocity"),
            *of("ball", "relative_position.length", "relative_velocity.length", "velocity.length"),
        ]

    def goal(self, goal: str) -> list[str]:
        return [*local(goal, "from_car"), *of(goal, "from_car.length", "from_ball.length")]

    def other_car(self, car: str) -> list[str]:
        return [
            *of(car, "present"),
            *vectors(car, "position", "forward", "up", "velocity", "angular_velocity"),
            *local(car, "relative_position", "relative_velocity"),
            *of(car, "relative_position.length", "boost", "on_ground", "has_flip", "is_supersonic", "is_demoed"),
        ]

    def near_pad(self, pad: str) -> list[str]:
        return [*local(pad, "from_car"), *of(pad, "from_car.length", "big", "timer")]
