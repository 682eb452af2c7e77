# benchmarks/package.py — what the Python package costs before it computes: its import, and Values that are kept
# SPDX-License-Identifier: MIT
"""Usage: python benchmarks/package.py

Time and memory of `import burtorch` beyond NumPy's own import, the least of several new processes each; and the
bytes of a million Values that are all alive, with their Python objects and the list that holds them.
"""

from __future__ import annotations

import json
import subprocess
import sys

MEASURE = """
import gc, json, time
start = time.perf_counter()
{work}
seconds = time.perf_counter() - start
lines = open("/proc/self/status").read().splitlines()
kilobytes = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
print(json.dumps([seconds, kilobytes]))
"""
VALUES = """
import burtorch as bt
tape = bt.Tape(capacity={count})
with tape:
    kept = [bt.Value(0.5) for _ in range({count})]
"""
COUNT = 1_000_000


def least(work: str, processes: int = 7) -> tuple[float, float]:
    """Seconds and resident kilobytes after some work, the least of so many processes."""
    command = [sys.executable, "-c", MEASURE.format(work=work)]
    runs = [
        json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
        for _ in range(processes)
    ]
    return min(seconds for seconds, _ in runs), min(kilobytes for _, kilobytes in runs)


def main() -> None:
    numpy, numpy_size = least("import numpy")
    package, package_size = least("import burtorch")
    print(
        f"import burtorch, beyond NumPy's {numpy * 1e3:.0f} ms and {numpy_size / 1024:.1f} MB: "
        f"{(package - numpy) * 1e3:.0f} ms, {(package_size - numpy_size) / 1024:.1f} MB"
    )
    _, size = least(VALUES.format(count=COUNT), 3)
    print(f"{COUNT:,} living Values: {(size - package_size) * 1024 / COUNT:.0f} bytes each")


if __name__ == "__main__":
    main()
