# python/burtorch/nn/_state.py — what fits a state dictionary, said once for layers and models
# SPDX-License-Identifier: MIT
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def fitting(
    owner: Any, shapes: Mapping[str, tuple[int, ...]], state: Mapping[str, ArrayLike], strict: bool
) -> dict[str, NDArray[Any]]:
    """Return the arrays of a state for parameters of these shapes, or raise an error that names what is wrong.

    Without strict, names that are missing or not known are passed over. Masks that the well-known scripts store
    beside their weights (`….tril`) always are.
    """
    given = {name: np.asarray(x) for name, x in state.items() if name.rpartition(".")[2] != "tril"}
    wrong = []
    if strict:
        if missing := [name for name in shapes if name not in given]:
            wrong.append(f"missing: {', '.join(missing)}")
        if unexpected := [name for name in given if name not in shapes]:
            wrong.append(f"unexpected: {', '.join(unexpected)}")
    wrong += [
        f"{name} has shape {tuple(shape)}, not {given[name].shape}"
        for name, shape in shapes.items()
        if name in given and given[name].shape != tuple(shape)
    ]
    wrong += [
        f"{name} is of {given[name].dtype}, not of real numbers"
        for name in shapes
        if name in given and given[name].dtype.kind not in "fiub"
    ]
    if wrong:
        raise ValueError(f"the state does not fit {type(owner).__name__}: {'; '.join(wrong)}")
    return {name: given[name] for name in shapes if name in given}
