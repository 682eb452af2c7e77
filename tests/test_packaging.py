# tests/test_packaging.py — sdist, wheel from it, installed and editable: each used as a user would
# SPDX-License-Identifier: MIT
"""One compilation serves them all: baseline instructions only, nothing optimized."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest
import setup
from burtorch import _core
from conftest import JOBS, LISTING, LISTING_PRINTS, ROOT, Run

PACKAGE = ROOT / "python" / "burtorch"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


def files_of(root: Path, *patterns: str) -> set[str]:
    return {p.relative_to(root).as_posix() for pattern in patterns for p in root.rglob(pattern)}


HEADERS = files_of(ROOT / "include", "*.h", "*.hpp")


@pytest.fixture(scope="module")
def sdist(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    make = "import sys, scikit_build_core.build as b; b.build_sdist(sys.argv[1])"
    run([sys.executable, "-c", make, folder])
    (archive,) = folder.iterdir()
    return archive


@pytest.fixture(scope="module")
def source(sdist: Path) -> Path:
    """The unpacked sdist: no git, nothing that was built, none of the tools' folders."""
    with tarfile.open(sdist) as archive:
        archive.extractall(sdist.parent)
    return sdist.parent / sdist.name[: -len(".tar.gz")]


@pytest.fixture(scope="module")
def quickly(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Options of pip with which the package compiles soonest, and only once: with clang, if there is one."""
    faster = setup.find_compiler(setup.CLANG_NAMES)
    settings = {
        "build-dir": str(tmp_path_factory.mktemp("build")),
        "build.tool-args": f"-j{JOBS}",
        "cmake.build-type": "Debug",
        "cmake.define.CMAKE_CXX_COMPILER": faster.path if faster else compiler,
        "cmake.define.CMAKE_CXX_FLAGS_DEBUG": "-O0",
        "cmake.define.BURTORCH_PYTHON_ISAS": "baseline",
        "cmake.define.CMAKE_UNITY_BUILD": "ON",
        "cmake.define.CMAKE_UNITY_BUILD_BATCH_SIZE": "6",
    }
    return [
        "--no-build-isolation",
        "--no-deps",
        *(f"--config-settings={key}={value}" for key, value in settings.items()),
    ]


@pytest.fixture(scope="module")
def wheel(source: Path, quickly: list[str], run: Run) -> Path:
    folder = source.parent / "wheel"
    run([*PIP, "wheel", *quickly, "-w", folder, source], cwd=source)
    (archive,) = folder.iterdir()
    return archive


def fresh_environment(folder: Path, run: Run) -> Path:
    """An environment with nothing of its own that reaches NumPy and the build tools of this one."""
    run([sys.executable, "-m", "venv", "--without-pip", folder])
    (site,) = folder.rglob("site-packages")
    reached = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site / "reach.pth").write_text("\n".join(sorted(reached)) + "\n", encoding="utf-8")
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


@pytest.fixture(scope="module")
def installed(wheel: Path, run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    python = fresh_environment(tmp_path_factory.mktemp("installed"), run)
    install = ["install", "--no-index", "--no-deps", "--ignore-installed"]
    run([*PIP, "--python", python, *install, wheel])
    return python


@pytest.fixture(scope="module")
def editable(
    wheel: Path,
    source: Path,
    quickly: list[str],
    run: Run,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Installed from the same sources with -e, out of the folder in which the wheel was compiled."""
    python = fresh_environment(tmp_path_factory.mktemp("editable"), run)
    run([*PIP, "--python", python, "install", "--ignore-installed", *quickly, "-e", source])
    return python


def burtorch(run: Run, python: Path, *arguments: str) -> str:
    return run([python, "-m", "burtorch", *arguments], cwd=python.parent).strip()


def test_sdist_holds_what_is_needed_and_nothing_else(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    assert {f"include/{name}" for name in HEADERS} <= names
    for folder in ("bindings", "cmake", "cpp_tests", "examples", "python", "tests"):
        own = files_of(ROOT / folder, "*.cpp", "*.hpp", "*.in", "*.py", "*.pyi", "*.txt")
        assert {f"{folder}/{name}" for name in own} <= names
    for name in ("LICENSE", "README.md", "pyproject.toml", "CMakeLists.txt", "PKG-INFO"):
        assert name in names
    unwanted = (".ci", ".git", ".github", ".venv", "build", "dist", ".mypy_cache", ".ruff_cache")
    assert [name for name in names if name.split("/")[0] in unwanted] == []
    assert [name for name in names if "__pycache__" in name or name.endswith(".so")] == []


def test_wheel_holds_what_is_needed_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    expected = files_of(PACKAGE.parent, "*.py", "*.pyi", "*.html") | {"burtorch/py.typed"}
    expected |= {f"burtorch/include/{name}" for name in HEADERS}
    expected |= {f"burtorch/{module}{suffix}" for module in ("_cpu", "_core_baseline")}
    names = ("Config", "ConfigVersion", "Targets")
    expected |= {f"burtorch/share/cmake/burtorch/burtorch{name}.cmake" for name in names}
    expected |= {"burtorch/share/pkgconfig/burtorch.pc"}
    debuggers = files_of(ROOT / "share" / "burtorch", "*.py", "*.natvis")
    expected |= {f"burtorch/share/burtorch/{name}" for name in debuggers}
    info = {name for name in contents if name.split("/")[0].endswith(".dist-info")}
    assert set(contents) - info == expected
    assert any(name.endswith("LICENSE") for name in info)
    for name, content in contents.items():
        if not name.endswith(suffix):
            assert str(ROOT).encode() not in content, name
            assert str(wheel.parent.parent).encode() not in content, name


def test_metadata(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        metadata = HeaderParser().parsestr(archive.read(name).decode())
    needed = [item for item in metadata.get_all("Requires-Dist", []) if "extra" not in item]
    assert sorted(needed) == ["graphviz", "numpy", "tqdm"]
    assert set(metadata.get_all("Provides-Extra", [])) == {"viz", "test", "bench", "dev"}
    oldest = ".".join(map(str, setup.OLDEST_PYTHON))
    assert metadata["Requires-Python"] == f">={oldest}"
    assert metadata["License-Expression"] == "MIT"


@pytest.mark.parametrize("kind", ["installed", "editable"])
def test_python_programs_and_the_command_line(
    kind: str, request: pytest.FixtureRequest, run: Run, tmp_path: Path
) -> None:
    python = request.getfixturevalue(kind)
    where = (
        "import burtorch as bt; x = bt.Value(3.0); (x * x).backward(); print(x.grad, bt.__file__)"
    )
    grad, file = run([python, "-c", where], cwd=tmp_path).split()
    home = request.getfixturevalue("source") if kind == "editable" else python.parents[1]
    assert grad == "6.0"
    assert Path(file).is_relative_to(home)

    version = burtorch(run, python, "--version")
    assert run([python.parent / "burtorch", "--version"]).strip() == version
    assert f"burtorch {version}\ninstruction set: baseline" in burtorch(run, python, "info")
    assert Path(burtorch(run, python, "--includes"), "burtorch.h").is_file()
    assert Path(burtorch(run, python, "--cmakedir"), "burtorchConfig.cmake").is_file()


PROGRAM = """
import burtorch as bt
x, y = bt.Value(0.7), bt.Value(-1.3)
z = bt.reduce_sum([bt.exp(x * y + 0.1), bt.gelu(y) / 3, bt.erf(x) ** 1.5])
z.backward()
print(z.data.hex(), x.grad.hex(), y.grad.hex())
"""


def test_the_instruction_set_can_be_chosen(installed: Path, run: Run, tmp_path: Path) -> None:
    """Beside the wheel's baseline stands the build under test, for the best this machine has."""
    (package,) = installed.parents[1].rglob("site-packages/burtorch")
    isa = vars(_core)["_isa"]
    best = Path(importlib.import_module(f"burtorch._core_{isa}").__file__ or "")
    if not (package / best.name).exists():
        shutil.copy(best, package)
    prints = {}
    for chosen in ("baseline", isa):
        info = run([installed, "-m", "burtorch", "info"], cwd=tmp_path, BURTORCH_ISA=chosen)
        assert f"instruction set: {chosen}" in info
        prints[chosen] = run([installed, "-c", PROGRAM], cwd=tmp_path, BURTORCH_ISA=chosen)
    assert f"instruction set: {isa}" in run([installed, "-m", "burtorch", "info"], cwd=tmp_path)
    assert len(set(prints.values())) == 1, "all builds give the same numbers"


def test_cpp_programs_find_the_headers_in_the_wheel(
    installed: Path, cmake: str, compiler: str, generator: list[str], run: Run, tmp_path: Path
) -> None:
    include = burtorch(run, installed, "--includes")
    run([compiler, "-std=c++20", f"-I{include}", LISTING, "-o", tmp_path / "listing"])
    assert run([tmp_path / "listing"]) == LISTING_PRINTS

    options = [*generator, f"-DCMAKE_CXX_COMPILER={compiler}"]
    options.append(f"-Dburtorch_DIR={burtorch(run, installed, '--cmakedir')}")
    build = tmp_path / "build"
    run([cmake, *options, "-S", ROOT / "cpp_tests" / "consumer", "-B", build])
    run([cmake, "--build", build])
    assert run([build / "listing"]) == LISTING_PRINTS


def test_an_editable_install_sees_changes(editable: Path, source: Path, run: Run) -> None:
    show = [editable, "-c", "import burtorch.transforms as t; print(vars(t).get('ADDED'))"]
    assert run(show, cwd=source.parent).strip() == "None"
    with (source / "python" / "burtorch" / "transforms.py").open("a", encoding="utf-8") as file:
        file.write('ADDED = "seen"\n')
    assert run(show, cwd=source.parent).strip() == "seen"


def test_an_unknown_instruction_set_is_not_compiled(
    cmake: str, compiler: str, generator: list[str], run: Run, tmp_path: Path
) -> None:
    pybind11 = run([sys.executable, "-m", "pybind11", "--cmakedir"]).strip()
    options = [f"-DCMAKE_CXX_COMPILER={compiler}", f"-DPython_EXECUTABLE={sys.executable}"]
    options += [f"-Dpybind11_DIR={pybind11}", "-DBURTORCH_PYTHON=ON", "-DBURTORCH_TESTS=OFF"]
    command = [cmake, *generator, "-S", str(ROOT), "-B", str(tmp_path), *options]
    done = subprocess.run(
        [*command, "-DBURTORCH_PYTHON_ISAS=baseline;z80"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "BURTORCH_PYTHON_ISAS: z80 is none of baseline" in " ".join(done.stderr.split())
