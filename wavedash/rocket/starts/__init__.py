"""Starts of episodes: kick-offs, random states, in the middle of a mechanic, before a goal, from replays; and mixtures."""
from wavedash.rocket.starts.anywhere import Random, Turtle
from wavedash.rocket.starts.frames import ReplayFrames, load_frames, save_frames
from wavedash.rocket.starts.kickoff import FuzzedKickoff, Kickoff
from wavedash.rocket.starts.mechanics import AirDribble, Dribble, FlipReset, JumpChallenge, Wall
from wavedash.rocket.starts.shots import Goalie, Save, Shot
from wavedash.rocket.starts.stage import Scene, Stage
from wavedash.tasks.starts import Mixture

__all__ = [
    "AirDribble", "Dribble", "FlipReset", "FuzzedKickoff", "Goalie", "JumpChallenge", "Kickoff", "Mixture", "Random",
    "ReplayFrames", "Save", "Scene", "Shot", "Stage", "Turtle", "Wall", "load_frames", "save_frames",
]
