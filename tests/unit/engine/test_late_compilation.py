"""Compilation while sampling is heard, other lines are not, and nothing stays attached."""

import logging
import sys

from fitladder.engine.child.late_compilation import MAX_LINES, listen


def test_loggers_and_prints_are_heard_and_let_go(capsys):
    lines, logger = [], logging.getLogger("vllm.triton_utils.jit_monitor")
    logger.parent.setLevel(logging.INFO)
    with listen(lines):
        logger.warning("Triton kernel JIT compilation during inference: %s.", "_fwd_kernel")
        logging.getLogger("vllm.loggers").info("Avg generation throughput: 5 tokens/s")
        print("Triton autotuning for function _scan_kernel finished after 3.1s")
        sys.stdout.flush()
    logger.warning("JIT compilation afterwards")
    assert lines == [
        "vllm.triton_utils.jit_monitor: Triton kernel JIT compilation during inference: _fwd_kernel.",
        "Triton autotuning for function _scan_kernel finished after 3.1s",
    ]
    assert "autotuning" in capsys.readouterr().out


def test_a_flood_is_bounded():
    lines = []
    with listen(lines):
        for number in range(MAX_LINES + 50):
            logging.getLogger("vllm").warning("recompiling %d", number)
    assert len(lines) == MAX_LINES
