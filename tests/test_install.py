# tests/test_install.py — the listing built against an installed burtorch, in every way
# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from conftest import LISTING, LISTING_PRINTS, ROOT, Run


@pytest.fixture(scope="module")
def prefix(
    cmake: str,
    compiler: str,
    generator: list[str],
    run: Run,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """An installation, moved after installing: it must not remember where it was made."""
    folder = tmp_path_factory.mktemp("install")
    options = [f"-DBURTORCH_{part}=OFF" for part in ("TESTS", "BENCHMARKS", "EXAMPLES")]
    options.append(f"-DCMAKE_CXX_COMPILER={compiler}")
    run([cmake, *generator, "-S", ROOT, "-B", folder / "build", *options])
    run([cmake, "--install", folder / "build", "--prefix", folder / "first"])
    return (folder / "first").rename(folder / "moved")


def build_and_run_listing(
    cmake: str, source: Path, folder: Path, options: list[str], run: Run
) -> str:
    run([cmake, "-S", source, "-B", folder, *options])
    run([cmake, "--build", folder])
    return run([folder / "listing"])


def test_find_package(
    cmake: str, compiler: str, generator: list[str], prefix: Path, run: Run, tmp_path: Path
) -> None:
    options = [*generator, f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_PREFIX_PATH={prefix}"]
    source = ROOT / "cpp_tests" / "consumer"
    assert build_and_run_listing(cmake, source, tmp_path, options, run) == LISTING_PRINTS


def test_add_subdirectory(
    cmake: str, compiler: str, generator: list[str], run: Run, tmp_path: Path
) -> None:
    options = [*generator, f"-DCMAKE_CXX_COMPILER={compiler}"]
    source = ROOT / "cpp_tests" / "consumer_subdirectory"
    assert build_and_run_listing(cmake, source, tmp_path, options, run) == LISTING_PRINTS


def test_pkg_config(compiler: str, prefix: Path, run: Run, tmp_path: Path) -> None:
    pkg_config = shutil.which("pkg-config")
    if pkg_config is None:
        pytest.skip("no pkg-config")
    path = str(prefix / "share" / "pkgconfig")
    flags = run([pkg_config, "--cflags", "burtorch"], PKG_CONFIG_PATH=path).split()
    run([compiler, "-std=c++20", *flags, LISTING, "-o", tmp_path / "listing"])
    assert run([tmp_path / "listing"]) == LISTING_PRINTS


@pytest.mark.parametrize(("version", "accepted"), [("0.1", True), ("0.0.9", False), ("1.0", False)])
def test_version_file(
    version: str, accepted: bool, cmake: str, prefix: Path, run: Run, tmp_path: Path
) -> None:
    script = tmp_path / "version.cmake"
    file = prefix / "share" / "cmake" / "burtorch" / "burtorchConfigVersion.cmake"
    script.write_text(
        f"set(PACKAGE_FIND_VERSION {version})\n"
        f"set(PACKAGE_FIND_VERSION_MAJOR {version.split('.')[0]})\n"
        f"set(PACKAGE_FIND_VERSION_MINOR {version.split('.')[1]})\n"
        f"include({file.as_posix()})\n"
        'message("compatible: ${PACKAGE_VERSION_COMPATIBLE}")\n'
    )
    assert run([cmake, "-P", script]).strip() == f"compatible: {str(accepted).upper()}"


def test_every_header_is_installed(prefix: Path) -> None:
    def headers(root: Path) -> set[str]:
        return {path.relative_to(root).as_posix() for path in root.rglob("*.h*") if path.is_file()}

    assert headers(prefix / "include") == headers(ROOT / "include")


def test_what_debuggers_need_is_installed(prefix: Path) -> None:
    for name in ("gdb/burtorch_gdb.py", "burtorch.natvis"):
        installed = prefix / "share" / "burtorch" / name
        assert installed.read_bytes() == (ROOT / "share" / "burtorch" / name).read_bytes()


def test_nothing_installed_names_a_folder_of_this_machine(prefix: Path) -> None:
    for path in (prefix / "share").rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            assert str(ROOT) not in text, path
            assert str(prefix.parent) + os.sep not in text, path
