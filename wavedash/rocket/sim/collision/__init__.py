"""Collision: the field's geometry, contacts between bodies, rays of wheels, and the impulses that follow."""
