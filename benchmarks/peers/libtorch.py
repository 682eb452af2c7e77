# benchmarks/peers/libtorch.py — LibTorch: the headers and libraries in PyTorch's wheel
# SPDX-License-Identifier: MIT
from benchmarks.environment import HOME
from benchmarks.registry import MissingError, Peer


def libraries() -> list[str]:
    for folder in HOME.glob("lib/python*/site-packages/torch"):
        includes = [folder / "include", folder / "include/torch/csrc/api/include"]
        flags = [word for path in includes for word in ("-isystem", str(path))]
        flags += [f"-L{folder / 'lib'}", f"-Wl,-rpath,{folder / 'lib'}"]
        return [*flags, "-ltorch", "-ltorch_cpu", "-lc10"]
    raise MissingError("torch is not installed")


PEER = Peer("LibTorch", pip=["torch==2.13.0"], libraries=libraries)
PEER.program("C++ eager", "libtorch", "tiny", "small", argument="eager")
