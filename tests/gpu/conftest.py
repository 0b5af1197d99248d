"""What the GPU tests share: a deadline for all of them, and where their reports go.

FITLADDER_GPU_SECONDS (default 560): a test that needs more than is left of it skips, saying so.
FITLADDER_GPU_OUT: a folder that keeps the reports.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

BEGAN = time.monotonic()


@pytest.fixture(scope="session")
def gpu_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kept = os.environ.get("FITLADDER_GPU_OUT")
    return Path(kept) if kept else tmp_path_factory.mktemp("gpu")


@pytest.fixture(scope="session")
def need_seconds() -> Callable[[float], None]:
    def need(seconds: float) -> None:
        left = float(os.environ.get("FITLADDER_GPU_SECONDS", "560")) - (time.monotonic() - BEGAN)
        if left < seconds:
            pytest.skip(f"takes {seconds:.0f} s, {left:.0f} s are left: raise FITLADDER_GPU_SECONDS")

    return need
