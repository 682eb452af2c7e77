# benchmarks/runner.py — runs a job in a pinned process of its own and checks what it computed
# SPDX-License-Identifier: MIT
from __future__ import annotations

import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import environment
from benchmarks.registry import Job, MissingError

Result = dict[str, Any]
MEMORY = Path("/dev/shm")  # files there do not measure a disk
ONCE = 5  # processes of a job that takes one gradient
PROCESS = ("wall", "VmHWM", "VmPeak", "private")  # what differs between them
RAPL = Path("/sys/class/powercap/intel-rapl:0/energy_uj")
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "TORCHINDUCTOR_CACHE_DIR": str(environment.HOME / "inductor"),
    "CUDA_VISIBLE_DEVICES": "",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


def command_of(job: Job, parameters: dict[str, Any]) -> list[str]:
    """Return how to start the job's process, compiling it first if it is C++."""
    way, case = job.way, job.case
    if way.program is not None:
        program = environment.compile_program(way.program, way.peer)
        words = [f"{key}={value}" for key, value in parameters.items()]
        return [str(program), case.work, way.argument, *words]
    python = sys.executable if way.peer.is_own else str(environment.PYTHON)
    worker = [python, "-m", "benchmarks.worker", way.peer.name, way.name]
    return [*worker, case.work, json.dumps(parameters)]


def joules() -> float | None:
    try:
        return int(RAPL.read_text()) * 1e-6
    except (OSError, ValueError):
        return None


def children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def start(command: list[str], cores: int, timeout: float) -> Result:
    """Run a process on so many cores; return what it printed and what it took as a whole."""

    def pin() -> None:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-cores:])

    path = [str(environment.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path),
        **(ONE_THREAD if cores == 1 else {}),
    }
    before, energy, begin = children_cpu(), joules(), time.perf_counter()
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=variables,
            cwd=environment.ROOT, preexec_fn=pin, start_new_session=True,
        ) as child:  # fmt: skip
            try:
                printed, _ = child.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                raise MissingError(f"took longer than {timeout:g} s") from None
            finally:
                if child.poll() is None:
                    os.killpg(child.pid, 9)  # with the compilers that it may have started
        errors.seek(0)
        said = errors.read()
    wall, energy_after, after = time.perf_counter() - begin, joules(), children_cpu()
    lines = [line for line in printed.splitlines() if line.startswith("{")]
    if child.returncode or not lines:
        raise MissingError(f"ended with status {child.returncode}: {environment.last_line(said)}")
    result: Result = json.loads(lines[-1])
    result["wall"] = wall
    result["whole_cpu"] = after - before
    if energy is not None and energy_after is not None and energy_after >= energy:
        result["joules"] = energy_after - energy
    result["said"] = said
    return result


def differ(outputs: list[float], want: tuple[float, ...], tolerance: float) -> bool:
    return len(outputs) != len(want) or any(
        not abs(x - y) <= tolerance * max(abs(y), 1e-3) for x, y in zip(outputs, want)
    )


def is_counted(job: Job) -> bool:
    is_light = job.way.peer.is_own or job.way.peer.debian  # LibTorch would take minutes
    return job.count_instructions and job.way.program is not None and bool(is_light)


def portable(job: Job) -> tuple[Job, dict[str, Any], str]:
    """Return the job as valgrind can run it: without AVX-512, and what that changed."""
    program = job.way.program
    try:
        has_avx512 = "avx512f" in Path("/proc/cpuinfo").read_text()
    except OSError:
        has_avx512 = False
    if program is None or not has_avx512 or "-march=native" not in program.flags:
        return job, {}, ""
    flags = tuple("-march=x86-64-v3" if f == "-march=native" else f for f in program.flags)
    way = replace(job.way, program=replace(program, flags=flags))
    return replace(job, way=way), {"march": "x86-64-v3"}, " of a build with -march=x86-64-v3"


def instructions(job: Job, parameters: dict[str, Any]) -> Result:
    """Count instructions per gradient: the difference of two runs, so that starting does not count."""
    without_avx512, extra, how = portable(job)
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    ways: list[tuple[str, list[str], str, Job, dict[str, Any]]] = [
        ("perf", ["perf", "stat", "-x,", "-e", "instructions:u"], r"(\d+),.*instructions", job, {}),
        (f"callgrind{how}", valgrind, r"Collected : (\d+)", without_avx512, extra),
    ]
    counts, reasons = (200, 1200), []
    for name, tool, pattern, counted, extra in ways:
        totals = []
        try:
            if shutil.which(tool[0]) is None:
                raise MissingError(f"{tool[0]} is not installed")
            for count in counts:
                command = command_of(counted, {**parameters, **extra, "count": count})
                found = re.search(pattern, start([*tool, *command], 1, 120)["said"])
                if found is None:
                    raise MissingError(f"{tool[0]} counts nothing here")
                totals.append(int(found[1]))
        except MissingError as error:
            reasons.append(str(error))
            continue
        per_gradient = (totals[1] - totals[0]) / (counts[1] - counts[0])
        return {"instructions": per_gradient, "instructions_by": name}
    return {"no_instructions": "; ".join(reasons)}


def run(job: Job, seconds: float, rounds: int, timeout: float, reference: Result | None) -> Result:
    """Run a job; the result holds figures, or an error that says why there are none."""
    result: Result = {"row": job.way.row, "case": job.case.title}
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        path = Path(folder) / "saved"
        parameters = {**job.case.parameters, "rounds": rounds, "path": str(path)}
        parameters["seconds"] = 0 if job.only_once else seconds
        try:
            command = command_of(job, parameters)
            runs = []
            for _ in range(ONCE if job.only_once else 1):
                runs.append(start(command, job.case.cores, timeout))
                if "error" in runs[-1]:
                    raise MissingError(runs[-1]["error"])
        except MissingError as error:
            return {**result, "error": str(error) or "failed"}
        if path.exists():
            result["file_bytes"] = path.stat().st_size
        if is_counted(job):
            result.update(instructions(job, parameters))
    found = runs[-1]
    if job.way.program is not None and job.only_once:
        libraries = [] if job.way.peer.is_own else job.way.peer.packages
        size = environment.installed_bytes(libraries)
        found["installed"] = size + Path(command[0]).stat().st_size
    for key in PROCESS if job.only_once else ():
        figures = [each[key] for each in runs if key in each]
        if figures:
            found.update({key: min(figures), f"{key}_median": statistics.median(figures)})
    times = [x for each in runs for x in each.pop("times")]
    found.pop("said")
    result.update(found, min=min(times), median=statistics.median(times), rounds=len(times))
    if len(times) > 1:
        result["quartile"] = sorted(times)[len(times) // 4]
    want = job.case.want or tuple((reference or result)["outputs"])
    if differ(result["outputs"], want, job.way.tolerance):
        text = ", ".join(f"{x:.6g}" for x in result["outputs"])
        return {"row": job.way.row, "case": job.case.title, "error": f"wrong result: {text}"}
    return result
