# benchmarks/experiments/views.py — models that users write themselves from layers: gradients and steps
# SPDX-License-Identifier: MIT
from __future__ import annotations

from benchmarks.registry import Case, Job, Peer, cross
from benchmarks.report import Column, Table, median, per_gradient
from benchmarks.runner import Result

TITLE = "Networks of layers, FP32"
ORDER = 21
NETWORKS = {  # sizes of the layers, batches; several outputs: cross-entropy, one: squares
    "784-128-10 relu": ([784, 128, 10], (1, 8, 32, 256)),
    "8-64-64-1 tanh": ([8, 64, 64, 1], (1, 32, 1024)),
}


def title(name: str, batch: int) -> str:
    return f"{name} b={batch}"


def jobs(peers: list[Peer], quick: bool) -> list[Job]:
    networks = [
        Case("net", title(name, b), {"sizes": sizes, "activation": name.split()[1], "b": b})
        for name, (sizes, batches) in NETWORKS.items()
        for b in batches
    ]
    return cross(peers, [*networks, Case("step", "AdamW")])


def tables(results: list[Result]) -> list[Table]:
    there = {r["case"] for r in results}
    found = []
    for name, (_, batches) in NETWORKS.items():
        columns = [
            Column(f"b={b}", per_gradient(1e6), title(name, b), x=b, beside=median(1e6))
            for b in batches
            if title(name, b) in there
        ]
        if columns:
            found.append(Table(f"{name}: µs per gradient", columns, "", "line", "batch"))
    if "AdamW" in there:
        steps = Column("µs per step", per_gradient(1e6), "AdamW", beside=median(1e6))
        text = (
            "The paper's GPT, made of layers by a user, and the built-in one; the same parameters."
        )
        found.append(Table("Steps of an optimizer", [steps], text))
    return found
