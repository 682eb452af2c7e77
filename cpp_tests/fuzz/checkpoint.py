# cpp_tests/fuzz/checkpoint.py — anything as a checkpoint: it is refused, or a model, and training can go on
# SPDX-License-Identifier: MIT
"""A fuzzer like those beside it, for atheris and the installed package; scripts/fuzz.py runs it.

An input that begins with 0 is, from there on, a whole file. Any other is the text in the header: it is put into a file
with arrays that never change, so that the fuzzer gets behind them.
"""

from __future__ import annotations

import io
import json
import sys
from contextlib import suppress
from typing import Any

import atheris
import numpy as np

with atheris.instrument_imports(include=["burtorch.io", "burtorch.optim", "burtorch.nn"]):
    import burtorch as bt
    import burtorch.io
    import burtorch.nn
    import burtorch.optim

KINDS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
REFUSALS = (ValueError, TypeError)


def saved(random: Any) -> bytes:
    model = bt.nn.CharMLP(hidden=2, vocab=3, embed=2, context=2)
    file = io.BytesIO()
    bt.save(model, file, optimizer=bt.optim.SGD(model, momentum=0.5), random=random)
    return file.getvalue()


CONTENT = saved(bt.Random(1))
LENGTH = int.from_bytes(CONTENT[:8], "little")
HEADER = json.loads(CONTENT[8 : 8 + LENGTH])


def wrapped(text: bytes) -> bytes:
    HEADER["__metadata__"]["burtorch"] = text.decode("utf-8", "replace")
    header = json.dumps(HEADER).encode()
    return len(header).to_bytes(8, "little") + header + CONTENT[8 + LENGTH :]


def random_numbers() -> list[Any]:
    return [bt.Random(1), *(np.random.Generator(getattr(np.random, kind)(1)) for kind in KINDS)]


def try_input(data: bytes) -> None:
    try:
        checkpoint = bt.load_checkpoint(data[1:] if data[:1] == b"\0" else wrapped(data))
    except REFUSALS:
        return
    repr(checkpoint)
    model = bt.nn.CharMLP(hidden=2, vocab=3, embed=2, context=2)
    with suppress(*REFUSALS), bt.Tape():
        model = checkpoint.model()
    with suppress(*REFUSALS):
        checkpoint.restore(model=model)
    for kind in (bt.optim.GD, bt.optim.SGD, bt.optim.Adam, bt.optim.AdamW):
        optimizer = kind(model, lr=0.1)
        try:
            checkpoint.restore(optimizer=optimizer)
        except REFUSALS:
            assert optimizer.steps == 0
        optimizer.step()
    for random in random_numbers():
        try:
            checkpoint.restore(random=random)
        except REFUSALS:
            continue
        for _ in range(700):  # until the generator fills its arrays anew
            random.bits() if isinstance(random, bt.Random) else random.bit_generator.random_raw()


if __name__ == "__main__":
    atheris.Setup(sys.argv, try_input)
    atheris.Fuzz()
