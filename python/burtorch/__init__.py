# python/burtorch/__init__.py — the public names
# SPDX-License-Identifier: MIT
"""burtorch: gradients of scalar programs on a CPU, fast.

>>> import burtorch as bt
>>> a, b = bt.Value(-41.0), bt.Value(2.0)
>>> g = (a + b - (a * b + b**3)) ** 2 / 2
>>> g.backward()
>>> g.data, a.grad, b.grad
(612.5, -35.0, 1050.0)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._paths import __version__, get_cmake_dir, get_include

if TYPE_CHECKING:
    from . import nn as nn
    from . import optim as optim
    from . import viz as viz
    from ._fit import fit as fit

try:
    from . import _core
except ImportError as _error:
    # The headers can be found, and the command line helps, from a source tree in which nothing was
    # compiled, and where BURTORCH_ISA asks for what is not there.
    if _error.name == "burtorch._core":
        _missing = str(_error)
    elif _error.name == "burtorch._cpu" or "_cpu" in str(_error):
        _missing = "the extension is not compiled; use `pip install .`"
    else:
        raise

    def __getattr__(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise ImportError(f"burtorch.{name}: {_missing}")

    __all__ = ["__version__", "get_cmake_dir", "get_include"]
else:
    from . import _numpy as _numpy  # which tells Views what NumPy's functions mean
    from ._core import *  # noqa: F403
    from .compiled import Compiled, Minimum, VerifyError, compile, load_compiled
    from .derivatives import hessian, hvp, jacobian, jvp
    from .io import Checkpoint, load, load_checkpoint, save
    from .transforms import GradientError, check_grad, grad, value_and_grad

    _LAZY = ["nn", "optim", "viz"]  # a program waits only for the modules that it uses
    __all__ = [
        "Checkpoint",
        "Compiled",
        "GradientError",
        "Minimum",
        "VerifyError",
        "__version__",
        "check_grad",
        "compile",
        "fit",
        "get_cmake_dir",
        "get_include",
        "grad",
        "hessian",
        "hvp",
        "jacobian",
        "jvp",
        "load",
        "load_checkpoint",
        "load_compiled",
        "save",
        "value_and_grad",
        *_core.__all__,
        *_LAZY,
    ]

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LAZY, "fit"})

    def __getattr__(name: str) -> Any:
        if name in _LAZY:
            return importlib.import_module(f".{name}", __name__)
        if name == "fit":
            return importlib.import_module("._fit", __name__).fit
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
