"""Walking: a four-legged robot that sees its terrain."""
