"""Environment of an engine process and the one line that tells why it ended."""

from fitladder.engine.environment import child_environment, recorded_environment
from fitladder.engine.parent.failure import describe_exit, last_cause, log_cause


def test_stray_vllm_variables_are_dropped_and_registered_ones_win():
    got = child_environment(
        {"PATH": "/bin", "VLLM_CPU_KVCACHE_SPACE": "4", "VLLM_CACHE_ROOT": "/c", "HF_HUB_OFFLINE": "0"},
        {"VLLM_USE_FLASHINFER_SAMPLER": "0"},
    )
    assert "VLLM_CPU_KVCACHE_SPACE" not in got
    assert got["VLLM_CACHE_ROOT"] == "/c"
    assert got["VLLM_USE_FLASHINFER_SAMPLER"] == "0"
    assert got["HF_HUB_OFFLINE"] == "1"
    assert got["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"


def test_recorded_variables_are_those_that_can_matter():
    seen = {"PATH": "/bin", "VLLM_DIST_IDENT": "random", "OMP_WAIT_POLICY": "PASSIVE", "A": "1"}
    assert recorded_environment(seen, {"A": "1", "B": "2"}) == {"A": "1", "OMP_WAIT_POLICY": "PASSIVE"}


def test_exit_in_words():
    assert describe_exit(None) == "still running"
    assert describe_exit(9) == "exit code 9"
    assert describe_exit(-9) == "killed by SIGKILL, perhaps out of memory"
    assert describe_exit(-15) == "killed by SIGTERM"
    assert describe_exit(-200) == "killed by signal 200"


def test_cause_is_the_last_raised_error_of_a_log(tmp_path):
    log = tmp_path / "engine.log"
    assert log_cause(log) == "nothing logged"
    log.write_text(
        "Traceback (most recent call last):\n  File x\nKeyError: 'a'\n"
        "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB\nINFO shutting down\n\n"
    )
    assert log_cause(log) == "torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB"
    assert last_cause("(EngineCore pid=7) INFO only this\n") == "INFO only this"
    assert len(last_cause("x" * 1000)) == 300
