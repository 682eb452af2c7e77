# benchmarks/experiments/memory.py — one gradient of the small graph: the whole process, and what is on disk
# SPDX-License-Identifier: MIT
from __future__ import annotations

from benchmarks.experiments import small
from benchmarks.registry import Case, Job, Peer, cross
from benchmarks.report import Column, Table, megabytes, milliseconds
from benchmarks.runner import Result

TITLE = "Memory and start: a process with one gradient of the small graph"
ORDER = 8


def jobs(peers: list[Peer], quick: bool) -> list[Job]:
    case = Case("small", "once", want=small.CASE.want)
    found = cross(peers, [case], only_once=True)
    first = {
        job.way.peer.name: job for job in reversed(found)
    }  # a library is loaded whatever the way
    return [job for job in found if job.way.peer.is_own or job is first[job.way.peer.name]]


def tables(results: list[Result]) -> list[Table]:
    columns = [
        Column("whole process, ms", milliseconds("wall"), beside=milliseconds("wall_median")),
        Column("peak resident MB (VmHWM)", megabytes("VmHWM"), beside=megabytes("VmHWM_median")),
        Column("peak virtual MB (VmPeak)", megabytes("VmPeak")),
        Column("private MB", megabytes("private")),
        Column(
            "program or package, MB",
            lambda r: r["installed"] / 2**20 if r.get("installed") else None,
        ),
    ]
    text = (
        "Five processes each, the least and the median. Packages with what is theirs (jaxlib, mlx-cpu), programs with "
        "LibTorch's package, without further libraries that they depend on."
    )
    return [Table("", columns, text, plot="bar")]
