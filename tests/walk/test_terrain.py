"""The terrain: every kind measured on its height maps, and heights between corners against MuJoCo's rays and contacts."""
from __future__ import annotations

from itertools import pairwise

import mujoco
import numpy as np
import pytest
import torch

from tests.rocket.no_host_sync import NoHostSync
from tests.roundings import assert_within, unit
from wavedash.errors import UserError
from wavedash.walk.terrain import LAYOUTS, Ground, Layout, Terrain, tile, track
from wavedash.walk.terrain.ground import TERRAINS
from wavedash.walk.terrain.layout import RIM

SHIPPED = list(TERRAINS.shipped("terrain"))
LEVELS = 5
CELL = 0.05


def made(*names, layout=None, seed=0, levels=LEVELS, hardest=1.0, **options):
    return Ground.named({name: {"weight": 1, **options} for name in names}, levels=levels, layout=layout or tile(), seed=seed,
                        hardest=hardest)


def rays(ground):
    """[K, 4, n] float64: the heights of each tile from its centre outward along +x, -x, +y and -y."""
    heights = ground.heights.double().numpy()
    row, column = heights.shape[1] // 2, heights.shape[2] // 2
    return np.stack([heights[:, row, column:], heights[:, row, column::-1],
                     heights[:, row:, column], heights[:, row::-1, column]], 1)


def runs(true):
    """First and one past the last index of each run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(true, int), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


# Layouts

def test_a_tile_has_its_platform_in_the_centre_and_a_rim_at_the_edge():
    layout = tile()
    assert layout.x.shape == (161, 161) and layout.start == (0.0, 0.0) and layout.reach == 2.5
    assert (layout.length, layout.width) == (8.0, 8.0)
    for row, column in [(0, 0), (80, 80), (80, 100), (80, 101), (130, 90), (10, 95), (160, 12)]:
        x, y = (column - 80) * CELL, (row - 80) * CELL
        assert (layout.x[row, column], layout.y[row, column]) == pytest.approx((x, y))
        assert layout.distance[row, column] == pytest.approx(min(max(abs(x), abs(y), 1.0) - 1.0, 2.5))


def test_a_track_has_its_platform_at_the_low_end_and_leads_along_x():
    layout = track()
    assert layout.x.shape == (81, 401) and layout.start == (-9.0, 0.0) and layout.reach == 17.5
    assert (layout.length, layout.width) == (20.0, 4.0)
    expected = np.clip(np.linspace(-10, 10, 401) + 8, 0, 20 - 2 - RIM)
    assert_within(layout.distance, np.broadcast_to(expected, (81, 401)), 1e-8)
    assert not layout.between[:, :41].any() and layout.between[:, 41:390].all() and not layout.between[:, 390:].any()


@pytest.mark.parametrize("resolution", [0.05, 0.1])
@pytest.mark.parametrize(("size", "platform"), [(8.0, 2.0), (7.4, 1.4), (6.6, 0.6), (5.8, 2.2), (9.2, 3.4)])
def test_corners_on_the_edges_of_platform_and_rim_belong_to_them(resolution, size, platform):
    """None of these lengths but the first is exact in binary."""
    square, strip = tile(resolution, size, platform), track(resolution, size, 4.0, platform)
    for layout, on_platform in ((square, platform / 2), (strip, platform)):
        distance = layout.distance[layout.x.shape[0] // 2]
        distance = distance[len(distance) // 2:] if layout is square else distance
        assert (distance == 0).sum() == round(on_platform / resolution) + 1
        assert (distance == layout.reach).sum() == round(RIM / resolution) + 1


@pytest.mark.parametrize("name", LAYOUTS)
def test_common_corners_of_two_resolutions_are_the_same_numbers(name):
    fine, coarse = Layout.named(name, 0.02), Layout.named(name, 0.1)
    for field in ("x", "y", "distance"):
        assert (getattr(fine, field)[::5, ::5] == getattr(coarse, field)).all()


# Kinds, measured

def test_stairs_have_the_risers_and_treads_of_legged_gym():
    ground = made("stairs_up", "stairs_down")
    profiles = rays(ground)
    for level in range(LEVELS):
        riser = 0.05 + 0.18 * level / (LEVELS - 1)
        for side in range(4):
            up, down = profiles[level, side], profiles[LEVELS + level, side]
            steps = np.diff(up)
            faces = np.flatnonzero(steps)
            assert_within(steps[faces], np.full(len(faces), riser), 4 * unit() * up.max())
            assert faces[0] == 20, "the first riser is at the edge of the platform"
            treads = np.diff(faces) * CELL
            assert set(np.diff(faces).tolist()) <= {6, 7}, "a tread of 0.31 m has 6 or 7 cells"
            assert abs(treads.sum() - 0.31 * len(treads)) <= CELL, "treads are right on average"
            assert len(faces) == 9
            assert (down == -up).all()


def test_treads_that_are_whole_cells_are_exact():
    (profile, *_), = rays(made("stairs_up", levels=1, tread=0.3, low=0.1, high=0.1))
    faces = np.flatnonzero(np.diff(profile))
    assert np.diff(faces).tolist() == [6] * 8


def test_slopes_rise_and_fall_evenly():
    profiles = rays(made("slope", "slope_down"))
    for level in range(LEVELS):
        grade = 0.4 * level / (LEVELS - 1)
        for side in range(4):
            up, down = profiles[level, side], profiles[LEVELS + level, side]
            slopes = np.diff(up) / CELL
            assert (slopes[:20] == 0).all() and (slopes[70:] == 0).all(), "platform and rim are level"
            assert_within(slopes[20:70], np.full(50, grade), 2 * unit() * up.max() / CELL)
            assert (down == -up).all()


def test_rough_ground_stays_within_its_amplitude_and_is_linear_between_nodes():
    ground = made("rough", layout=track())
    heights = ground.heights.double().numpy()
    inner = heights[:, :, 60:380]  # beyond the fade; nodes are 4 cells apart
    for level in range(LEVELS):
        amplitude = 0.02 + 0.08 * level / (LEVELS - 1)
        assert 0.98 * amplitude < abs(inner[level]).max() <= amplitude
        assert abs(inner[level].mean()) < 0.1 * amplitude
        second = np.diff(inner[level], n=2, axis=1)
        bends = np.flatnonzero(abs(second).max(0) > 1e-6)
        assert bends.tolist() == list(range(3, 318, 4)), "it bends at nodes only"


def test_obstacles_are_as_high_and_deep_as_their_difficulty_says():
    ground = made("obstacles")
    for level, heights in enumerate(ground.heights.double().numpy()):
        tallest = 0.05 + 0.2 * level / (LEVELS - 1)
        found = np.unique(heights.round(6))
        assert found.tolist() == pytest.approx([-tallest, -tallest / 2, 0, tallest / 2, tallest], abs=1e-6)
        assert 0.3 < (heights != 0)[tile().between].mean() < 0.8


def test_more_or_larger_obstacles_cover_more_ground():
    def covered(**options):
        return (made("obstacles", layout=track(), **options).heights != 0).double().mean().item()
    assert covered(density=0.1) < covered(density=0.3) < covered(density=1.0)
    assert covered(smallest=0.2, largest=0.5) < covered(smallest=1.0, largest=1.5)


def test_stones_and_the_gaps_between_them_have_their_sizes():
    layout = track()
    ground = made("stones", layout=layout)
    for level, heights in enumerate(ground.heights.double().numpy()):
        difficulty = level / (LEVELS - 1)
        size, gap = 1.575 - 1.35 * difficulty, 0.05 + 0.15 * difficulty
        assert set(np.unique(heights)) == {-1.0, 0.0}
        solid = heights[:, 41:390] == 0
        columns = [column for column in solid.T if column.any()]  # across a row of stones
        stones = [end - first for column in columns for first, end in runs(column) if first > 0 and end < len(column)]
        pits = [end - first for column in columns for first, end in runs(~column) if first > 0 and end < len(column)]
        rows = runs(solid.any(0))[1:-1]  # rows of stones along x, but for those cut by platform and rim
        for lengths, expected in ((stones, size), (pits, gap), ([end - first for first, end in rows], size)):
            assert len(lengths) >= 5
            assert abs(np.array(lengths) * CELL - expected).max() < CELL
            # The first corners of rows and of stones are anywhere between two corners of the map.
            assert np.mean(lengths) * CELL == pytest.approx(expected, abs=0.5 * CELL)


def test_stones_cover_less_ground_the_harder_they_are():
    layout = track()
    solid = (made("stones", layout=layout).heights == 0).double().numpy()
    shares = [level[layout.between].mean() for level in solid]
    assert all(harder < easier for easier, harder in pairwise(shares))
    sizes = [(1.575 - 1.35 * d, 0.05 + 0.15 * d) for d in np.linspace(0, 1, LEVELS)]
    assert shares == pytest.approx([(size / (size + gap)) ** 2 for size, gap in sizes], abs=0.05)
    assert shares[0] > 0.9 and shares[-1] < 0.33


@pytest.mark.parametrize("name", ["stones", "gaps"])
def test_shallow_pits_have_the_same_outlines_and_deepen_with_the_level(name):
    deep, shallow = made(name), made(f"shallow_{name}")
    for level, (heights, real) in enumerate(zip(shallow.heights.double(), deep.heights.double(), strict=True)):
        depth = 0.05 + 0.95 * (level / (LEVELS - 1)) ** 2
        assert heights.unique().tolist() == pytest.approx([-depth, 0.0])
        assert float((heights < 0).double().mean()) == pytest.approx(float((real < 0).double().mean()), rel=0.2)


@pytest.mark.parametrize("name", LAYOUTS)
def test_gaps_have_their_width_and_none_is_cut_by_the_rim(name):
    layout = Layout.named(name)
    row, start = layout.x.shape[0] // 2, np.flatnonzero(layout.distance[layout.x.shape[0] // 2] == 0)[-1]
    ground = made("gaps", layout=layout)
    for level, heights in enumerate(ground.heights.double().numpy()):
        width = 0.1 + 0.7 * level / (LEVELS - 1)
        found = runs(heights[row, start:] == -1.0)
        assert set(np.unique(heights)) == {-1.0, 0.0}
        assert len(found) == int((layout.reach + 1e-9) // (0.6 + width)) > 0
        for i, (first, end) in enumerate(found):
            assert abs((end - first) * CELL - width) < CELL
            assert abs(first * CELL - (i * (0.6 + width) + 0.6)) < CELL
            assert end * CELL < layout.reach + 1e-9
        if level in (0, LEVELS - 1):  # 0.1 and 0.8 m are whole cells
            assert {end - first for first, end in found} == {round(width / CELL)}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("roughness", [0.0, 0.04])
def test_the_platform_is_flat_and_the_rim_is_level(layout, roughness):
    layout = Layout.named(layout)
    ground = made(*SHIPPED, layout=layout, roughness=roughness)
    platform, rim = layout.distance == 0, layout.distance == layout.reach
    x, y = ground.start
    assert platform[(abs(layout.x - x) < 0.99) & (abs(layout.y - y) < 0.99)].all(), "a metre around the start is platform"
    for heights in ground.heights.numpy():
        assert (heights[platform] == 0.0).all()
        assert np.unique(heights[rim]).size == 1
    tiles = torch.arange(len(ground.heights))
    assert (ground.height(tiles, torch.tensor([ground.start]).expand(len(tiles), 1, 2)) == 0).all()


def hardness(name, heights, layout):
    """A number that a robot would agree on: the highest step between neighbours, or how much of the ground is missing."""
    if name == "stones":
        return (heights[layout.between] < -0.5).mean()
    if name == "gaps":
        return max(end - first for first, end in runs(heights[len(heights) // 2, heights.shape[1] // 2:] < -0.5))
    return max(abs(np.diff(heights, axis=0)).max(), abs(np.diff(heights, axis=1)).max())


@pytest.mark.parametrize("name", [name for name in SHIPPED if name != "flat"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_kind_gets_harder_with_every_level(name, seed):
    layout = tile()
    found = [hardness(name, heights, layout) for heights in made(name, seed=seed).heights.numpy()]
    assert all(harder > easier for easier, harder in pairwise(found)), found


def test_flat_ground_is_flat_at_every_level():
    assert made("flat").is_flat
    assert not made("flat", roughness=0.02).is_flat
    assert not made("flat", "slope").is_flat


def test_roughness_adds_noise_of_so_many_metres_on_top_of_what_is_there():
    plain, rough = made(*SHIPPED, layout=track()), made(*SHIPPED, layout=track(), roughness=0.03)
    noise = (rough.heights - plain.heights).numpy()
    for each in noise:
        assert 0.015 < abs(each).max() <= 0.03 + 2e-6
        assert abs(np.diff(each, axis=1)).max() < 0.02, "hills, not spikes"
    assert len({each.tobytes() for each in noise}) == len(noise), "every tile has noise of its own"


# What decides a tile

def test_a_tile_depends_on_its_kind_level_and_seed_alone():
    alone, among = made("rough", seed=3), made("stones", "rough", "obstacles", seed=3)
    for level in range(LEVELS):
        assert (alone.heights[alone.tile("rough", level)] == among.heights[among.tile("rough", level)]).all()
    assert (made("rough", seed=3).heights == alone.heights).all()
    assert (made("Rough", seed=3).heights == alone.heights).all(), "both spellings of a name mean the same"
    for name in ("rough", "stones", "obstacles"):
        assert (made(name, seed=3).heights != made(name, seed=4).heights).flatten(1).any(1).all()
    for name in ("flat", "slope", "stairs_up", "gaps"):
        assert (made(name, seed=3).heights == made(name, seed=4).heights).all()


def test_levels_and_kinds_have_random_numbers_of_their_own():
    heights = made("rough", "obstacles", low=0.1, high=0.1).heights
    assert len({each.numpy().tobytes() for each in heights}) == len(heights)


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_resolutions_agree_at_common_corners(name, layout):
    fine = made(name, layout=Layout.named(layout, 0.05), roughness=0.03)
    coarse = made(name, layout=Layout.named(layout, 0.1), roughness=0.03)
    assert (fine.length, fine.width) == pytest.approx((coarse.length, coarse.width))
    assert (fine.heights[:, ::2, ::2] == coarse.heights).all()


def test_levels_go_from_no_difficulty_to_the_hardest():
    ground = made("slope", levels=3, hardest=0.5)
    assert [ground.difficulty(level) for level in range(3)] == [0.0, 0.25, 0.5]
    assert ground.heights.flatten(1).amax(1).tolist() == pytest.approx([0.0, 0.25, 0.5])  # 2.5 m of slope 0.4 d
    assert made("slope", levels=1, hardest=0.5).high == pytest.approx(0.5)


def test_a_ground_knows_its_tiles():
    terrain = {"flat": 1, "stairs_up": {"weight": 2, "tread": 0.4}, "StairsDown": 0.5}
    ground = Ground.named(terrain, levels=3, layout=track(), seed=0)
    assert ground.heights.shape == (9, 81, 401) and ground.heights.dtype == torch.float32
    assert ground.kinds == ("flat", "stairs_up", "StairsDown") and ground.shares == (1.0, 2.0, 0.5)
    assert (ground.length, ground.width) == pytest.approx((20.0, 4.0)) and ground.start == (-9.0, 0.0)
    assert ground.tile("stairs_up", 2) == 5
    assert (ground.low, ground.high) == (ground.heights.min().item(), ground.heights.max().item())
    assert ground.heights[5].max() == ground.high > 0 > ground.low == ground.heights[ground.tile("StairsDown", 2)].min()
    moved = ground.to("meta")
    assert moved.heights.device.type == "meta" and moved.kinds == ground.kinds


# A user's own terrain, and refusals

class Craters(Terrain):
    def __init__(self, radius: float = 0.5) -> None:
        self.radius = radius

    def heights(self, layout, difficulty, random):
        x, y = random.uniform(1.5, 3.0, 2)
        return np.where(np.hypot(layout.x - x, layout.y - y) < self.radius, -0.3 * difficulty, 0.0) * layout.between


class Tilted(Terrain):
    def heights(self, layout, difficulty, random):
        return layout.x


class Small(Terrain):
    def heights(self, layout, difficulty, random):
        return layout.x[1:]


class Endless(Terrain):
    def heights(self, layout, difficulty, random):
        return np.where(layout.distance > 0, np.inf, 0.0)


class NoTerrain:
    pass


def test_a_terrain_of_ones_own_is_named_by_its_import_path():
    name = f"{__name__}:Craters"
    ground = Ground.named({name: {"weight": 2, "radius": 0.8}, "flat": 1}, levels=2, layout=tile(), seed=0)
    assert ground.kinds == (name, "flat") and ground.shares == (2.0, 1.0)
    dug = ground.heights[ground.tile(name, 1)] < 0
    assert dug.sum().item() * CELL ** 2 == pytest.approx(np.pi * 0.8 ** 2, rel=0.05)
    assert ground.low == pytest.approx(-0.3)


@pytest.mark.parametrize(("terrain", "says"), [
    ({"stair_up": 1}, "there is no terrain 'stair_up'; did you mean 'stairs_up'?"),
    ({"volcano": 1}, "The terrains are: flat, gaps, obstacles, rough, shallow_gaps, shallow_stones, slope, slope_down, "
     "stairs_down, stairs_up, stones"),
    ({"stairs_up": {"thread": 0.3}}, "no option 'thread'; did you mean 'tread'?"),
    ({"stairs_up": {"tread": 0.0}}, "tread must be above 0, not 0.0"),
    ({"rough": {"low": 0.2}}, "low must be 0 or more and high no smaller; they are 0.2 and 0.1"),
    ({"obstacles": {"smallest": 3.0}}, "smallest must be 0 or more and largest no smaller"),
    ({"stones": {"gap": float("nan")}}, "gap must be above 0, not nan"),
    ({"flat": -1}, "terrain 'flat' needs a weight of 0 or more, not -1"),
    ({"flat": {"roughness": "a lot"}}, "terrain 'flat' needs a roughness of 0 or more, not 'a lot'"),
    ({"flat": 0, "slope": 0}, "one kind of terrain needs a weight above 0: flat, slope have none"),
    ({}, "at least one kind"),
    ({f"{__name__}:NoTerrain": 1}, "no class derived from wavedash.walk.terrain.Terrain"),
    ({f"{__name__}:Tilted": 1}, "is not 0 on the platform where robots begin"),
    ({f"{__name__}:Small": 1}, "returned heights of shape [160, 161], and they are [161, 161]"),
    ({f"{__name__}:Endless": 1}, "returned heights that are not finite"),
])
def test_what_cannot_be_made_is_refused_with_the_reason(terrain, says):
    with pytest.raises(UserError) as refused:
        Ground.named(terrain, levels=2, layout=tile(), seed=0)
    assert says in str(refused.value)


def test_layouts_levels_and_tiles_that_do_not_exist_are_refused():
    with pytest.raises(UserError, match="no layout 'trak'; did you mean 'track'"):
        Layout.named("trak")
    for resolution in (0.03, 0.0, -0.1, 20.0):
        with pytest.raises(UserError, match="cannot be divided into whole cells"):
            tile(resolution)
    with pytest.raises(UserError, match="no terrain fits between the platform and the rim"):
        tile(size=3.0)
    for levels in (0, 1.5, True):
        with pytest.raises(UserError, match="whole number of levels"):
            made("flat", levels=levels)
    with pytest.raises(UserError, match=r"from 0 to 1, not 1\.5"):
        made("flat", hardest=1.5)
    for kind, level in (("slope", 0), ("flat", LEVELS), ("flat", -1)):
        with pytest.raises(UserError, match="there is no tile"):
            made("flat").tile(kind, level)


# Heights between corners, against MuJoCo

def random_ground(tiles=3, rows=7, columns=10, resolution=0.1):
    heights = torch.rand(tiles, rows, columns, generator=torch.Generator().manual_seed(0)) - 0.6
    return Ground(heights, resolution, ("random",), tiles, (0.0, 0.0), (1.0,))


def model_of(ground, radius=0.002):
    """A model with a height field for each tile and one geom, whose `geom_dataid` says which tile it is; and a small sphere."""
    spec = mujoco.MjSpec()
    tiles, rows, columns = ground.heights.shape
    size = [ground.length / 2, ground.width / 2, ground.high - ground.low, 0.1]
    for i in range(tiles):
        spec.add_hfield(name=str(i), nrow=rows, ncol=columns, size=size, userdata=np.zeros(rows * columns))
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname="0", pos=[0, 0, ground.low])
    body = spec.worldbody.add_body()
    body.add_freejoint()
    body.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[radius, 0, 0], mass=0.01)
    model = spec.compile()
    model.hfield_data[:] = ((ground.heights.double() - ground.low) / (ground.high - ground.low)).numpy().ravel()
    return model, mujoco.MjData(model)


def drawn_points(ground, count, margin=1e-3):
    """[K, count, 2]: anywhere on a tile, but for a millimetre at the border, where a ray may pass by."""
    extent = torch.tensor([ground.length, ground.width]) - 2 * margin
    return (torch.rand(len(ground.heights), count, 2, generator=torch.Generator().manual_seed(1)) - 0.5) * extent


def ray_heights(ground, points):
    model, data = model_of(ground)
    data.qpos[:3] = 0, 0, ground.high + 100.0
    found, above = np.zeros(points.shape[:2]), ground.high + 1.0
    for i, tile_points in enumerate(points.double().numpy()):
        model.geom_dataid[0] = i
        mujoco.mj_forward(model, data)
        for j, (x, y) in enumerate(tile_points):
            hit = np.zeros(1, np.int32)
            found[i, j] = above - mujoco.mj_ray(model, data, [x, y, above], [0, 0, -1], None, 1, -1, hit)
            assert hit[0] == 0
    return found


def rounding(ground):
    """Heights have a few roundings, and so have coordinates in cells; across a cell the ground rises by at most twice the
    height of all of it."""
    cells = max(ground.heights.shape[1:])
    return (8 + 2 * 4 * cells) * unit() * (ground.high - ground.low)


def other_diagonal(ground, points):
    """What `height` would be if cells were split the other way: that of the tiles mirrored in x."""
    mirrored = Ground(ground.heights.flip(2), ground.resolution, ground.kinds, ground.levels, ground.start, ground.shares)
    return mirrored.height(torch.arange(len(points)), points * torch.tensor([-1.0, 1.0]))


@pytest.mark.parametrize("ground", [random_ground(), made("rough", "stairs_up", "obstacles", "stones", levels=2),
                                    made("rough", "gaps", levels=2, layout=track(0.1))], ids=["random", "tile", "track"])
def test_heights_are_those_of_mujocos_triangles(ground):
    points = drawn_points(ground, 1500)
    found, expected = ground.height(torch.arange(len(points)), points), ray_heights(ground, points)
    assert_within(found, expected, rounding(ground))
    wrong = np.abs(other_diagonal(ground, points).numpy() - expected)
    assert wrong.max() > 100 * rounding(ground), "the other diagonal would be noticed"


def test_a_sphere_set_onto_the_ground_touches_it():
    ground, radius = random_ground(), 0.002
    model, data = model_of(ground, radius)
    points = drawn_points(ground, 150, margin=0.02)

    def touching(heights):
        count = 0
        for i in range(len(points)):
            model.geom_dataid[0] = i
            for (x, y), z in zip(points[i].tolist(), heights[i].tolist(), strict=True):
                data.qpos[:3] = x, y, z
                mujoco.mj_forward(model, data)
                count += data.ncon > 0
        return count / points.shape[:2].numel()

    heights = ground.height(torch.arange(len(points)), points)
    assert touching(heights) == 1.0
    assert touching(other_diagonal(ground, points)) < 0.9
    # The ground is steep: twelve radii above it a sphere may touch a slope beside it, and mostly does not.
    assert touching(heights + 12 * radius) < 0.5


def test_heights_at_corners_are_exact_and_beyond_the_border_those_of_the_border():
    ground = random_ground()
    tiles, rows, columns = ground.heights.shape
    y, x = ((torch.arange(count) - (count - 1) / 2) * 0.1 for count in (rows, columns))
    y, x = torch.meshgrid(y, x, indexing="ij")
    corners = torch.stack([x, y], -1).flatten(0, 1).expand(tiles, -1, 2)
    found = ground.height(torch.arange(tiles), corners).reshape(tiles, rows, columns)
    assert_within(found, ground.heights, rounding(ground))
    far = torch.tensor([[9.0, 9.0], [-9.0, -9.0], [9.0, -9.0], [-9.0, 9.0]]).expand(tiles, -1, 2)
    outer = ground.heights[:, [-1, 0, 0, -1], [-1, 0, -1, 0]]
    assert (ground.height(torch.arange(tiles), far) == outer).all()
    beside = torch.tensor([[0.0, 9.0]]).expand(tiles, 1, 2)
    middle = ground.heights[:, -1, 4:6].mean(-1, keepdim=True)
    assert_within(ground.height(torch.arange(tiles), beside), middle, rounding(ground))


def test_heights_of_many_robots_need_no_host_sync():
    ground = random_ground()
    tiles, points = torch.tensor([2, 0, 2, 1, 0]), drawn_points(random_ground(5), 11)
    with NoHostSync():
        found = ground.height(tiles, points)
    assert found.shape == (5, 11)
    for i, number in enumerate(tiles.tolist()):
        assert (found[i] == ground.height(torch.tensor([number]), points[i:i + 1])[0]).all()


def test_the_height_under_nan_is_nan_and_reads_nothing_elsewhere():
    ground = random_ground()
    points = torch.tensor([[[float("nan"), 0.0], [0.0, float("nan")], [float("inf"), 0.0], [0.0, 0.0]]])
    found = ground.height(torch.tensor([2]), points)
    assert found.isnan().tolist() == [[True, True, False, False]]


def test_mujocos_compiler_normalises_every_field_by_itself():
    """Why a model's `hfield_data` is written after compiling: this would be wrong otherwise."""
    spec = mujoco.MjSpec()
    for i, data in enumerate(([0.0, 0.0, 0.1, 0.2], [0.5, 0.5, 1.0, 1.0], [0.5] * 4)):
        spec.add_hfield(name=str(i), nrow=2, ncol=2, size=[1, 1, 1, 0.1], userdata=data)
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname=str(i))
    assert spec.compile().hfield_data.tolist() == [0.0, 0.0, 0.5, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
