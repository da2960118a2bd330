"""What the page reads of a walk's header: the ground is as MuJoCo has it, and a damaged header shows flat ground with words."""
from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.page.browser import required
from tests.page.test_bundle import sources  # noqa: F401 (a fixture)
from wavedash.walk.terrain.ground import Ground
from wavedash.walk.terrain.layout import Layout


@pytest.fixture(scope="module")
def module(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    """page/src/scene/walk-header.ts as a module of Node."""
    node, out = required("node"), tmp_path_factory.mktemp("walk") / "header.mjs"
    build = ("import { build } from 'esbuild'; await build({ entryPoints: ['src/scene/walk-header.ts'], bundle: true, "
             f"format: 'esm', outfile: {json.dumps(str(out))}, logLevel: 'error' }});")
    subprocess.run([node, "--input-type=module", "-e", build], cwd=sources, check=True)
    return out


def asked(module: Path, expression: str, given: Any) -> Any:
    code = (f"import * as walk from {json.dumps(module.as_uri())}; import {{ readFileSync }} from 'node:fs'; "
            f"const given = JSON.parse(readFileSync(0, 'utf8')); console.log(JSON.stringify({expression}));")
    done = subprocess.run([required("node"), "--input-type=module", "-e", code], input=json.dumps(given), capture_output=True,
                          text=True, check=True)
    return json.loads(done.stdout)


def scene_of(ground: Ground, tile: int) -> dict[str, Any]:
    heights = ground.heights[tile].numpy()
    packed = np.rint(heights * 1000).astype("<i2").tobytes()
    return {"terrain": "stairs_up", "level": 1, "rows": heights.shape[0], "columns": heights.shape[1],
            "resolution": ground.resolution, "origin": [-ground.length / 2, -ground.width / 2],
            "heights": base64.b64encode(packed).decode(), "far": 2.0,
            "geoms": [{"kind": "capsule", "size": [0.02, 0.09, 0], "colour": [1, 0, 0]}]}


@pytest.mark.slow
def test_the_height_of_the_ground_is_that_of_the_simulation(module: Path) -> None:
    """Points everywhere, also beyond the edge, against the ground that robots walk on."""
    ground = Ground.named({"rough": {"high": 0.3}}, levels=2, layout=Layout.named("track", 0.1), seed=3)
    points = (torch.rand(500, 2, generator=torch.Generator().manual_seed(0)) - 0.5) * torch.tensor([24.0, 6.0])
    expected = ground.height(torch.tensor([1]), points[None])[0].numpy()
    given = {"header": {"scene": scene_of(ground, 1)}, "points": points.tolist()}
    found = asked(module, "(() => { const { heights } = walk.readWalk(given.header); "
                          "return given.points.map(([x, y]) => walk.heightAt(heights, x, y)); })()", given)
    assert np.abs(np.array(found) - expected).max() < 0.0006 and expected.std() > 0.05  # heights are in whole millimetres


@pytest.mark.slow
def test_damaged_headers_are_shown_as_far_as_they_go(module: Path) -> None:
    ground = Ground.named({"stairs_up": 1.0}, levels=2, layout=Layout.named("track", 0.1), seed=0)
    good = scene_of(ground, 1)
    wrong = [{**good, **change} for change in (
        {"heights": good["heights"][:-8]}, {"heights": "%%%"}, {"heights": 3}, {"rows": 1e9, "columns": 1e9}, {"rows": 1},
        {"rows": None}, {"resolution": 0}, {"origin": []}, {"origin": ["a", None]})]
    shapes = [{**good, "geoms": geoms} for geoms in (
        [{"kind": "mesh", "size": [1]}], [None], [{"kind": "box", "size": [-1, 1, 1]}], [{"kind": "box", "size": [1e9, 1, 1]}])]
    expression = ("given.map((scene) => { const read = walk.readWalk({ scene }); "
                  "return [read.damage, read.heights.flat, read.shapes.length, walk.heightAt(read.heights, 3, 0.2)]; })")
    found = asked(module, expression, [good, *wrong, *shapes, {}])
    assert found[0][:3] == ["", False, 1] and found[0][3] > 0.2
    assert all("drawn flat" in damage and flat and height == 0 for damage, flat, _, height in found[1:1 + len(wrong)])
    assert all("not known" in damage and not flat and count == 1 for damage, flat, count, _ in found[1 + len(wrong):-1])
    assert found[-1][1:] == [True, 0, 0]
