"""The binding moves with the protocol, the data and the bound code, and with nothing else."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import fitladder
from fitladder.errors import BindingChanged
from fitladder.records.binding import Binding
from fitladder.registry.binding import bind, check_generation, moved
from fitladder.registry.load import parse_registry
from fitladder.registry.restart_advice import REHEARSAL, restart_advice

EXACT = "qwen35_4b_verified_macro_exact_cudagraph_rerun"
PACKAGE = Path(fitladder.__file__).parent


def _bind(text: str) -> Binding:
    return bind(parse_registry(text).experiment(EXACT))


def test_state_and_place_are_not_bound(params_text: str, edited: Callable[..., str]) -> None:
    now = _bind(params_text)
    for path, value in [("state", "open"), ("artifacts.root", "/elsewhere/entirely")]:
        assert _bind(edited(path, value)) == now


@pytest.mark.parametrize(
    ("path", "value", "part"),
    [
        ("sampling.run_seed", 2702, "section.sampling.run_seed"),
        ("rungs.0.deadline_s", 1, "section.rungs[0].deadline_s"),
        ("data.tasks", "0" * 64, "data.tasks"),
        ("model.revision", "0" * 40, "section.model.revision"),
    ],
)
def test_a_protocol_value_moves_it(
    params_text: str, edited: Callable[..., str], path: str, value: object, part: str
) -> None:
    old, new = _bind(params_text), _bind(edited(path, value))
    assert part in [change.part for change in moved(old, new)]
    with pytest.raises(BindingChanged, match="made under another binding") as refusal:
        check_generation(old, new, where="bundle")
    assert f"fitladder new NAME --from {EXACT}" in str(refusal.value)


def test_only_the_rehearsal_is_thrown_away_to_begin_anew() -> None:
    assert restart_advice(REHEARSAL) == "`make clean-demo` to rehearse anew"
    assert "clean-demo" not in restart_advice(EXACT)
    makefile = (PACKAGE.parents[1] / "Makefile").read_text()
    assert f"runs/{REHEARSAL}" in makefile


def _bind_in_copy(package: Path) -> Binding:
    code = (
        "import sys; from pathlib import Path; from fitladder.registry.load import load_registry;"
        "from fitladder.registry.binding import bind;"
        f"sys.stdout.write(bind(load_registry(Path(sys.argv[1])).experiment({EXACT!r})).model_dump_json())"
    )
    params = PACKAGE.parents[1] / "params.yaml"
    done = subprocess.run(
        [sys.executable, "-c", code, str(params)],
        env={"PYTHONPATH": str(package.parent), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return Binding.model_validate_json(done.stdout)


def _remark(path: Path) -> None:
    path.write_text(path.read_text() + "\n# a remark\n")


def test_a_comment_in_bound_code_moves_it_and_a_report_edit_does_not(tmp_path: Path) -> None:
    copy = tmp_path / "fitladder"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = _bind_in_copy(copy)
    assert "sampling/two_stage.py" in before.generation_code
    assert "audit/periodicity.py" in before.decision_code
    report = next((copy / "report").glob("*.py"))
    _remark(report)
    assert _bind_in_copy(copy) == before
    _remark(copy / "audit/periodicity.py")
    audited = _bind_in_copy(copy)
    assert audited.binding_sha256 != before.binding_sha256
    check_generation(before, audited, where="bundle")  # audits re-run; bundles are not foreign
    _remark(copy / "sampling/two_stage.py")
    with pytest.raises(BindingChanged, match="two_stage"):
        check_generation(before, _bind_in_copy(copy), where="bundle")
