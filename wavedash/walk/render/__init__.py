"""Pictures and videos of a robot on its tile, traced by a kernel: no OpenGL, no display and no driver are needed."""
