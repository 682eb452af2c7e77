# benchmarks/experiments/energy.py — 200 000 gradients of the small graph from start to end
# SPDX-License-Identifier: MIT
from __future__ import annotations

from benchmarks.experiments import small
from benchmarks.registry import Job, Peer, cross
from benchmarks.report import Column, Table
from benchmarks.runner import Result

TITLE = "Energy: 200 000 gradients of the small graph, process included"
ORDER = 6
COUNT = 200_000
PAPER = {
    "burtorch C++ eager": "0.94",
    "micrograd": "71",
    "JAX jit": "82",
    "LibTorch C++ eager": "280",
    "PyTorch eager": "408",
    "TensorFlow eager": "1 710",
    "JAX eager": "14 765",
}


def jobs(peers: list[Peer], quick: bool) -> list[Job]:
    return cross(peers, [small.CASE])  # the runs of the small graph, not made again


def cpu_seconds(result: Result) -> float:
    """Return the time for COUNT gradients: what starting took, and as many as were run scaled up."""
    if not result.get("gradients"):
        return float(result["whole_cpu"])
    start = max(0.0, result["whole_cpu"] - result["cpu"])
    return float(start + COUNT * result["cpu"] / result["gradients"])


def milliwatt_hours(result: Result) -> float | None:
    if "joules" not in result or not result["whole_cpu"]:
        return None
    return float(result["joules"] / result["whole_cpu"] * cpu_seconds(result) / 3.6)


def tables(results: list[Result]) -> list[Table]:
    columns = [Column("CPU seconds", cpu_seconds)]
    text = "Energy counters (RAPL) can't be read here: these are CPU seconds, which are not energy."
    if any("joules" in r for r in results):
        columns.insert(0, Column("mWh", milliwatt_hours))
        text = "From the processor's energy counter (RAPL) over the whole process."
    columns.append(Column("the paper's, mWh", lambda r: PAPER.get(r["row"])))
    text += " Start and gradients are measured; the number of gradients is scaled to 200 000."
    return [Table("", columns, text, plot="bar")]
