"""What is an engine process asked for? The one file that the parent writes and the child reads.

Plain registered values and token ids; the child needs no params.yaml, no prompts' text and no network.
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
    """One prompt by id and token ids."""

    record_id: str = Field(min_length=1)
    prompt_token_ids: tuple[TokenId, ...] = Field(min_length=1)


class ProcessRequest(Frozen):
    """What every engine process is asked in; `environment` is set by the parent when it starts the child."""

    environment: dict[str, str]


class EngineRequest(ProcessRequest):
    """Everything that one engine process does: build with `engine_args`, report, wait, sample, write.

    `engine_args` are the complete keyword arguments of vLLM's `LLM`; nothing is left to its defaults that the
    registration names.
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
    generation_code_sha256: Sha256 | None = None  # of the parent; a child of other code refuses
    progress_interval_s: Annotated[float, Field(gt=0)] = 1.0

    def engine_records(self) -> list[EngineRecord]:
        """The prompts in request order."""
        return [EngineRecord(record.record_id, record.prompt_token_ids) for record in self.records]


def load_request(path: Path) -> EngineRequest:
    """Read a request file strictly. Raises EngineFailed with the field at fault."""
    return parse_model(
        EngineRequest, read_json(path, error=EngineFailed), where=str(path), error=EngineFailed
    )


def write_request(path: Path, request: ProcessRequest) -> None:
    """Write a request file as canonical JSON; an existing one is replaced."""
    path.write_bytes(canonical_bytes(request))
