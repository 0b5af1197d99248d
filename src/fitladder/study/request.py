"""Request of a cell's engine process: the file that the parent writes and the child reads.

All engine arguments are explicit and, but for the cell's factors, the same for all cells.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from fitladder.canonical import parse_model, read_json
from fitladder.engine.request import ProcessRequest
from fitladder.errors import EngineFailed
from fitladder.sampling.engine_protocol import SampleRequest
from fitladder.sampling.parameters import explicit_parameters
from fitladder.study.plan import Cell, Study, StudySampling, Workload

__all__ = ["CellRequest", "build_cell_request", "cell_engine_arguments", "load_cell_request"]


class CellRequest(ProcessRequest):
    """Request to build one engine, warm it up, and run the workload whenever it is told."""

    schema_version: Literal[1] = 1
    cell: Cell
    workload: Workload
    sampling: StudySampling
    engine_args: dict[str, Any]
    engine_lock_path: str | None = None
    progress_interval_s: Annotated[float, Field(gt=0)]

    def parameters(self) -> dict[str, Any]:
        """Keyword arguments of `SamplingParams` for every request; only max_tokens ends a sample."""
        drawn = self.sampling
        return explicit_parameters(
            temperature=drawn.temperature, top_p=drawn.top_p, top_k=drawn.top_k, stop_token_ids=()
        )

    def requests(self, max_tokens: int) -> list[SampleRequest]:
        """The workload's requests for this cell, with so many tokens each."""
        return self.workload.requests(self.cell.samples, self.sampling.run_seed, max_tokens)


def cell_engine_arguments(study: Study, cell: Cell, model: str) -> dict[str, Any]:
    """Keyword arguments of `vllm.LLM` for a cell; `model` is a folder or a hub name."""
    arguments: dict[str, Any] = {
        **study.engine_args,
        "async_scheduling": False,
        "disable_log_stats": False,
        "enable_prefix_caching": False,
        "enforce_eager": cell.capture == "none",
        "generation_config": "vllm",
        "load_format": study.model.load_format,
        "max_num_seqs": cell.width,
        "model": model,
        "num_gpu_blocks_override": cell.pool_blocks,
        "seed": 0,
        "skip_tokenizer_init": True,
    }
    if cell.capture != "none":
        arguments["max_cudagraph_capture_size"] = cell.width
    if cell.capture_sizes is not None:
        arguments["cudagraph_capture_sizes"] = list(cell.capture_sizes)
    return arguments


def build_cell_request(
    study: Study,
    cell: Cell,
    model: str,
    *,
    engine_lock_path: Path | None = None,
    progress_interval_s: float = 1.0,
) -> CellRequest:
    """Request of a cell's engine process.

    Args:
        model: folder or hub name, as the engine is given it.
        engine_lock_path: lock file of the engine environment; None where there is none.
        progress_interval_s: seconds between two `progress` events.
    """
    return CellRequest(
        environment=study.environment,
        cell=cell,
        workload=study.workload,
        sampling=study.sampling,
        engine_args=cell_engine_arguments(study, cell, model),
        engine_lock_path=None if engine_lock_path is None else str(engine_lock_path),
        progress_interval_s=progress_interval_s,
    )


def load_cell_request(path: Path) -> CellRequest:
    """Read the request file of a cell. Raises EngineFailed naming the field at fault."""
    return parse_model(CellRequest, read_json(path, error=EngineFailed), where=str(path), error=EngineFailed)
