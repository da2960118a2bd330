"""The curves against the points of RocketSim's RLConst.h, interpolated by numpy."""
import numpy as np
import pytest
import warp as wp

from wavedash.rocket.sim.mechanics import curves

POINTS: dict[str, dict[float, float]] = {
    "drive_torque": {0: 1.0, 1400: 0.1, 1410: 0.0},
    "steer_angle": {0: 0.53356, 500: 0.31930, 1000: 0.18203, 1500: 0.10570, 1750: 0.08507, 3000: 0.03454},
    "powerslide_steer_angle": {0: 0.39235, 2500: 0.12610},
    "lateral_friction": {0: 1.0, 1: 0.2},
    "handbrake_long_friction": {0: 0.5, 1: 0.9},
    "non_sticky_friction": {0: 0.1, 0.7075: 0.5, 1: 1.0},
    "extra_hit_factor": {0: 0.65, 500: 0.65, 2300: 0.55, 4600: 0.30},
    "bump_ground": {0: 5 / 6, 1400: 1100.0, 2200: 1530.0},
    "bump_air": {0: 5 / 6, 1400: 1390.0, 2200: 1945.0},
    "bump_up": {0: 2 / 6, 1400: 278.0, 2200: 417.0},
}
CURVES = [getattr(curves, name) for name in POINTS]


@wp.kernel(enable_backward=False)
def evaluate(inputs: wp.array2d(dtype=wp.float32), outputs: wp.array2d(dtype=wp.float32)):
    i = wp.tid()
    for curve in range(wp.static(len(CURVES))):
        outputs[curve, i] = wp.static(CURVES[curve])(inputs[curve, i])


@pytest.fixture(scope="module")
def values() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Inputs from below the first to above the last point of each curve, and its values there."""
    inputs = np.stack([np.linspace(-0.1, 1.2, 2000) * max(points) for points in POINTS.values()]).astype(np.float32)
    for row, points in zip(inputs, POINTS.values(), strict=True):
        row[: len(points)] = list(points)
    outputs = wp.zeros(inputs.shape, dtype=wp.float32, device="cpu")
    wp.launch(evaluate, dim=inputs.shape[1], inputs=[wp.array(inputs, device="cpu"), outputs], device="cpu")
    return {name: (inputs[i], outputs.numpy()[i]) for i, name in enumerate(POINTS)}


@pytest.mark.parametrize("name", POINTS)
def test_a_curve_goes_through_its_points_and_stays_flat_beyond_them(name: str, values) -> None:
    x, y = values[name]
    points = POINTS[name]
    expected = np.interp(x.astype(np.float64), list(points), list(points.values()))
    assert np.abs(y - expected).max() <= 1e-6 * max(1.0, np.abs(expected).max())
