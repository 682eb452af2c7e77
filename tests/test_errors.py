# tests/test_errors.py — every exception of the package is a burtorch.Error, and the built-in one it always was
# SPDX-License-Identifier: MIT
from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import burtorch as bt
import pytest

BUILT_IN: dict[str, type[Exception]] = {
    "Error": RuntimeError,
    "StaleHandleError": RuntimeError,
    "TapeMismatchError": ValueError,
    "CapacityError": MemoryError,
    "GraphError": TypeError,
    "BranchError": TypeError,
    "AnomalyError": ArithmeticError,
    "GradientError": AssertionError,
    "VerifyError": AssertionError,
    "CompilerError": RuntimeError,
    "DataError": ValueError,
    "DrawingError": RuntimeError,
    "MissingToolError": RuntimeError,
    "TooLargeError": ValueError,
    "TrainingError": Exception,
}
# Programs see none of these: they end a search, or the command line with a message.
INTERNAL = {"_DamagedError", "_NoMeaningError", "UsageError"}


def exceptions() -> dict[str, Any]:
    """Return all exception classes that a module of the package defines."""
    found: dict[str, Any] = {}
    for info in pkgutil.walk_packages(bt.__path__, "burtorch."):
        if "._core_" in info.name or info.name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(info.name)
        except ImportError:  # of what is optional
            continue
        for name, thing in vars(module).items():
            ours = isinstance(thing, type) and issubclass(thing, BaseException)
            if ours and thing.__module__.split(".")[0] == "burtorch":
                found[name] = thing
    return found


def test_the_list_is_complete() -> None:
    assert set(exceptions()) - INTERNAL == set(BUILT_IN)


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_is_an_error_of_burtorch_and_a_built_in_one(name: str) -> None:
    error = exceptions()[name]
    assert issubclass(error, bt.Error)
    assert issubclass(error, BUILT_IN[name])
    assert error.__doc__


@pytest.mark.parametrize("base", [bt.Error, TypeError])
def test_float_of_a_value_can_be_caught_by_either(base: type[Exception]) -> None:
    with pytest.raises(base):
        float(bt.Value(1.0))  # type: ignore[arg-type]


@pytest.mark.parametrize("base", [bt.Error, AssertionError])
def test_a_wrong_gradient_can_be_caught_by_either(base: type[Exception]) -> None:
    with pytest.raises(base):
        bt.check_grad(lambda x: x * bt.stop_gradient(x), 3.0)
