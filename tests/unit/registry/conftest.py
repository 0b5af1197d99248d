"""The repository's own registry, and a way to change one value of one section."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

PARAMS = Path(__file__).parents[3] / "params.yaml"
EXACT = "qwen35_4b_verified_macro_exact_cudagraph_rerun"


@pytest.fixture(scope="session")
def params_text() -> str:
    return PARAMS.read_text()


@pytest.fixture
def edited(params_text: str) -> Callable[..., str]:
    """edited("rungs.0.max_num_seqs", 20) -> params.yaml text with that value changed, or `text` with it."""

    def edit(path: str, value: Any, experiment: str = EXACT, text: str | None = None) -> str:
        document = yaml.safe_load(params_text if text is None else text)
        node = document["experiments"][experiment]
        *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        for part in parents:
            node = node[part]
        node[last] = value
        return yaml.safe_dump(document, sort_keys=False)

    return edit
