"""The house stands in layers: imports go down, heavy packages stay at the edges, nothing goes round."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "fitladder"
LAYERS = (  # an entry may import its own layer's package and every layer before it
    ("errors", "canonical", "chained", "strict_yaml", "protocol"),
    ("inputs", "macros", "prompts", "engine.base", "engine.rows", "engine.seeds", "engine.two_stage"),
    ("gates", "planner", "bundles", "audit", "ladder", "approval", "semantics"),
    ("engine", "lineage", "orchestrator", "phase", "report", "study"),
    ("commands", "cli"),
)
HEAVY = ("prefect", "dvc", "vllm", "torch", "transformers")
EDGES = {"engine/vllm.py": {"vllm", "torch"}, "engine/convert.py": {"torch", "transformers"}}
MODULES = sorted(PACKAGE.rglob("*.py"))


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


def _layer(name: str) -> int:
    parts = name.split(".")
    for depth in (2, 1):
        for level, members in enumerate(LAYERS):
            if ".".join(parts[:depth]) in members:
                return level
    raise AssertionError(f"{name} stands in no layer; give it a place in LAYERS")


def _name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_imports_go_down_and_never_hide(path: Path) -> None:
    name = _name(path)
    for module, inside in _imports(path):
        top = module.split(".")[0]
        assert not (inside and top != "__future__"), f"{name} imports {module} inside a function"
        if top in HEAVY:
            assert top in EDGES.get(path.relative_to(PACKAGE).as_posix(), set()), f"{name} imports {top}"
        assert top not in ("flows", "tasks"), f"{name} imports {module}: src knows neither flows nor tasks"
        if top == "fitladder" and module != "fitladder" and not name.endswith("__init__"):
            target = module.removeprefix("fitladder.")
            here, there = _layer(name), _layer(target)
            same_package = name.split(".")[0] == target.split(".")[0]
            free = here == there and here in (0, 1, 3, 4)  # L2 siblings exchange plain data
            assert there < here or same_package or free, f"{name} (L{here}) imports {target} (L{there})"


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
    loaded = _loaded("sys.argv=['fitladder','--help']\nfrom fitladder.cli import main\nmain()")
    assert not loaded & {*HEAVY, "numpy", "pyarrow", "matplotlib", "tokenizers"}


def test_the_core_loads_nothing_heavy() -> None:
    core = [
        _name(path) for path in MODULES if _name(path).split(".")[0] in {*LAYERS[0], *LAYERS[1], *LAYERS[2]}
    ]
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
