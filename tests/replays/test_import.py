"""Games of our simulator, written as replays are, are imported and held against the truth."""
from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from wavedash.config import RocketConfig
from wavedash.errors import UserError
from wavedash.imitate import demonstrations
from wavedash.replays import importing
from wavedash.replays.filters import KEPT, REASONS, bodies_of, segments, sort_out
from wavedash.replays.generate import LENGTH_UNIT, SPIN_UNIT, TURN_UNIT, as_replay, play
from wavedash.replays.importing import import_folder, import_table
from wavedash.replays.inverse import load_model
from wavedash.replays.modes import other_mode
from wavedash.replays.one_file import Imported, ImportSettings, import_replay, read_part, write_part
from wavedash.replays.read import _phases, _rest_sticks, identity_of, read_replay
from wavedash.replays.replay import COUNTDOWN, GOAL, NEUTRAL, NO_PLAY, PLAY, UNKNOWN, NotAReplayError, Replay
from wavedash.replays.resample import resample
from wavedash.replays.states import FIELDS, carried_controls, states_of
from wavedash.rocket.actions.lookup_table import LookupTable
from wavedash.rocket.rehearsal import empty_arenas
from wavedash.rocket.sim.simulator import WarpSimulator
from wavedash.rocket.starts import load_frames
from wavedash.rocket.state import JUMP, STEER, YAW


@pytest.fixture(scope="module")
def played():
    simulator = WarpSimulator(4, 1, 1)
    yield play(simulator, decisions=120, ticks=8, seed=3)
    simulator.close()


def quiet(played, seed=0):
    """A replay whose frames are all kept but those where a car is demolished or a game begins."""
    return as_replay(played, 0, seed)


def test_a_replay_gives_back_the_states_within_its_rounding(played):
    replay, frames = quiet(played)
    state = bodies_of(replay, np.arange(replay.frames))
    for row, index in enumerate(frames):
        truth = played.states[index]
        for body, true in ((state.ball, truth.ball), (state.cars, truth.cars)):
            # Half a step of rounding, and half a unit in the last place of numbers up to 8192 and 6000 in float32.
            assert (body.position[row] - true.position[0]).abs().max() <= LENGTH_UNIT / 2 + 2**-11
            assert (body.velocity[row] - true.velocity[0]).abs().max() <= LENGTH_UNIT / 2 + 2**-11
            assert (body.angular_velocity[row] - true.angular_velocity[0]).abs().max() <= SPIN_UNIT / 2 + 2**-21
            # An element of the matrix changes by at most 8 times the greatest change of an element of the quaternion.
            assert (body.rotation[row] - true.rotation[0]).abs().max() <= 8 * TURN_UNIT / 2 + 2**-18
        assert (state.cars.boost[row] - truth.cars.boost[0]).abs().max() <= 100 / 255 / 2 + 1e-4


def test_between_frames_a_free_ball_and_car_are_where_the_simulator_had_them(played):
    """In free flight the cubic is exact up to rounding; the true state lies between frames."""
    replay, _ = quiet(played)
    run = max(segments(replay, sort_out(replay))[0], key=len)
    moments = resample(replay, run, ticks=8)
    ticks = np.round((moments.time - 10.0) * 60).astype(int)  # states are 2 ticks apart
    exact = np.abs(ticks / 60 - (moments.time - 10.0)) < 1e-6
    places = np.stack([played.states[i].ball.position[0].numpy() for i in ticks[exact]])
    error = np.linalg.norm(moments.ball["position"][exact] - places, axis=-1)
    assert exact.sum() > 20 and np.median(error) < 1.0
    shifted = np.linalg.norm(moments.ball["position"][exact][1:] - places[:-1], axis=-1)
    assert np.median(shifted) > 10.0, "a shift by one decision must show"


def test_a_state_shows_no_jump_before_it_was_chosen(played):
    """A flag that is set from some time on is no part of states before that time. It is the label of the moment before."""
    replay, _ = quiet(played)
    run = max(segments(replay, sort_out(replay))[0], key=len)
    shown = {"jump_active": ("is_jumping", "has_jumped"), "dodge_active": ("has_flipped", "is_flipping", "flip_time"),
             "double_jump_active": ("has_double_jumped",)}
    told, seen = 0, 0
    for frame in run[10:-10:3]:
        since = np.arange(replay.frames) >= frame
        for flag, fields in shown.items():
            for name in replay.flags:
                replay.flags[name] = np.repeat(since[:, None] & (name == flag), 2, axis=1)
            moments = resample(replay, run, ticks=8)
            before, cars = moments.time < replay.time[frame], states_of(moments).cars
            for field in fields:
                assert not getattr(cars, field)[before].any(), field
                seen += int(getattr(cars, field).any())
            told += int(carried_controls(moments)[0][before, :, JUMP].any())
            assert not carried_controls(moments)[0][moments.time < replay.time[frame] - 8 / 120, :, JUMP].any()
    assert told and seen, "labels that begin within a decision are of the moment before it, and states show them afterwards"


def test_every_fault_is_counted_under_its_reason_and_nothing_else_changes(played):
    replay, _ = quiet(played)
    before = sort_out(replay)
    kept = np.flatnonzero(before == KEPT)
    rows = iter(kept[10 : 10 + 20 * 2 * 9 : 9])
    wanted = {}

    def fault(reason):
        row = next(rows)
        wanted[row] = reason
        return row

    replay.phase[fault("goal and its replay")] = GOAL
    replay.phase[fault("not in play")] = NO_PLAY
    replay.car_known[fault("too few players"), 1] = False
    replay.ball_known[fault("no ball")] = False
    replay.demolished[fault("demolished car"), 0] = True
    replay.ball["position"][fault("ball out of bounds"), 2] = 3000.0
    replay.cars["position"][fault("car out of bounds"), 1] = [0.0, 0.0, -40.0]
    replay.cars["velocity"][fault("impossible speed"), 0] = [2400.0, 0.0, 0.0]
    replay.cars["angular_velocity"][fault("impossible spin"), 0] = [0.0, 5.7, 0.0]
    replay.cars["quaternion"][fault("no rotation"), 0] = 0.0
    replay.cars["velocity"][fault("impossible speed"), 1] = np.nan
    row = fault("kick-off pause")
    replay.cars["velocity"][row], replay.ball["velocity"][row] = 0.0, 0.0
    row = fault("time stands still")
    replay.time[row] = replay.time[row - 1]
    row = fault("duplicate")
    for body in (replay.cars, replay.ball):
        for values in body.values():
            values[row] = values[row - 1]
    after = sort_out(replay)
    changed = np.flatnonzero(after != before)
    assert {int(row): REASONS[after[row]] for row in changed} == {int(row): reason for row, reason in wanted.items()}


def test_a_kickoff_begins_with_cars_that_stand(played):
    """Its state is the last frame of the countdown, with the controls that are held there as labels. Moving cars are none."""
    replay, _ = quiet(played)
    run = max(segments(replay, sort_out(replay))[0], key=len)
    begin = run[len(run) // 2]
    replay.phase[begin - 5 : begin] = COUNTDOWN
    assert (sort_out(replay)[begin - 5 : begin] != KEPT).all(), "bodies that move are not at a kick-off"
    rows = slice(begin - 5, begin)
    for body in (replay.cars, replay.ball):
        for name, values in body.items():
            values[rows] = values[begin] if name == "position" else 0.0
    replay.cars["position"][rows, :, 2], replay.cars["quaternion"][rows] = 17.0, [0.0, 0.0, 0.0, 1.0]
    replay.ball["quaternion"][rows] = [0.0, 0.0, 0.0, 1.0]
    replay.throttle[rows], replay.steer[rows] = 255, 128
    reason = sort_out(replay)
    assert [REASONS[x] for x in reason[begin - 5 : begin + 1]] == ["countdown"] * 4 + ["kept"] * 2
    (kickoff,) = (run for run in segments(replay, reason)[0] if run[0] == begin - 1)
    moments = resample(replay, kickoff, ticks=8)
    assert not moments.cars["velocity"][0].any() and (carried_controls(moments)[0][0, :, 0] == 1.0).all()
    replay.demolished[begin - 1, 0] = True
    assert sort_out(replay)[begin - 1] != KEPT, "a frame with another fault stays out"


def test_a_stick_rests_until_it_is_first_moved():
    """Files carry the motions of sticks. One that no file of the game carries for anybody stays unknown."""
    replay = Replay.blank(6, [0, 1])
    replay.car_known[:5] = True
    replay.steer[2:, 1] = 255
    _rest_sticks(replay)
    assert replay.steer[:, 0].tolist() == [NEUTRAL] * 5 + [UNKNOWN] and replay.steer[:, 1].tolist() == [NEUTRAL] * 2 + [255] * 4
    assert (replay.throttle == UNKNOWN).all()


def test_gaps_in_time_cut_segments(played):
    replay, _ = quiet(played)
    reason = sort_out(replay)
    runs, gaps = segments(replay, reason)
    longest = max(runs, key=len)
    replay.time[longest[len(longest) // 2] :] += 5.0
    cut, more = segments(replay, sort_out(replay))
    assert more == gaps + 1 and len(cut) == len(runs) + 1


def generated(monkeypatch, played):
    """The import reads games of ours where files begin with their number."""
    from wavedash.replays import one_file
    from wavedash.replays.read import read_replay as real

    def reader(path):
        text = path.read_bytes()
        if not text.startswith(b"game "):
            return real(path)
        replay, _ = as_replay(played, int(text[5:6]), seed=1)
        replay.identity = text[7:].decode()
        return replay

    monkeypatch.setattr(one_file, "read_replay", reader)


def test_a_folder_with_good_and_bad_files(tmp_path, monkeypatch, played):
    generated(monkeypatch, played)
    folder, out = tmp_path / "in", tmp_path / "out"
    (folder / "below").mkdir(parents=True)
    for name, text in (("a", b"game 0 one"), ("b", b"game 1 two"), ("below/c", b"game 0 one"), ("d", b"game 2 two"), ("e", b""),
                       ("f", b"not a replay"), ("g", bytes(5000))):
        (folder / f"{name}.replay").write_bytes(text)
    summary = import_folder(folder, out, ImportSettings(), workers=0)
    problems = {game["file"]: game["problem"] for game in summary["games"]}
    assert not problems["a.replay"] and not problems["b.replay"]
    assert "same file as a.replay" in problems["c.replay"] and "same game as b.replay" in problems["d.replay"]
    assert "empty" in problems["e.replay"] and "cannot be parsed" in problems["f.replay"] and problems["g.replay"]
    assert all(name in import_table(summary) for name in ("e.replay", "countdown", "frames-1v1.safetensors"))
    assert summary == json.loads((out / "import.json").read_text()) and not (out / "parts").exists()
    total = sum(game["frames"] for game in summary["games"] if not game["problem"])
    assert sum(summary["frames"].values()) == total

    frames = load_frames(out / "frames-1v1.safetensors")  # refuses states that cannot occur
    assert frames.arenas == summary["starts"] > 20
    read = demonstrations.read(out / "demonstrations-1v1.safetensors", "states")  # refuses what cannot be learned from
    episode, known = read.tensors["episode"], read.tensors["known"]
    recording, games = read.tensors["recording"], torch.tensor([0, 1])
    assert torch.equal(recording.unique(), games) and (recording.diff() >= 0).all()
    assert not set(episode[recording == 0].tolist()) & set(episode[recording == 1].tolist())
    assert read.ticks == 8 and read.tensors["controls"].shape == (len(episode), 2, 8)
    assert (episode.diff() >= 0).all() and (episode.diff() <= 1).all() and int(known.sum()) == summary["labels"] > 0


def test_an_interrupted_import_goes_on(tmp_path, monkeypatch, played):
    generated(monkeypatch, played)
    folder = tmp_path / "in"
    folder.mkdir()
    for index in range(3):
        (folder / f"{index}.replay").write_bytes(b"game %d g%d" % (index, index))
    whole = import_folder(folder, tmp_path / "whole", ImportSettings(), workers=0)
    worked = []
    real = importing.work_on

    def interrupted(path, part, settings):
        worked.append(path.name)
        if len(worked) == 2:
            raise KeyboardInterrupt
        return real(path, part, settings)

    monkeypatch.setattr(importing, "work_on", interrupted)
    shown = []
    with pytest.raises(KeyboardInterrupt):
        import_folder(folder, tmp_path / "out", ImportSettings(), workers=0, show=shown.append)
    assert "same command goes on" in shown[-1]
    assert not (tmp_path / "out" / "import.json").exists()
    assert import_folder(folder, tmp_path / "out", ImportSettings(), workers=0) == whole
    assert worked == ["0.replay", "1.replay", "1.replay", "2.replay"], "the first is not read again"
    for name in ("frames", "demonstrations"):
        first, second = (load_file(tmp_path / run / f"{name}-1v1.safetensors") for run in ("whole", "out"))
        assert first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)


def test_parts_of_an_interrupted_import_with_other_settings_are_swept(tmp_path, monkeypatch, played):
    generated(monkeypatch, played)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.replay").write_bytes(b"game 0 one")
    parts = tmp_path / "out" / "parts"
    parts.mkdir(parents=True)
    write_part(parts / "ofanother.safetensors", Imported("a.replay"))
    (parts / ".killed.safetensors.tmp").write_bytes(b"torn")
    assert import_folder(tmp_path / "in", tmp_path / "out", ImportSettings(), workers=0)["imported"] == 1
    assert not parts.exists()


def test_files_of_an_earlier_import_are_named(tmp_path, monkeypatch, played):
    """They stay: who imports one folder after another into OUT wants both. But nobody must take them for new ones."""
    generated(monkeypatch, played)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.replay").write_bytes(b"game 0 one")
    out, shown = tmp_path / "out", []
    import_folder(tmp_path / "in", out, ImportSettings(), workers=0, show=shown.append)
    assert not any("earlier" in line for line in shown)
    (tmp_path / "in" / "a.replay").write_bytes(b"nothing")
    import_folder(tmp_path / "in", out, ImportSettings(), workers=0, show=shown.append)
    named = [line for line in shown if "earlier" in line]
    assert len(named) == 2 and "demonstrations-1v1" in named[0] and (out / "frames-1v1.safetensors").exists()


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file whose reading fails, also for root")
def test_a_file_that_cannot_be_read_is_named(tmp_path, monkeypatch, played):
    generated(monkeypatch, played)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.replay").write_bytes(b"game 0 one")
    (tmp_path / "in" / "b.replay").symlink_to("/proc/self/mem")
    summary = import_folder(tmp_path / "in", tmp_path / "out", ImportSettings(), workers=0)
    assert summary["imported"] == 1 and "cannot be read" in summary["games"][1]["problem"]


@pytest.mark.skipif(os.name == "nt", reason="needs a limit on the size of files")
@pytest.mark.parametrize("within", ["a part", "demonstrations"])
def test_a_full_disk_ends_as_a_message_and_the_import_goes_on(within, tmp_path, monkeypatch, played):
    import resource
    generated(monkeypatch, played)
    (tmp_path / "in").mkdir()
    for index in range(3):
        (tmp_path / "in" / f"{index}.replay").write_bytes(b"game %d g%d" % (index, index))
    import_folder(tmp_path / "in", tmp_path / "whole", ImportSettings(), workers=0)
    room = 5000 if within == "a part" else (tmp_path / "whole" / "demonstrations-1v1.safetensors").stat().st_size - 1
    out, before = tmp_path / "out", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        with pytest.raises(UserError, match=r"cannot write .*Make room"):
            import_folder(tmp_path / "in", out, ImportSettings(), workers=0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not [*out.rglob("*.tmp"), *out.rglob("*.part"), *out.glob("import.json")]
    kept, shown = len([*out.glob("parts/*")]), []
    assert kept == (0 if within == "a part" else 3)
    assert import_folder(tmp_path / "in", out, ImportSettings(), workers=0, show=shown.append)["imported"] == 3
    assert ("imported before" in shown[0]) == bool(kept)


@pytest.mark.parametrize(("names", "mode"), [
    (("Archetypes.GameEvent.GameEvent_Soccar", "Archetypes.Ball.Ball_Default", "RumblePickups_TA_1000"), ""),
    (("Archetypes.GameEvent.GameEvent_SoccarPrivate", "Archetypes.Ball.Ball_WorldCup"), ""),
    (("GameInfo_Soccar.GameInfo.GameInfo_Soccar:GameReplicationInfoArchetype", "Archetypes.Ball.BallComponent_X"), ""),
    (("Archetypes.GameEvent.GameEvent_Items", "Archetypes.Ball.Ball_Default"), "Rumble"),
    (("Archetypes.GameEvent.GameEvent_Soccar", "Archetypes.SpecialPickups.SpecialPickup_Tornado"), "Rumble"),
    (("Archetypes.Ball.Ball_God",), "Heatseeker"), (("Archetypes.GameEvent.GameEvent_Basketball",), "Hoops"),
    (("gameinfo_hops.GameInfo.gameinfo_hops:Archetype", "Archetypes.Ball.Ball_Default"), "hops"),
    (("Archetypes.GameEvent.GameEvent_Soccar", "Archetypes.Ball.CubeBall"), "cubeball"),
])
def test_games_of_another_mode_are_told_by_the_objects_that_a_file_lists(names, mode, tmp_path):
    """They are played in arenas of the same size, with other physics."""
    data = b"\x00\x13\x00" + b"\x00".join(struct.pack("<i", len(name) + 1) + name.encode() for name in names) + b"\x00"
    assert other_mode(data) == mode
    (tmp_path / "a.replay").write_bytes(data)
    with pytest.raises(NotAReplayError, match=f"^another mode: {mode}$" if mode else "cannot be parsed"):
        read_replay(tmp_path / "a.replay")


def test_two_players_files_of_a_game_have_its_identity():
    mine, theirs = {"Id": "A", "MatchGUID": "G"}, {"Id": "B", "MatchGUID": "G"}
    assert identity_of(mine) == identity_of(theirs) == "G"
    assert identity_of({"Id": "A", "MatchGUID": None}) == "A" and identity_of({}) == ""


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs to know which files are mapped")
def test_a_part_that_was_read_can_be_removed_on_windows(tmp_path):
    """There a file cannot be removed while it is mapped into memory."""
    path = tmp_path / "part.safetensors"
    write_part(path, Imported("x", arrays={"moments.known": torch.ones(5000, 2, dtype=torch.bool)}))
    found = read_part(path)
    assert str(path) not in Path("/proc/self/maps").read_text() and found.arrays["moments.known"].all()


def test_what_goes_between_processes_holds_no_tensors(tmp_path, monkeypatch, played):
    """Each would hold a file open: with the usual limits an import of some dozens of games ended as one of damaged files."""
    generated(monkeypatch, played)
    (tmp_path / "a.replay").write_bytes(b"game 0 one")
    result = importing.work_on(tmp_path / "a.replay", tmp_path / "part.safetensors", ImportSettings())
    assert result.moments > 0 and not result.arrays and not any(isinstance(x, torch.Tensor) for x in vars(result).values())
    assert len(read_part(tmp_path / "part.safetensors").arrays["moments.known"]) == result.moments


@pytest.mark.slow
def test_worker_processes_name_damaged_files(tmp_path):
    (tmp_path / "in").mkdir()
    for index in range(3):
        (tmp_path / "in" / f"{index}.replay").write_bytes(bytes([index]) * 3000)
    summary = import_folder(tmp_path / "in", tmp_path / "out", ImportSettings(), workers=2)
    assert summary["skipped"] == 3 and all(game["problem"] for game in summary["games"])


def test_games_of_another_arena_are_skipped(played):
    replay, _ = quiet(played)
    replay.ball["position"][: replay.frames // 5, 2] = 2500.0
    assert "another arena" in import_replay("x", replay, ImportSettings(inverse="none"), None).problem


def test_torn_parts_are_made_again_and_wrong_folders_are_named(tmp_path):
    write_part(tmp_path / "part.safetensors", Imported("x", problem="why"))
    assert read_part(tmp_path / "part.safetensors").problem == "why"
    data = (tmp_path / "part.safetensors").read_bytes()
    (tmp_path / "part.safetensors").write_bytes(data[:-5])
    assert read_part(tmp_path / "part.safetensors") is None
    with pytest.raises(UserError, match=r"no \.replay files"):
        import_folder(tmp_path, tmp_path / "out", ImportSettings())


@pytest.mark.parametrize("states", [(7, 8, 9), (0, 0, 0)], ids=["as files say it", "as those of the first year, which do not"])
def test_countdowns_play_and_goals_are_told_apart(states):
    """Frames of a countdown, play, a goal at frame 16, another countdown after the goal's replay, and play again."""
    countdown, game, goal = states
    parts = [(countdown, 0, 2), (countdown, 3, 4), (game, 0, 10), (goal, 0, 5), (countdown, 3, 4), (game, 0, 20)]
    moments = [{"replicated_game_state_name": state, "replicated_game_state_time_remaining": left}
               for state, left, frames in parts for _ in range(frames)]
    assert _phases(moments, [16]).tolist() == [COUNTDOWN] * 6 + [PLAY] * 10 + [GOAL] * 5 + [COUNTDOWN] * 4 + [PLAY] * 20


def test_labels_without_a_model_are_those_of_cars_on_the_ground(played):
    replay, _ = quiet(played)
    result = import_replay("x", replay, ImportSettings(inverse="none"), None)
    known, ground = result.arrays["moments.known"], result.arrays["moments.cars.on_ground"]
    assert known.any() and not (known & ~ground).any()
    assert torch.equal(result.arrays["moments.controls"][..., 1], result.arrays["moments.controls"][..., 3])


def test_actions_of_labels_steer_as_the_replay_does(played):
    """Sticks that do not matter on the ground are not known. They must not decide which row of a table is the nearest."""
    replay, _ = quiet(played)
    arrays = import_replay("x", replay, ImportSettings(), load_model("shipped")).arrays
    controls, ground = arrays["moments.controls"], arrays["moments.cars.on_ground"] & arrays["moments.known"]
    state = empty_arenas(len(controls), RocketConfig())
    for field in FIELDS:
        part, name = field.split(".")
        getattr(getattr(state, part), name).copy_(arrays[f"moments.{field}"])
    action = LookupTable()
    action.bind(state)
    done = action.controls(action.nearest(controls, state))
    still = ground & (controls[..., JUMP] < 0.5)
    assert still.sum() > 50 and (controls[still][:, STEER].abs() > 0.9).any()
    assert torch.equal(done[still][:, STEER], controls[still][:, STEER].round()) and not done[still][:, JUMP].any()
    air = ~arrays["moments.cars.on_ground"] & arrays["moments.known"]
    assert air.any() and torch.equal(done[air][:, YAW], controls[air][:, YAW].round())


def test_the_first_moment_of_a_car_on_the_ground_is_a_label(played):
    """At kick-offs it is how cars drive off. In the air it needs the motion before, which is not there."""
    labels = 0
    for arena in range(4):
        replay, _ = as_replay(played, arena, arena)
        arrays = import_replay("x", replay, ImportSettings(), load_model("shipped")).arrays
        first = arrays["moments.episode"].diff(prepend=torch.tensor([-1])) != 0
        known, ground = arrays["moments.known"][first], arrays["moments.cars.on_ground"][first]
        assert not (known & ~ground).any() and not arrays["moments.controls"][first][known][:, JUMP].any()
        labels += int(known.sum())
    assert labels
