"""A four-legged robot of primitives that stands for the real one in pictures."""
from __future__ import annotations

import mujoco
import numpy as np

LEG = """
<body pos="{x} {y} 0"><geom type="cylinder" size=".045 .03" zaxis="0 1 0" rgba=".2 .2 .23 1"/>
  <body pos="0 {side} 0" euler="0 {thigh} 0"><geom type="capsule" fromto="0 0 0 0 0 -.2" size=".025" rgba=".93 .55 .18 1"/>
    <body pos="0 0 -.2" euler="0 {calf} 0"><geom type="capsule" fromto="0 0 0 0 0 -.2" size=".016" rgba=".2 .2 .23 1"/>
      <geom type="sphere" pos="0 0 -.2" size=".022" rgba=".1 .1 .1 1"/></body></body></body>"""


def quadruped(position: tuple[float, float, float], yaw: float = 0.0,
              pitch: float = 0.0) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Angles in degrees."""
    legs = "".join(LEG.format(x=0.18 * x, y=0.06 * y, side=0.07 * y, thigh=thigh, calf=calf)
                   for x, thigh, calf in ((1, 35, -80), (-1, 52, -88)) for y in (-1, 1))
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><compiler angle="degree" eulerseq="zyx"/><worldbody>
        <body pos="{position[0]} {position[1]} {position[2]}" euler="{yaw} {pitch} 0">
        <geom type="box" size=".19 .055 .05" rgba=".93 .55 .18 1"/><geom type="box" pos=".2 0 .02" size=".03 .045 .03"
        rgba=".2 .2 .23 1"/>{legs}</body></worldbody></mujoco>""")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert np.isfinite(data.geom_xpos).all()
    return model, data
