"""Seed of each sample: a function of the run, the record, the sample and the stage, and nothing else.

Stable under reordering, batching and interpreter; it does not know what is sampled with it. No claim of
bitwise repeatability follows: a sample's numerics also depend on the width it was batched at.
"""

import hashlib
from collections.abc import Sequence

from fitladder.errors import RegistrationError
from fitladder.sampling.engine_protocol import SampleRequest

__all__ = ["check_seeds", "derive_seed", "stage1_seed", "stage2_seed"]

SEED_MODULUS = 2**31
REQUEST_SAMPLE_INDEX = -1  # stage 1 seeds a request; vLLM gives sample i of it the seed + i


def derive_seed(run_seed: int, record_id: str, sample_index: int, stage: int) -> int:
    """blake2b-64 of `run_seed NUL record_id NUL sample_index NUL stage`, big-endian, modulo 2**31."""
    text = f"{run_seed}\0{record_id}\0{sample_index}\0{stage}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") % SEED_MODULUS


def stage1_seed(run_seed: int, record_id: str) -> int:
    """Seed of a record's stage-1 request; its sample i is drawn with this seed + i."""
    return derive_seed(run_seed, record_id, REQUEST_SAMPLE_INDEX, 1)


def stage2_seed(run_seed: int, record_id: str, sample_index: int) -> int:
    """Seed of one sample's stage-2 request."""
    return derive_seed(run_seed, record_id, sample_index, 2)


def check_seeds(requests: Sequence[SampleRequest]) -> None:
    """Every request has an integer seed and no two samples of a batch share a prompt and a seed.

    Raises RegistrationError naming the request; a null seed would let vLLM draw one of its own and, among
    seeded neighbours, disturb theirs.
    """
    seen: dict[tuple[tuple[int, ...], int], str] = {}
    for request in requests:
        if type(request.seed) is not int or not 0 <= request.seed < SEED_MODULUS:
            raise RegistrationError(
                f"request {request.request_id!a} has no usable seed",
                got=repr(request.seed),
                need="an integer in 0..2**31-1 for every request",
            )
        for index in range(request.n):
            key = (request.prompt_token_ids, request.seed + index)
            if key in seen:
                raise RegistrationError(
                    f"two samples of one prompt share seed {key[1]}",
                    got=f"{seen[key]!a} and {request.request_id!a}",
                    need="a seed of its own for each sample",
                )
            seen[key] = request.request_id
