"""How well a policy walks: distance, falls, success, error and energy on every kind and level of terrain."""
