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
from pathlib import Path
from typing import Any

from benchmarks import environment
from benchmarks.registry import Job, MissingError

Result = dict[str, Any]
MEMORY = Path("/dev/shm")  # files there do not measure a disk
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


def instructions(job: Job, parameters: dict[str, Any]) -> float | None:
    """Count instructions per gradient: the difference of two runs, so that starting does not count."""
    is_light = job.way.peer.is_own or job.way.peer.debian  # LibTorch would take minutes
    if job.way.program is None or not is_light or shutil.which("valgrind") is None:
        return None
    counts, totals = (200, 1200), []
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    for count in counts:
        command = command_of(job, {**parameters, "count": count})
        try:
            said = start([*valgrind, *command], 1, 120)["said"]
        except MissingError:
            return None  # instructions that valgrind does not know
        found = re.search(r"Collected : (\d+)", said)
        if found is None:
            return None
        totals.append(int(found[1]))
    return (totals[1] - totals[0]) / (counts[1] - counts[0])


def run(job: Job, seconds: float, rounds: int, timeout: float, reference: Result | None) -> Result:
    """Run a job; the result holds figures, or an error that says why there are none."""
    result: Result = {"row": job.way.row, "case": job.case.title}
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        path = Path(folder) / "saved"
        parameters = {**job.case.parameters, "rounds": rounds, "path": str(path)}
        parameters["seconds"] = 0 if job.only_once else seconds
        try:
            command = command_of(job, parameters)
            found = start(command, job.case.cores, timeout)
            if "error" in found:
                raise MissingError(found["error"])
        except MissingError as error:
            return {**result, "error": str(error) or "failed"}
        if path.exists():
            result["file_bytes"] = path.stat().st_size
        if job.way.program is not None and job.only_once:
            found["installed"] = Path(command[0]).stat().st_size
        if job.count_instructions:
            result["instructions"] = instructions(job, parameters)
    times = found.pop("times")
    found.pop("said")
    result.update(found, min=min(times), median=statistics.median(times))
    want = job.case.want or tuple((reference or result)["outputs"])
    if differ(result["outputs"], want, job.way.tolerance):
        text = ", ".join(f"{x:.6g}" for x in result["outputs"])
        return {"row": job.way.row, "case": job.case.title, "error": f"wrong result: {text}"}
    return result
