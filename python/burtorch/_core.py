# python/burtorch/_core.py — the compiled part, in the instruction set that fits this processor best
# SPDX-License-Identifier: MIT
"""Chooses one of the extension modules and offers its names.

The environment variable BURTORCH_ISA overrides the choice: baseline, avx2 or avx512.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path

from . import _cpu


def _choose() -> str:
    here = [folder for folder in _FOLDERS if folder.is_dir()]
    built = {p.name.split(".")[0][len("_core_") :] for f in here for p in f.glob("_core_*.*")}
    runnable = [isa for isa in _cpu.supported() if isa in built]
    wanted = os.environ.get("BURTORCH_ISA")
    if not wanted:
        if not runnable:
            raise ImportError(
                f"this processor can run none of burtorch's builds: {', '.join(sorted(built))}"
            )
        return runnable[0]
    if wanted not in built:
        raise ImportError(
            f"BURTORCH_ISA={wanted}: there is no such build; there are {', '.join(sorted(built))}"
        )
    if wanted not in runnable:
        raise ImportError(
            f"BURTORCH_ISA={wanted}: this processor can't run it; it can run {', '.join(runnable)}"
        )
    return wanted


_FOLDERS = [Path(_cpu.__file__).parent]
_isa = _choose()
_module = importlib.import_module(f"burtorch._core_{_isa}")
_compiler: str = _module._compiler
__all__ = [name for name in vars(_module) if not name.startswith("_")]
globals().update({name: getattr(_module, name) for name in __all__})
_io = _module._io
_models = _module._models
_optim = _module._optim
_viz = _module._viz
_compile = _module._compile
