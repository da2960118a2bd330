"""Walking: a four-legged robot on terrain."""
