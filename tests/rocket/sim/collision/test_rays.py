"""Rays that hit the ball and a car, against many points along each ray."""
import numpy as np
import warp as wp

from tests.rocket.sim.poses import SHAPES, rotations, to_warp, turned, unit_vectors, warp_shapes
from wavedash.rocket.sim.collision.rays import ray_hits_box, ray_hits_sphere
from wavedash.rocket.sim.collision.shapes import CarShape

LENGTH, STEPS = 60.0, 1201


@wp.kernel(enable_backward=False)
def cast(
    sources: wp.array(dtype=wp.vec3), targets: wp.array(dtype=wp.vec3), positions: wp.array(dtype=wp.vec3),
    turns: wp.array(dtype=wp.mat33), hitboxes: wp.array(dtype=wp.int32), shapes: wp.array(dtype=CarShape),
    hits: wp.array2d(dtype=wp.int32), fractions: wp.array2d(dtype=wp.float32), normals: wp.array2d(dtype=wp.vec3),
):
    i = wp.tid()
    hit, fraction, normal = ray_hits_sphere(sources[i], targets[i], positions[i])
    hits[0, i] = hit
    fractions[0, i] = fraction
    normals[0, i] = normal
    hit, fraction, normal = ray_hits_box(sources[i], targets[i], positions[i], turns[i], shapes[hitboxes[i]])
    hits[1, i] = hit
    fractions[1, i] = fraction
    normals[1, i] = normal


def test_a_ray_ends_at_its_first_point_inside_a_body() -> None:
    n, dice = 800, np.random.default_rng(0)
    hitbox, position, turn = dice.integers(0, 6, n), dice.uniform(-500, 500, (n, 3)), rotations(n, dice)
    start = unit_vectors((n, 3), dice)
    source = position + start * dice.uniform(20, 140, (n, 1))
    way = unit_vectors((n, 3), dice) - 0.8 * start
    way *= LENGTH / np.linalg.norm(way, axis=1, keepdims=True)
    way[:100] = turn[:100, :, 2] * -LENGTH  # across one face, along the others
    hits, fractions = wp.zeros((2, n), dtype=wp.int32, device="cpu"), wp.zeros((2, n), dtype=wp.float32, device="cpu")
    normals = wp.zeros((2, n), dtype=wp.vec3, device="cpu")
    vectors = [to_warp(v.astype(np.float32), wp.vec3) for v in (source, source + way, position)]
    inputs = [*vectors, to_warp(turn.astype(np.float32), wp.mat33), to_warp(hitbox.astype(np.int32), wp.int32), warp_shapes()]
    wp.launch(cast, n, [*inputs, hits, fractions, normals], device="cpu")

    shape, along = SHAPES[hitbox], np.linspace(0, 1, STEPS)
    walk = (source - position)[:, None] + way[:, None] * along[:, None]  # [n, STEPS, 3]
    in_box = np.abs(turned(np.swapaxes(turn, 1, 2)[:, None], walk) - shape["center"][:, None]) - shape["half"][:, None]
    for kind, depth in enumerate((np.linalg.norm(walk, axis=2) - 91.25, in_box.max(2))):  # outside: positive
        first = (depth <= 0).argmax(1)
        expected = (depth <= 0).any(1) & (first > 0)
        unsure = np.abs(depth.min(1)) < 0.05
        got = hits.numpy()[kind] == 1
        assert (got == expected)[~unsure].all()
        assert 100 < expected.sum() < n - 100
        both = got & expected
        assert np.abs(fractions.numpy()[kind] - along[first])[both].max() < 2 / STEPS
        # A point is a little outside along the normal, and a little inside against it.
        ends = source + way * fractions.numpy()[kind][:, None] - position
        for step in (-0.1, 0.1):
            there = ends + step * normals.numpy()[kind]
            local = turned(np.swapaxes(turn, 1, 2), there) - shape["center"]
            outside = np.linalg.norm(there, axis=1) - 91.25 if kind == 0 else (np.abs(local) - shape["half"]).max(1)
            assert (outside * np.sign(step) > 0.09)[both].mean() > 0.98  # not at an edge
