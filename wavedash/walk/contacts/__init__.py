"""Contacts of geoms with height fields on MuJoCo Warp, by kernels of our own."""
