# benchmarks/worker.py — one Python way in a process of its own: runs it, prints one JSON line
# SPDX-License-Identifier: MIT
"""python -m benchmarks.worker PEER WAY WORK JSON. cpp/loop.hpp is the same for C++.

The parameters `seconds` and `rounds` say how long to time; 0 seconds is one gradient.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.registry import Loop, MissingError, Parameters, Peer


def measure(loop: Loop, parameters: Parameters, samples: int = 1) -> dict[str, Any]:
    """Run the loop: once, then until the clock can be trusted, then round after round."""

    def seconds(count: int) -> float:
        start = time.perf_counter()
        loop(count)
        return time.perf_counter() - start

    start = time.perf_counter()
    found = loop(1)
    first = time.perf_counter() - start
    outputs = [float(x) for x in (found() if callable(found) else found)]
    if not parameters["seconds"]:
        return {"outputs": outputs, "times": [first / samples], "gradients": samples, "cpu": 0.0}
    cpu, done, count = time.process_time(), 0, 1
    # Short rounds: the fastest of many is one that nothing disturbed.
    slot = min(0.01, parameters["seconds"] / parameters["rounds"])
    while True:
        passed = seconds(count)
        done += count
        if passed > slot / 2:
            break
        count = min(count * 10, max(count + 1, int(count * slot / max(passed, 1e-9))))
    times: list[float] = []
    end = time.perf_counter() + parameters["seconds"]
    while len(times) < parameters["rounds"] or time.perf_counter() < end:
        times.append(seconds(count) / (count * samples))
        done += count
    cpu = time.process_time() - cpu
    return {"outputs": outputs, "times": times, "gradients": done * samples, "cpu": cpu}


def memory() -> dict[str, int]:
    """Return the kilobytes that the system counts for this process."""
    kilobytes: dict[str, int] = {}
    for name in ("status", "smaps_rollup"):
        try:
            lines = Path("/proc/self", name).read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            key, _, rest = line.partition(":")
            if key in ("VmPeak", "VmHWM") or key.startswith("Private_"):
                key = "private" if key.startswith("Private_") else key
                kilobytes[key] = kilobytes.get(key, 0) + int(rest.split()[0])
    return kilobytes


def bytes_of(packages: Iterable[metadata.Distribution]) -> int:
    """Return the size of the packages' own files."""
    paths = [Path(str(file.locate())) for package in packages for file in package.files or []]
    return sum(path.stat().st_size for path in paths if path.is_file())


def main(name: str, way_name: str, work: str, text: str) -> None:
    peer: Peer = importlib.import_module(f"benchmarks.peers.{name}").PEER
    way = next(way for way in peer.ways if way.name == way_name and work in way.works)
    parameters = json.loads(text)
    names = [requirement.partition("==")[0].partition("[")[0] for requirement in peer.pip]
    assert way.make is not None
    try:
        result = measure(way.make(work, parameters), parameters, way.samples)
    except (MissingError, ImportError) as error:
        result = {"error": str(error)}
    else:
        result.update(memory())
        if not parameters.get("seconds"):
            result["installed"] = bytes_of(map(metadata.distribution, peer.packages))
    result["versions"] = {name: version(name) for name in dict.fromkeys([*names, *peer.packages])}
    print(json.dumps(result))


def version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


if __name__ == "__main__":
    main(*sys.argv[1:])
