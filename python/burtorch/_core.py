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

_FOLDERS = [Path(_cpu.__file__).parent]


def _builds() -> list[str]:
    """The instruction sets for which there is an extension module."""
    files = [file for folder in _FOLDERS if folder.is_dir() for file in folder.glob("_core_*.*")]
    return sorted({file.name.split(".")[0][len("_core_") :] for file in files})


def _choose() -> str:
    built = _builds()
    runnable = [isa for isa in _cpu.supported() if isa in built]
    wanted = os.environ.get("BURTORCH_ISA")
    asked, can = f"BURTORCH_ISA={wanted}", ", ".join(runnable)
    if wanted and wanted not in built:
        wrong = f"{asked}: there is no such build; there are {', '.join(built)}"
    elif wanted and wanted not in runnable:
        wrong = f"{asked}: this processor can't run it; it can run {can}"
    elif not runnable:
        wrong = f"this processor can run none of burtorch's builds: {', '.join(built)}"
    else:
        return wanted or runnable[0]
    raise ImportError(wrong, name=__name__)


_isa = _choose()
_module = importlib.import_module(f"burtorch._core_{_isa}")
_compiler: str = _module._compiler
if _compiler[:1].isdigit():  # only GCC leaves its name out
    _compiler = f"GCC {_compiler}"
__all__ = [name for name in vars(_module) if not name.startswith("_")]
globals().update({name: getattr(_module, name) for name in __all__})
_io = _module._io
_models = _module._models
_optim = _module._optim
_viz = _module._viz
_compile = _module._compile
_plans = _module._plans
_data = _module._data
_every_row = _module._every_row
_runs = _module._runs
