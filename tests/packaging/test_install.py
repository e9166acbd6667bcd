"""The three ways to install: wheel, source distribution, editable. Each finds the schemas and prints a table from them.

Nothing is downloaded but the build back end: what tracetool depends on comes from the environment that runs the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = {path.name for path in (ROOT / "schemas").glob("*.json")}


def run(*words: object, cwd: Path, **env: str) -> str:
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """A copy of what git would commit, so that nothing else gets into a build, and builds leave nothing here."""
    folder = tmp_path_factory.mktemp("source")
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    return folder


@pytest.fixture(scope="module")
def built(source, tmp_path_factory) -> Path:
    """A source distribution, and a wheel that was built from it."""
    pytest.importorskip("build", reason="build is not installed")
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", out, source, cwd=out)
    return out


@pytest.fixture
def environment(tmp_path) -> Path:
    """Python of a new virtual environment with nothing but pip in it."""
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    return tmp_path / "venv" / "bin" / "python"


def dependencies(tmp_path: Path) -> str:
    """A folder with links to all packages of this environment except tracetool itself."""
    folder = tmp_path / "dependencies"
    folder.mkdir()
    for place in dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))):
        for path in Path(place).iterdir():
            if "tracetool" not in path.name and path.suffix != ".pth":
                (folder / path.name).symlink_to(path)
    return str(folder)


def check(python: Path, tmp_path: Path, home: Path) -> None:
    """The command and the library answer from the place where they were installed, away from the checkout."""
    env = {"PYTHONPATH": dependencies(tmp_path), "PYTHONSAFEPATH": "1"}
    where = run(python, "-c", "import tracetool; print(tracetool.__file__)", cwd=tmp_path, **env).strip()
    assert Path(where).is_relative_to(home)
    assert "snaplen_bytes" in run(python.with_name("tracetool"), "schema", "inputs", cwd=tmp_path, **env)
    known = run(python, "-c", "from tracetool import tables; print(*tables.names())", cwd=tmp_path, **env).split()
    assert {f"{name}.json" for name in known} == SCHEMAS


def test_wheel_holds_the_schemas_types_and_licence_and_nothing_of_the_repository_else(built):
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"tracetool/schemas/{name}" for name in SCHEMAS} <= names
    assert "tracetool/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"tracetool"}
    assert wheel.name.endswith("py3-none-any.whl")  # no compiler is needed


def test_source_distribution_holds_what_the_tests_need(built):
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {name.split("/", 1)[1] for name in tar.getnames() if "/" in name}
    assert {"README.md", "LICENSE", "schemas/packets.json", "sample_traces/reno-sawtooth.pcap.gz"} <= names
    assert {"docs/recording.md", "tests/packaging/test_install.py", "pyproject.toml"} <= names


def test_wheel_install(built, environment, tmp_path):
    (wheel,) = built.glob("*.whl")
    run(environment, "-m", "pip", "install", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    check(environment, tmp_path, tmp_path / "venv")


def test_source_distribution_install(built, environment, tmp_path):
    (archive,) = built.glob("*.tar.gz")
    run(environment, "-m", "pip", "install", "--no-deps", archive, cwd=tmp_path)
    check(environment, tmp_path, tmp_path / "venv")


def test_editable_install(source, environment, tmp_path):
    run(environment, "-m", "pip", "install", "--no-deps", "--editable", source, cwd=tmp_path)
    check(environment, tmp_path, source)


def test_version_stands_in_one_place(built):
    from tracetool import __version__

    assert next(built.glob("*.whl")).name.startswith(f"tracetool-{__version__}-")
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in pyproject
    assert f'"{__version__}"' not in pyproject
