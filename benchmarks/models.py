# benchmarks/models.py — CharMLP and GPT: one gradient, against PyTorch and JAX
# SPDX-License-Identifier: MIT
"""Every contender in a process of its own, pinned to one core; they take turns, the minimum counts.

python benchmarks/models.py --peers PYTHON [--only mlp,gpt] [--rounds 3]

PYTHON is an interpreter that has torch and jax; peers that are missing are shown as missing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SIZES = [4, 16, 32, 64, 128, 512, 1024]
BATCHES = [1, 2, 4, 8, 16, 32, 64]
ASKED = {
    ("mlp", 1): [8, 8, 7, 6, 4, 2.2, 1.8],
    ("mlp", 64): [3, 2, 1.6, 1.4, 1.25, 1.0, 1.0],
    ("gpt", 0): [8.5, 6.5, 5, 4.5, 4, 3.5, 3],
}
PEERS = {
    "torch": ["models_torch.py"],
    "torch.compile": ["models_torch.py", "compile"],
    "jax": ["models_jax.py"],
    "jax [out, in]": ["models_jax.py", "out_in"],
}


def own(kind: str, size: int, batch: int) -> None:
    """Time this library in the process; printed as peers do."""
    sys.path.insert(0, str(HERE / "peers"))
    import burtorch as bt
    import numpy as np
    from timing import report

    rng = np.random.default_rng(0)
    if kind == "mlp":
        model = bt.nn.CharMLP(hidden=size)
        x, y = rng.integers(27, size=(batch, 16)), rng.integers(27, size=batch)
    else:
        model = bt.nn.GPT()
        x, y = rng.integers(65, size=(batch, 8)), rng.integers(65, size=(batch, 8))
    micro = min(batch, 64 if kind == "mlp" else 8)
    report(lambda: model.loss_and_grad(x, y, micro_batch=micro))


def seconds(command: list[str], core: int) -> float | None:
    environment = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    done = subprocess.run(
        ["taskset", "-c", str(core), *command], capture_output=True, text=True, env=environment
    )
    return float(done.stdout.split()[-1]) if done.returncode == 0 else None


def race(kind: str, size: int, batch: int, options: argparse.Namespace) -> dict[str, float]:
    commands = {"burtorch": [sys.executable, __file__, "--own", kind, str(size), str(batch)]}
    for name, (file, *how) in PEERS.items():
        if options.peers and name in options.contenders:
            script = str(HERE / "peers" / file)
            commands[name] = [options.peers, script, kind, str(size), str(batch), *how]
    best: dict[str, float] = {}
    for _ in range(options.rounds):
        for name, command in commands.items():
            found = seconds(command, options.core)
            if found is not None:
                best[name] = min(found, best.get(name, found))
    return best


def show(title: str, best: dict[str, float], asked: float) -> None:
    rivals = {name: t for name, t in best.items() if name != "burtorch"}
    print(f"{title:<16}", "  ".join(f"{name} {t * 1e3:.4f}" for name, t in best.items()), end="")
    if rivals:
        name = min(rivals, key=lambda n: rivals[n])
        print(f"  → {rivals[name] / best['burtorch']:.2f} times {name} (asked {asked})", end="")
    print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--own", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--peers", help="an interpreter that has the peers")
    parser.add_argument("--contenders", default=list(PEERS), type=lambda text: text.split(","))
    parser.add_argument("--only", default="mlp1,mlp64,gpt")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--core", type=int, default=1)
    options = parser.parse_args()
    if options.own:
        return own(options.own[0], int(options.own[1]), int(options.own[2]))
    print("milliseconds per gradient: zero, forward, backward; FP32, one core")
    for batch in (1, 64):
        if f"mlp{batch}" in options.only.split(","):
            for size, asked in zip(SIZES, ASKED["mlp", batch]):
                show(f"MLP e={size} b={batch}", race("mlp", size, batch, options), asked)
    if "gpt" in options.only.split(","):
        for batch, asked in zip(BATCHES, ASKED["gpt", 0]):
            show(f"GPT b={batch}", race("gpt", 0, batch, options), asked)
    return None


if __name__ == "__main__":
    main()
