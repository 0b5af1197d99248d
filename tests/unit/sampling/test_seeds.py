"""Seeds: the registered formula, and the seeds that are refused."""

from hashlib import blake2b

import pytest

from fitladder.errors import RegistrationError
from fitladder.sampling.engine_protocol import SampleRequest
from fitladder.sampling.seeds import check_seeds, derive_seed, stage1_seed, stage2_seed


def request(name="r", seed=5, prompt=(1, 2), n=1):
    return SampleRequest(request_id=name, prompt_token_ids=prompt, n=n, seed=seed, max_tokens=4)


def test_formula_of_the_registration():
    digest = blake2b(b"2701\0task_1\0-1\x001", digest_size=8).digest()
    assert stage1_seed(2701, "task_1") == int.from_bytes(digest, "big") % 2**31
    assert stage2_seed(2701, "task_1", 3) == derive_seed(2701, "task_1", 3, 2)
    assert stage1_seed(2701, "task_1") == 277_632_590  # frozen: another formula is another run


def test_seeds_differ_by_run_record_sample_and_stage():
    seeds = {
        derive_seed(run, record, index, stage)
        for run in (2701, 2702)
        for record in ("a", "b")
        for index in (-1, 0, 1)
        for stage in (1, 2)
    }
    assert len(seeds) == 24


@pytest.mark.parametrize("seed", [None, "5", 5.0, True, -1, 2**31])
def test_null_or_odd_seeds_are_refused_before_start(seed):
    with pytest.raises(RegistrationError, match="'mixed' has no usable seed"):
        check_seeds([request("fine"), request("mixed", seed=seed)])


def test_one_seed_for_all_samples_of_a_prompt_is_refused():
    with pytest.raises(RegistrationError, match="share seed 5"):
        check_seeds([request(f"s{index}") for index in range(12)])
    with pytest.raises(RegistrationError, match="share seed 6"):
        check_seeds([request("a", n=4), request("b", seed=6)])
    check_seeds([request("a", n=12), request("b", prompt=(1, 3))])
