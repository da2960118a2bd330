"""`wavedash rocket show`: a trained policy plays its task in one arena, and a window shows it."""
from __future__ import annotations

import secrets
from pathlib import Path

from wavedash.envs.make import make_env
from wavedash.errors import UserError
from wavedash.evaluation import check_plays
from wavedash.player import Player, load_policy
from wavedash.rocket.bridges import Pace, RLViser, RocketSimVis, Viewer
from wavedash.rocket.env import RocketEnv
from wavedash.runs.find import resolve_checkpoint
from wavedash.runs.trust import run_config
from wavedash.threads import decide_threads, set_torch_threads

VIEWERS: dict[str, type[Viewer]] = {"rocketsimvis": RocketSimVis, "rlviser": RLViser}


def show_run(run: str | Path, viewer: str = "rocketsimvis", speed: float = 1.0, episodes: int | None = None,
             deterministic: bool = True, trust: bool = False) -> None:
    """Until so many episodes are over; without a number, until Ctrl-C. Other games at every call. `trust`: also run code that a
    run of somebody else names."""
    checkpoint = resolve_checkpoint(run)
    config = run_config(checkpoint.run_config, trust=trust)
    if config.env.rocket is None:
        raise UserError(f"{run} was trained in {config.env.world}; only runs of a Rocket League task (env.rocket) can be shown")
    decide_threads(config.threads)
    window = VIEWERS[viewer]()
    env = make_env(config.env.model_copy(update={"count": 1, "workers": 0}))
    assert isinstance(env, RocketEnv)
    print(f"{checkpoint.path} plays {config.env.world} in {type(window).__name__}; Ctrl-C ends it", flush=True)
    set_torch_threads(env.num_rows, config.policy)
    try:
        player = load_policy(checkpoint.path)
        check_plays(player, env, checkpoint.path)
        play(env, player, window, Pace(speed), episodes, deterministic)
    except KeyboardInterrupt:
        pass
    finally:
        window.close()
        env.close()


def play(env: RocketEnv, player: Player, viewer: Viewer, pace: Pace, episodes: int | None, deterministic: bool) -> None:
    """In an environment of one arena."""
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
