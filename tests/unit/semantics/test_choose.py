"""The earliest sample with the most visible examples right is chosen, and the digest holds all choices."""

import dataclasses

from support.macro_task import NONE, RIGHT, SECRET, TASK, WRONG, half_right

from fitladder.semantics.choose import choices_sha256, choose, count_right, score_samples


def test_earliest_among_the_best_by_visible_examples():
    assert choose("r", score_samples([NONE, WRONG, RIGHT, RIGHT], TASK.visible)).sample_index == 2
    assert choose("r", score_samples([RIGHT, WRONG, RIGHT], TASK.visible)).sample_index == 0
    assert choose("r", score_samples([NONE, WRONG, WRONG], TASK.visible)).sample_index == 1
    tied = score_samples([WRONG, RIGHT], half_right())  # four right each
    assert [one.visible_right for one in tied] == [4, 4]
    assert choose("r", tied).sample_index == 0
    nothing = choose("r", score_samples([NONE, NONE], TASK.visible))
    assert (nothing.sample_index, nothing.expansion, nothing.visible_right) == (None, None, 0)


def test_digest_holds_every_choice():
    one = choose("r", score_samples([RIGHT], TASK.visible))
    digests = {choices_sha256([one]), choices_sha256([]), choices_sha256([one, one])}
    digests |= {
        choices_sha256([dataclasses.replace(one, **change)])
        for change in ({"sample_index": 1}, {"record_id": "q"}, {"expansion": ("REV",)}, {"visible_right": 0})
    }
    assert len(digests) == 7


def test_count_right():
    assert count_right(SECRET.program, TASK.visible) == 8
    assert count_right((), TASK.visible) == 0
