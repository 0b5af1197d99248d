"""Environment of an engine process: stray variables are dropped, those that can matter are recorded."""

from fitladder.engine.environment import child_environment, recorded_environment


def test_stray_vllm_variables_are_dropped_and_registered_ones_win() -> None:
    got = child_environment(
        {"PATH": "/bin", "VLLM_CPU_KVCACHE_SPACE": "4", "VLLM_CACHE_ROOT": "/c", "HF_HUB_OFFLINE": "0"},
        {"VLLM_USE_FLASHINFER_SAMPLER": "0"},
    )
    assert "VLLM_CPU_KVCACHE_SPACE" not in got
    assert got["VLLM_CACHE_ROOT"] == "/c"
    assert got["VLLM_USE_FLASHINFER_SAMPLER"] == "0"
    assert got["HF_HUB_OFFLINE"] == "1"
    assert got["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"


def test_only_variables_that_can_matter_are_recorded() -> None:
    seen = {"PATH": "/bin", "VLLM_DIST_IDENT": "random", "OMP_WAIT_POLICY": "PASSIVE", "A": "1"}
    assert recorded_environment(seen, {"A": "1", "B": "2"}) == {"A": "1", "OMP_WAIT_POLICY": "PASSIVE"}


def test_what_python_is_told_by_variables_is_dropped_or_on_record() -> None:
    told = {
        "PYTHONSTARTUP": "/x.py",
        "PYTHONHOME": "/y",
        "PYTHONUSERBASE": "/z",
        "PYTHONBREAKPOINT": "evil.hook",
        "PYTHONPATH": "/site",
        "LD_PRELOAD": "/evil.so",
    }
    child = child_environment(told, {})
    assert {name for name in child if name.startswith("PYTHON")} == {"PYTHONPATH", "PYTHONUNBUFFERED"}
    seen = recorded_environment(child, {})
    assert (seen["PYTHONPATH"], seen["LD_PRELOAD"]) == ("/site", "/evil.so")
