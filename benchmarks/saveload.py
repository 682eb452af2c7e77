# benchmarks/saveload.py — saving and loading, against NumPy's files, write and rename, and torch.load
# SPDX-License-Identifier: MIT
"""The paper's experiment (7 activations, 5 000 times) and a model of 1 079 003 parameters.

Run: .venv/bin/python benchmarks/saveload.py [PROGRAM], where PROGRAM is the compiled saveload.cpp
(`make bench-cpp BENCH=saveload` makes build/release/benchmarks/bench_saveload, the default). The minimum of several
rounds counts. torch is a peer, not a dependency: without it its row is left out.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import burtorch as bt
import numpy as np
from burtorch.io import write_tensors

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

TIMES = 5000
PROGRAM = (
    Path(__file__).resolve().parents[1] / "build" / "release" / "benchmarks" / "bench_saveload"
)


def race(*works: Callable[[], object], rounds: int = 25) -> list[float]:
    """The shortest time of each; they take turns."""
    times = [float("inf")] * len(works)
    for _ in range(rounds):
        for i, work in enumerate(works):
            start = time.perf_counter()
            work()
            times[i] = min(times[i], time.perf_counter() - start)
    return times


def best(work: Callable[[], object], rounds: int = 25) -> float:
    return race(work, rounds=rounds)[0]


def repeat(work: Callable[[], object]) -> float:
    def loop() -> None:
        for _ in range(TIMES):
            work()

    return best(loop, 3)


def row(name: str, seconds: float, against: float | None = None, asked: str = "") -> None:
    ratio = "" if against is None else f"{against / seconds:8.2f} times as fast"
    print(f"  {name:<44} {seconds * 1e3:10.3f} ms {ratio}  {asked}")


def write_and_rename(path: Path, content: memoryview) -> None:
    beside = path.with_suffix(".tmp")
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.write(file, content)
    os.close(file)
    os.rename(beside, path)


def seven(folder: Path, native: dict[str, float]) -> None:
    numbers = np.arange(7.0)
    path = folder / "numpy"
    with bt.Tape() as tape:
        values = [bt.Value(float(x)) for x in numbers]
        save = repeat(lambda: numbers.tofile(path))
        load = repeat(lambda: np.fromfile(path))
        print(f"7 activations of float64, {TIMES} times")
        row("numpy.tofile", save)
        row("C++ saveRange", native["save7"], save, "(asked: 2)")
        row("Python tape.save", repeat(lambda: tape.save(path)), save, "(asked: 1)")
        row("C++ saveRange, atomic", native["save7_atomic"], save)
        row("numpy.fromfile", load)
        row("C++ loadRange", native["load7"], load, "(asked: 2)")
        row("Python tape.load", repeat(lambda: tape.load(path)), load, "(asked: 1)")
        row("C++ saveGraph, to memory", native["save_graph_memory"])
        row("C++ loadGraph, from memory", native["load_graph_memory"])
        assert len(values) == 7


def large(folder: Path, native: dict[str, float]) -> None:
    model = bt.nn.CharMLP(hidden=1024)
    content = memoryview(model.values).cast("B")
    path = folder / "model"
    print(f"a CharMLP of {model.num_parameters} parameters")
    plain, saving, durable = race(
        # A file of its own each: replacing one that waits to be written costs more than one on the disk.
        lambda: write_and_rename(folder / "plain", content),
        lambda: bt.save(model, folder / "saved", durable=False),
        lambda: bt.save(model, path),
    )
    asked = f"(asked: {1 / 1.3:.2f})"
    row("write + rename", plain)
    row("bt.save, durable=False", saving, plain, asked)
    row("bt.save", durable, plain)
    row("write + rename in C++", native["plain_model"])
    row("C++ saveRange, atomic", native["save_model"], native["plain_model"], asked)
    row("C++ saveRange, durable", native["save_model_durable"], native["plain_model"])
    checkpoint = best(lambda: bt.load_checkpoint(path))
    into = best(lambda: bt.load_checkpoint(path).restore(model=model))
    making = best(lambda: bt.load(path), 7)
    peer = None
    if torch is not None:
        state = {name: torch.from_numpy(x) for name, x in model.state_dict().items()}
        torch.save(state, folder / "torch")
        peer = best(lambda: torch.load(folder / "torch", weights_only=True))
        row("torch.load", peer)
    row("bt.load_checkpoint, mapped", checkpoint, peer, "(asked: 5)")
    row("bt.load_checkpoint, restore into a model", into, peer)
    row("bt.load, makes the model", making, peer)
    row("C++ mapRange, every page looked at", native["map_model"], peer, "(asked: 5)")
    row("C++ loadRange", native["load_model"], peer)
    write_tensors(path, {"x": np.zeros(1)})


def main() -> None:
    program = Path(sys.argv[1]) if len(sys.argv) > 1 else PROGRAM
    if not program.is_file():
        raise SystemExit(f"{program} is missing: make bench-cpp BENCH=saveload makes it")
    # Small files in memory: what a disk does when a file is truncated would hide everything else.
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    for work, where in ((seven, memory), (large, None)):
        with tempfile.TemporaryDirectory(dir=where) as name:
            done = subprocess.run([program, name], capture_output=True, text=True, check=True)
            native = {key: float(value) for key, value in map(str.split, done.stdout.splitlines())}
            work(Path(name), native)


if __name__ == "__main__":
    main()
