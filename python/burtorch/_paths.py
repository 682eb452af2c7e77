# python/burtorch/_paths.py — the version, and where the headers and the CMake package are
# SPDX-License-Identifier: MIT
"""Where the parts of the package that are not Python lie."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

__all__ = ["__version__", "get_cmake_dir", "get_include"]

_PACKAGE = importlib.import_module(__package__).__path__
_SOURCE_INCLUDE = Path(__file__).resolve().parents[2] / "include"


def _version() -> str:
    """Read it where the package's metadata have it from: importlib.metadata takes megabytes."""
    try:
        config = Path(get_include(), "burtorch", "base", "config.hpp").read_text(encoding="utf-8")
    except OSError:
        return "0+unknown"
    return ".".join(re.findall(r"#define BURTORCH_VERSION_(?:MAJOR|MINOR|PATCH)\s+(\d+)", config))


def get_include() -> str:
    """Return the directory to give to a C++ compiler with -I."""
    for root in (*(Path(folder) / "include" for folder in _PACKAGE), _SOURCE_INCLUDE):
        if (root / "burtorch.h").is_file():
            return str(root)
    raise FileNotFoundError("the burtorch headers are not beside this package; install it with pip")


def get_cmake_dir() -> str:
    """Return the directory to give to CMake as burtorch_DIR."""
    for folder in _PACKAGE:
        root = Path(folder) / "share" / "cmake" / "burtorch"
        if (root / "burtorchConfig.cmake").is_file():
            return str(root)
    raise FileNotFoundError(
        "burtorchConfig.cmake is not beside this package; install it with pip, "
        "or use add_subdirectory on the source tree"
    )


__version__ = _version()
