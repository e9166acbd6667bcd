"""What loads when, and which way imports point: start-up stays cheap, and the layers stay layers."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tracetool

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "tracetool"
HEAVY = ("altair", "numba", "numpy", "polars", "pyarrow", "vl_convert", "dpkt", "jinja2")
#: Folders whose files do not import one another: a new format, metric, chart or model is one new file.
SEPARATE = ("parsers", "metrics", "report/charts", "reconstruct/models")
HELP = "import sys; sys.argv = ['tracetool', {words}]; from tracetool.cli import main; main()"


def loaded_by(code: str) -> set[str]:
    """Heavy libraries in memory after some code has run, in a fresh interpreter, however it ends."""
    watch = f"import atexit, sys; atexit.register(lambda: print('\\n@', *(m for m in {HEAVY} if m in sys.modules)))\n"
    done = subprocess.run([sys.executable, "-c", watch + code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.rsplit("@", 1)[1].split())


def test_the_probe_itself_sees_what_is_loaded():
    assert loaded_by("import numpy") == {"numpy"}


@pytest.mark.parametrize("words", ["'--help'", "'--version'", "'ingest', '--help'", "'plot-cwnd', '--help'"])
def test_help_loads_no_heavy_library(words):
    assert loaded_by(HELP.format(words=words)) == set()


def test_importing_the_package_loads_no_heavy_library():
    assert loaded_by("import tracetool; tracetool.__all__; dir(tracetool)") == set()


def test_a_log_is_read_without_the_kernels_of_captures():
    assert loaded_by("import tracetool.ingest, tracetool.reading, tracetool.executors") == set()


def test_public_names_are_those_of_all_and_each_can_be_had():
    public = {name for name in dir(tracetool) if not name.startswith("_")} | {"__version__"}
    assert set(tracetool.__all__) == public
    assert len(tracetool.__all__) == len(set(tracetool.__all__))
    for name in tracetool.__all__:
        value = getattr(tracetool, name)
        assert name == "__version__" or value.__doc__, f"{name} says nothing of itself"


def test_a_public_function_outlives_the_loading_of_the_module_of_its_name():
    code = (
        "import tracetool, tracetool.api, tracetool.report.page, tracetool.reconstruct.driver, types;"
        "print([n for n in tracetool.__all__ for _ in '12' if isinstance(getattr(tracetool, n), types.ModuleType)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_design_names_what_the_library_offers():
    offered = {"ingest", "open", "reconstruct", "flows", "slow_starts", "fairness", "plot_cwnd", "report", "Dataset"}
    assert offered <= set(tracetool.__all__)


def test_an_unknown_name_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="no_such_name"):
        tracetool.no_such_name  # noqa: B018


def test_layers_import_downward_only():
    pytest.importorskip("importlinter", reason="import-linter is not installed")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command; lint_imports_command()",
            "--no-cache",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def imports(path: Path) -> set[str]:
    """Dotted names that a module imports anywhere, inside functions too; those for type checkers only left out."""
    found = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


def registered(folder: str) -> set[str]:
    """Modules of a folder that its registry, in ``__init__.py``, loads by name."""
    text = (PACKAGE / folder / "__init__.py").read_text(encoding="utf-8")
    strings = {node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)}
    return {path.stem for path in (PACKAGE / folder).glob("*.py") if path.stem in strings}


@pytest.mark.parametrize("folder", SEPARATE)
def test_things_of_one_kind_do_not_import_one_another(folder):
    modules = registered(folder)
    if not modules:
        pytest.skip(f"{folder} has no registry by name")
    package = f"tracetool.{folder.replace('/', '.')}"
    for name in modules:
        others = {f"{package}.{other}" for other in modules - {name}}
        taken = {
            line
            for line in imports(PACKAGE / folder / f"{name}.py")
            for o in others
            if (line + ".").startswith(o + ".")
        }
        assert not taken, f"{folder}/{name}.py imports {taken}"


def test_only_the_command_line_prints_exits_or_reads_the_environment():
    """`sys.exit`, `print(` and `os.environ` stand in cli/ only; kernels may ask where machine code is kept."""
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        if path.is_relative_to(PACKAGE / "cli"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = ast.unparse(node) if isinstance(node, (ast.Call, ast.Attribute)) else ""
            if text.startswith(("print(", "sys.exit(", "exit(")) or text == "os.environ":
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}: {text[:60]}")
    assert not [line for line in wrong if not line.startswith("tracetool/kernels/_")]


def test_heavy_libraries_stand_only_where_they_are_used():
    """altair and vl_convert under report/, numba under kernels/, dpkt under packets/, and typer under cli/."""
    homes = {
        "altair": "report",
        "vl_convert": "report",
        "numba": "kernels",
        "dpkt": "packets",
        "typer": "cli",
        "rich": "cli",
    }
    for path in PACKAGE.rglob("*.py"):
        folder = path.relative_to(PACKAGE).parts[0]
        for name in imports(path):
            home = homes.get(name.split(".")[0])
            assert home in (None, folder), f"{path.relative_to(ROOT)} imports {name}, which belongs to {home}/"
