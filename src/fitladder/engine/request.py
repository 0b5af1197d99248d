"""Request of an engine process: the one file that the parent writes and the child reads.

Registered values and token ids; the child needs no params.yaml, no prompts' text and no network.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from fitladder.canonical import canonical_bytes, parse_model, read_json
from fitladder.errors import EngineFailed
from fitladder.frozen import Count, Frozen, Sha256, TokenId
from fitladder.records.bundle_key import BundleKey
from fitladder.records.settings import Sampling, Thinking
from fitladder.sampling.two_stage import EngineRecord

__all__ = ["EngineRequest", "ProcessRequest", "RequestRecord", "load_request", "write_request"]


class RequestRecord(Frozen):
    """One prompt: its record id and its token ids."""

    record_id: str = Field(min_length=1)
    prompt_token_ids: tuple[TokenId, ...] = Field(min_length=1)


class ProcessRequest(Frozen):
    """Common part of all requests. `environment`: registered variables that the parent sets for the child."""

    environment: dict[str, str]


class EngineRequest(ProcessRequest):
    """Request of one phase: build an engine, sample `k` samples of each record in two stages, write them.

    `engine_args` are all keyword arguments of vLLM's `LLM`; nothing that the registration names is left to
    its defaults. `samples_path` is where the Parquet file goes. `generation_code_sha256` is that of the
    parent: a child that imports other code refuses. `engine_lock_path` is recorded by digest and compared
    with what is installed.
    """

    schema_version: Literal[1] = 1
    key: BundleKey
    backend: Literal["vllm-cuda", "vllm-cpu"]
    engine_args: dict[str, Any]
    records: tuple[RequestRecord, ...] = Field(min_length=1)
    k: Count
    thinking_budget_tokens: Count
    thinking: Thinking
    sampling: Sampling
    admission: Literal["worst_case", "spaced"]
    samples_path: str = Field(min_length=1)
    engine_lock_path: str | None = None
    generation_code_sha256: Sha256 | None = None
    progress_interval_s: Annotated[float, Field(gt=0)] = 1.0

    def engine_records(self) -> list[EngineRecord]:
        """The prompts in request order, as two-stage sampling takes them."""
        return [EngineRecord(record.record_id, record.prompt_token_ids) for record in self.records]


def load_request(path: Path) -> EngineRequest:
    """Read the request file of a phase. Raises EngineFailed naming the field at fault."""
    return parse_model(
        EngineRequest, read_json(path, error=EngineFailed), where=str(path), error=EngineFailed
    )


def write_request(path: Path, request: ProcessRequest) -> None:
    """Write a request file as canonical JSON; an existing file is replaced."""
    path.write_bytes(canonical_bytes(request))
