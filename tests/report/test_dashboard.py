"""The live view fits terminals of every size: headlines stay on the screen, lines are whole, and there are never too many."""
from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from tests.report.reports import make_report
from wavedash.assembly import assembled
from wavedash.config_file import load_config
from wavedash.envs.headline import Headline
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import IterationReport
from wavedash.report.dashboard import LiveView, Progress, plain_line
from wavedash.rocket.env import RocketEnv

PROGRESS = Progress(elapsed=61.0, remaining=3600.0, checkpoint="step-000000000500, 12 s ago", skipped=0)
METRICS = {
    "policy__kl": 0.0078, "policy__clip_fraction": 0.0625,
    "recent__count": 42.0, "recent__return": 32.25, "recent__length": 31.5,
    "env__rate__wins": 1.5, "env__rate__falls": 0.25, "env__pay__forward": 0.06, "env__pay__energy": -0.03,
    "env__pay__my_own": 0.01, "env__unheard_of": 77.0,
}
RATES = Headline("per minute", {"rate/wins": "wins", "rate/falls": "falls"})
PAY = Headline("share of each reward", {"pay/forward": "forward", "pay/energy": "energy", "pay/my_own": "my own"}, shares=True)


def screen(report: IterationReport, headlines: tuple[Headline, ...], width: int = 100, height: int = 40) -> list[str]:
    console = Console(width=width, height=height, file=io.StringIO(), record=True, force_terminal=True)
    console.print(LiveView(report, PROGRESS, headlines))
    return console.export_text().rstrip("\n").splitlines()


def numbers(lines: list[str]) -> dict[str, str]:
    """The numbers of all tables by their label."""
    cells = [cell.strip() for line in lines for cell in line.split("│") if cell.strip()]
    return {label.strip(): value for label, _, value in (cell.rpartition(" ") for cell in cells)}


def test_the_environment_chooses_what_is_shown_and_what_it_is_called():
    lines = screen(make_report(3, **METRICS), (RATES, PAY))
    shown = numbers(lines)
    assert shown["wins"] == "1.5" and shown["falls"] == "0.25"
    assert (shown["forward"], shown["energy"], shown["my own"]) == ("+60.0%", "-30.0%", "+10.0%"), "of the sum of all sizes"
    text = "\n".join(lines)
    assert "per minute" in text and "share of each reward" in text and "77" not in text
    assert shown["return"] == "32.25" and shown["KL"] == "0.0078"
    plain = "\n".join(screen(make_report(3, **METRICS), ()))
    assert "wins" not in plain and "KL" in plain


def test_a_student_is_compared_with_its_teacher():
    learned = {name: x for name, x in METRICS.items() if not name.startswith("policy")}
    discrete = make_report(3, **learned, distill__loss=0.125, distill__agreement=0.75)
    shown = numbers(screen(discrete, (RATES,)))
    assert (shown["loss"], shown["same action"]) == ("0.125", "75.0%")
    assert not {"KL", "clip range", "clip fraction"} & shown.keys(), "they are PPO's"
    assert "distill loss 0.125  agreement 0.75" in plain_line(discrete, PROGRESS)
    continuous = make_report(3, **learned, distill__loss=0.125, distill__error=0.2)
    assert numbers(screen(continuous, (RATES,)))["relative error"] == "20.0%"
    assert "teacher" not in "\n".join(screen(make_report(3, **METRICS), (RATES,))), "PPO has none"


def test_a_plain_line_has_the_headlines_in_short():
    line = plain_line(make_report(3, **METRICS), PROGRESS, (RATES, PAY))
    assert line.endswith("kl 0.0078  per minute: wins 1.5, falls 0.25  "
                         "share of each reward: forward +60%, energy -30%, my own +10%")
    many = {f"env__pay__{n}": 0.1 * n for n in range(20)}
    headline = Headline("pay", {f"pay/{n}": f"r{n}" for n in range(20)}, shares=True)
    assert plain_line(make_report(3, **many), PROGRESS, (headline,)).endswith("pay: r19 +10%, r18 +9%, r17 +9%")


RATED = {"rating__elo": 1234.4, "rating__low": 1180.0, "rating__high": 1288.8, "rating__goal_share_chaser": 0.755}


def test_the_rating_is_shown_with_its_interval():
    lines = screen(make_report(3, **METRICS, **RATED), (RATES, PAY))
    assert any("Elo" in line and "1234 (1180 to 1289)" in line for line in lines)
    assert numbers(lines)["goals against chaser"] == "75.5%"
    assert "  rating 1234 (1180 to 1289)  per minute" in plain_line(make_report(3, **METRICS, **RATED), PROGRESS, (RATES, PAY))
    assert "Elo" not in "\n".join(screen(make_report(3, **METRICS), (RATES, PAY)))


def test_points_against_opponents_are_shown():
    metrics = {"league__win_rate": 0.541, "league__members": 9.0, "league__win_rate_oldest": 0.93, "league__games": 12.0}
    shown = numbers(screen(make_report(3, **METRICS, **metrics), (RATES,)))
    assert (shown["members"], shown["points"], shown["points against oldest"]) == ("9", "54.1%", "93.0%")
    assert "points against opponents 54%" in plain_line(make_report(3, **METRICS, **metrics), PROGRESS)
    assert "opponents" not in plain_line(make_report(3, **METRICS), PROGRESS)


def test_metrics_that_were_not_measured_take_no_room():
    assert "per minute" not in "\n".join(screen(make_report(1), (RATES, PAY)))
    assert plain_line(make_report(1), PROGRESS, (RATES, PAY)).endswith("eta 1:00:00")
    nothing_paid = {name: 0.0 for name in METRICS if name.startswith("env__pay")}
    assert numbers(screen(make_report(1, **nothing_paid), (PAY,)))["forward"] == "+0.0%"


@pytest.mark.parametrize("rewards", [3, 20])
@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 30), (200, 50), (60, 20), (40, 24), (80, 12), (300, 15)])
def test_the_view_fits_every_terminal_and_keeps_headlines(width, height, rewards):
    names = [f"a_reward_with_a_name_that_does_not_end_{n}" for n in range(rewards)]
    pay = Headline("share of each reward", {f"pay/{name}": name for name in names}, shares=True)
    paid = {f"env/pay/{name}": 0.01 if index else 5.0 for index, name in enumerate(reversed(names))}
    report = make_report(3, **METRICS)
    report = replace(report, metrics={**report.metrics, **paid})
    lines = screen(report, (RATES, pay), width, height)
    assert len(lines) <= height - 1 and max(map(len, lines)) <= width
    assert lines[-1].strip().endswith("no trouble"), "nothing below was pushed out"
    shown = numbers(lines)
    assert shown["wins"] == "1.5" and shown["falls"] == "0.25"
    assert all(line.count("╭") == line.count("╮") and line.count("╰") == line.count("╯") for line in lines)
    if height >= 20:
        assert shown["return"] == "32.25"
    if (width, height) == (80, 24):
        assert "KL" in shown and "steps" in shown
        largest = [value for label, value in shown.items() if label.startswith("a_reward")]
        assert largest[-1] == ("+99.6%" if rewards == 3 else "+96.3%"), "the largest is the last of the task, and is not cut"
        assert (" more " in "\n".join(lines)) == (rewards == 20)


def test_the_least_important_tables_are_cut_first():
    shown = numbers(screen(make_report(3, **METRICS), (RATES, PAY), 60, 24))
    assert {"wins", "falls", "return", "forward", "energy", "my own", "KL"} <= set(shown)
    assert "clip range" not in shown and "steps" not in shown


def test_days_fit_into_the_line_of_progress():
    progress = replace(PROGRESS, remaining=4.99 * 24 * 3600.0)
    console = Console(width=80, height=24, file=io.StringIO(), record=True, force_terminal=True)
    console.print(LiveView(make_report(3, **METRICS), progress, ()))
    assert console.export_text().splitlines()[0].endswith("0:01:01 gone, 4 d 23 h left")


def test_names_are_shown_as_they_are():
    tricky = Headline("[red]", {"a": "my_rewards:Fast[bold]Touch", "b": "[/]"})
    text = "\n".join(screen(make_report(1, env__a=1.0, env__b=2.0), (tricky,)))
    assert "my_rewards:Fast[bold]Touch" in text and "[/]" in text and "[red]" in text


def test_a_rocket_league_task_shows_its_game_and_its_rewards():
    rewards = "env.rocket.rewards={goal: 10, concede: 5, tests.rocket.test_env:Height: 1}"
    config = load_config("rocket-1v1", ["env.count=4", "policy.hidden=[16]", "ppo.rollout_steps=32", "device=cpu", rewards])
    with assembled(config) as learner:
        learner.start()
        shown, report = _iterated(learner)
        env = learner.env
        assert isinstance(env, RocketEnv)
        assert set(report.metrics) >= {f"env/{name}" for headline in env.headlines for name in headline.metrics}
    assert set(shown) >= {"goals", "shots", "saves", "touches", "demos", "goal", "concede", "height", "return"}
    amounts = {name: report.metrics[f"env/reward/{name}"] for name in ("goal", "concede", "height")}
    assert amounts["height"] > 0
    for name, amount in amounts.items():
        assert shown[name] == f"{amount / sum(map(abs, amounts.values())):+.1%}"
    assert sum(amounts.values()) == pytest.approx(report.metrics["rollout/reward"], rel=1e-5, abs=1e-6)


def _iterated(learner: Learner) -> tuple[dict[str, str], IterationReport]:
    report = learner.iterate()
    return numbers(screen(report, tuple(learner.env.headlines), 80, 24)), report
