"""`wavedash rocket show`: a trained policy plays its task in one arena, and a window shows it."""
from __future__ import annotations

import secrets
from pathlib import Path

from wavedash.loading import load_run
from wavedash.rocket.bridges import Pace, RLViser, RocketSimVis, Viewer
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.kind import rocket_task
from wavedash.trained_policy import TrainedPolicy

VIEWERS: dict[str, type[Viewer]] = {"rocketsimvis": RocketSimVis, "rlviser": RLViser}


def show_run(run: str | Path, viewer: str = "rocketsimvis", speed: float = 1.0, episodes: int | None = None,
             deterministic: bool = True, trust: bool = False) -> None:
    """Shows games until so many episodes are over, or without a number until Ctrl-C. Every call plays other games. `trust`:
    also run code that a run of another user names."""
    loaded = load_run(run, trust=trust)
    task = rocket_task(loaded.config.env, loaded.path)  # refuses other runs before a window opens
    config = loaded.config.env.model_copy(update={"rocket": task.of_size(task.largest)})
    window = VIEWERS[viewer]()
    env = loaded.make_env(1, config)
    assert isinstance(env, RocketEnv)
    print(f"{loaded.path} plays {config.title} in {type(window).__name__}; Ctrl-C ends it", flush=True)
    try:
        play(env, loaded.policy, window, Pace(speed), episodes, deterministic)
    except KeyboardInterrupt:
        pass
    finally:
        window.close()
        env.close()


def play(env: RocketEnv, player: TrainedPolicy, viewer: Viewer, pace: Pace, episodes: int | None, deterministic: bool) -> None:
    """Plays and shows an environment of one arena."""
    obs, played, seconds = env.reset(secrets.randbits(31)), 0, 0.0
    viewer.show(env.state_of(0))
    while episodes is None or played < episodes:
        step = env.step(player.step(obs, deterministic))
        obs, done = step.obs, step.terminated | step.truncated
        player.reset(done)
        pace.wait(env.step_seconds)
        viewer.show(env.state_of(0))
        seconds += env.step_seconds
        if done[0]:
            played += 1
            print(f"episode {played}: {seconds:.1f} s of the game", flush=True)
            seconds = 0.0
