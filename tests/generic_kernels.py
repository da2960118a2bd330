"""Compiles Warp's kernels for any CPU of the architecture instead of this one: no FMA, no vectors beyond SSE2.

This is a plugin for pytest, `-p tests.generic_kernels`, which tests/on_every_cpu.py loads. The option of our kernels overrules
Warp's option for it, so the flags are changed where Warp puts them together. They are part of the key of its cache: the first
run compiles everything, for some minutes, and later ones nothing.
"""
from __future__ import annotations

from warp._src import context

resolve = context._resolve_cpu_compiler_flags


def for_any_cpu(module_flags: str | None, config_flags: str | None) -> str:
    return " ".join(flag for flag in resolve(module_flags, config_flags).split() if flag != "-march=native")


context._resolve_cpu_compiler_flags = for_any_cpu
