"""The code that travels with an exported bot. It needs numpy and rlbot alone, and nothing of the rest of Wavedash."""
