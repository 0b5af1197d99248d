"""Exit statuses and logs of engine processes become one line that names the cause."""

from fitladder.engine.parent.failure import describe_exit, last_cause, log_cause


def test_exit_status_in_words():
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
