# benchmarks/experiments/ablations.py — what each decision is worth: compilers, flags, index width, ways, micro-batches, labels
# SPDX-License-Identifier: MIT
from __future__ import annotations

from dataclasses import replace

from benchmarks.experiments import small, tiny
from benchmarks.registry import Case, Job, Peer, Program, cross
from benchmarks.report import Column, Table, median, per_gradient
from benchmarks.runner import Result

TITLE = "Ablations"
ORDER = 9
O3 = ("-O3", "-march=native")
BUILDS = {  # title: compiler, flags
    "-O3 -march=native": ("", O3),
    "-O2 -march=native": ("", ("-O2", "-march=native")),
    "-O3 -flto -march=native": ("", (*O3, "-flto")),
    "-O3 (x86-64)": ("", ("-O3",)),
    "-O3 -march=x86-64-v2": ("", ("-O3", "-march=x86-64-v2")),
    "-O3 -march=x86-64-v3": ("", ("-O3", "-march=x86-64-v3")),
    "-O3 -march=x86-64-v4": ("", ("-O3", "-march=x86-64-v4")),
    "g++ -O3 -march=native": ("g++", O3),
    "clang++ -O3 -march=native": ("clang++", O3),
    "index of 16 bits": ("", (*O3, "-DINDEX=std::uint16_t")),
    "index of 64 bits": ("", (*O3, "-DINDEX=std::uint64_t")),
    "without labels": ("", (*O3, "-DBURTORCH_LABELS=0")),
    "with checks": ("", (*O3, "-DBURTORCH_CHECKS=1")),
}
QUICK = ("-O3 -march=native", "-O2 -march=native", "index of 64 bits", "without labels")
DISTANCES = "1000 squared distances"
MICRO = (1, 2, 4, 8, 16, 32, 64)


def jobs(peers: list[Peer], quick: bool) -> list[Job]:
    ways = {way.name: way for peer in peers if peer.name == "burtorch" for way in peer.ways}
    if not ways:
        return []
    found = []
    for title in QUICK if quick else BUILDS:
        compiler, flags = BUILDS[title]
        build = Program("burtorch", flags, compiler)
        way = replace(ways["C++ eager"], name=title, program=build)
        found.append(Job(way, small.CASE, count_instructions=True))
    for name in ("eager", "scratch", "order reused", "replay", "program", "native"):
        found.append(Job(ways[f"C++ {name}"], small.CASE, count_instructions=True))
    found += cross(peers, [Case("distances", DISTANCES, {"n": 1000})])
    models = next(w for w in peers[0].ways if w.program and "mlp" in w.works)
    for work in ("mlp", "gpt"):
        for m in (1, 8, 64) if quick else MICRO:
            case = Case(work, f"micro {m}", {"e": 64, "b": 64, "micro": m})
            found.append(Job(replace(models, name=work), case))
    return found


def tables(results: list[Result]) -> list[Table]:
    graph = [
        Column("ns per gradient", per_gradient(1e9), "small", beside=median(1e9)),
        Column("instructions", lambda r: r.get("instructions"), "small"),
    ]
    micro = [
        Column(f"{m}", per_gradient(1e3), f"micro {m}", x=m, beside=median(1e3))
        for m in MICRO
        if f"micro {m}" in {r["case"] for r in results}
    ]
    text = f"Rows that name no way are eager. {tiny.counted(results)}"
    found = [Table("The small graph: builds and ways", graph, text)]
    if micro:
        title = "CharMLP (e=64) and GPT, b=64: ms per gradient by micro-batch"
        found.append(Table(title, micro, plot="line", x_title="micro-batch"))
    if any(r["case"] == DISTANCES for r in results):
        many = [Column("µs per gradient", per_gradient(1e6), DISTANCES, beside=median(1e6))]
        found.append(Table("A sum of 1000 squared distances: to numbers, to leaves", many))
    return found
