"""Packages form a strict DAG, imports go down only, and heavy packages stay at the edges."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "fitladder"
CORE = (  # a package may import itself and every package before it, none behind it
    *(
        "errors",
        "logs",
        "canonical",
        "frozen",
        "utc",
        "files",
        "capacity",
        "records",
        "dvc_files",
        "registry",
    ),
    *("prompts", "sampling", "domains.macros", "domains", "gates", "store", "sandbox", "audit", "ladder"),
)
EDGE = (
    *("engine", "engine.parent", "engine.child", "engine.convert", "workspace", "export", "evidence"),
    *(
        "approval",
        "phase",
        "prefect_api",
        "dvc_api",
        "semantics",
        "study",
        "report",
        "stages",
        "cli",
        "__main__",
    ),
)
ORDER = (*CORE, *EDGE)
HEAVY = ("prefect", "dvc", "vllm", "torch", "transformers")
IMPORTERS = {
    "engine/child/vllm_engine.py": {"vllm", "torch"},
    "engine/child/kv_device.py": {"torch"},
    "engine/child/kv_oracle.py": {"vllm", "torch"},
    "engine/child/kv_platform.py": {"vllm", "torch"},
    "engine/convert/gguf.py": {"torch", "transformers"},
}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def _imports(path: Path) -> list[tuple[str, bool]]:
    """(module, inside a function) of every import."""
    found: list[tuple[str, bool]] = []

    def walk(node: ast.AST, inside: bool) -> None:
        for child in ast.iter_child_nodes(node):
            nested = inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            if isinstance(child, ast.Import):
                found.extend((alias.name, inside) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                found.append((child.module or "", inside))
            walk(child, nested)

    walk(ast.parse(path.read_text()), False)
    return found


def _package(module: str) -> str:
    """The entry of ORDER that holds `module`, the longest one that does."""
    parts = module.split(".")
    for depth in (2, 1):
        if (name := ".".join(parts[:depth])) in ORDER:
            return name
    raise AssertionError(f"{module} is in no package of ORDER; give it a place there")


def _name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_imports_go_down_and_never_hide(path: Path) -> None:
    name = _name(path)
    for module, inside in _imports(path):
        top = module.split(".")[0]
        assert not (inside and top != "__future__"), f"{name} imports {module} inside a function"
        if top in HEAVY:
            assert top in IMPORTERS.get(path.relative_to(PACKAGE).as_posix(), set()), f"{name} imports {top}"
        assert top not in ("flows", "tasks"), f"{name} imports {module}: src knows neither flows nor tasks"
        if top == "fitladder" and module != "fitladder" and not name.endswith("__init__"):
            here, there = _package(name), _package(module.removeprefix("fitladder."))
            assert ORDER.index(there) <= ORDER.index(here), f"{name} ({here}) imports {module} ({there})"


def test_every_package_has_a_place_in_the_order() -> None:
    assert {_package(_name(path)) for path in MODULES} == set(ORDER)


@pytest.mark.parametrize("side", ["engine.parent", "engine.child", "engine.convert"])
def test_no_side_of_the_engine_imports_another(side: str) -> None:
    others = {"engine.parent", "engine.child", "engine.convert"} - {side}
    for path in MODULES:
        if _package(_name(path)) == side:
            found = {
                _package(module.removeprefix("fitladder."))
                for module, _ in _imports(path)
                if module.startswith("fitladder.")
            }
            assert not found & others, _name(path)


def test_no_import_cycles() -> None:
    names = {_name(path): path for path in MODULES}
    graph = {
        name: {
            target
            for module, _ in _imports(path)
            if (target := module.removeprefix("fitladder.")) in names and module != "fitladder"
        }
        for name, path in names.items()
    }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail, name))
        if name not in done:
            for target in sorted(graph[name]):
                visit(target, (*trail, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def _loaded(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sorted(m.split('.')[0] for m in sys.modules))"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(done.stdout.splitlines()[-1].split())


def test_help_loads_nothing_heavy() -> None:
    loaded = _loaded("sys.argv=['fitladder','--help']\nfrom fitladder.cli.main import main\nmain()")
    assert not loaded & {*HEAVY, "numpy", "pyarrow", "matplotlib", "tokenizers"}


def test_the_core_loads_nothing_heavy() -> None:
    core = [_name(path) for path in MODULES if _package(_name(path)) in CORE]
    wanted = [name for name in core if not name.endswith("__init__") and not name.startswith("engine.")]
    assert len(wanted) > 30
    code = "import importlib\n" + "".join(f"importlib.import_module('fitladder.{name}')\n" for name in wanted)
    assert not _loaded(code) & {*HEAVY, "matplotlib"}


def test_no_module_needs_scrolling_to_understand() -> None:
    long = {_name(path): count for path in MODULES if (count := len(path.read_text().splitlines())) > 300}
    assert not long


@pytest.mark.parametrize("path", [path for path in MODULES if path.stat().st_size], ids=_name)
def test_every_module_says_what_it_answers(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))
