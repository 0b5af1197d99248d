"""dvc.lock as it is, and every way in which it may not be."""

import pytest

from fitladder.dvc_files.lock_file import LockedPath, parse_lock
from fitladder.errors import LineageError

GOOD = """schema: '2.0'
stages:
  bundles@x:
    cmd: fitladder stage bundles x
    deps:
    - path: data/prompts/x
      hash: md5
      md5: aa.dir
      size: 10
      nfiles: 3
    params:
      params.yaml:
        experiments.x:
          k: 2
    outs:
    - path: data/bundles/x
      hash: md5
      md5: bb.dir
      size: 20
      nfiles: 5
"""


def test_a_stage_as_recorded() -> None:
    stage = parse_lock(GOOD, where="dvc.lock")["bundles@x"]
    assert stage.deps == {"data/prompts/x": LockedPath("data/prompts/x", "aa.dir", 10, 3)}
    assert stage.outs["data/bundles/x"].is_folder
    assert stage.params == {"experiments.x": {"k": 2}}
    assert parse_lock("", where="dvc.lock") == {}


@pytest.mark.parametrize(
    ("marker", "line"),
    [("<<<<<<< HEAD\n", 3), ("=======\n", 4), (">>>>>>> other\n", 13), ("||||||| base\n", 1)],
)
def test_conflict_markers_are_refused_with_their_line(marker: str, line: int) -> None:
    lines = GOOD.splitlines(keepends=True)
    text = "".join([*lines[: line - 1], marker, *lines[line - 1 :]])
    with pytest.raises(LineageError, match=f"dvc.lock line {line}: merge conflict marker"):
        parse_lock(text, where="dvc.lock")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("      md5: bb.dir\n", "", "outs: got .*data/bundles/x.*need a path with its md5"),
        (
            "      md5: bb.dir\n",
            "      md5: bb.dir\n      md5: cc.dir\n",
            "line 19 is no YAML: got the key 'md5' stands twice",
        ),
        (
            "    - path: data/bundles/x\n",
            "    - path: data/bundles/x\n      md5: q\n    - path: data/bundles/x\n",
            "twice",
        ),
        ("schema: '2.0'", "schema: '1.0'", "need 2.0"),
        ("    outs:\n", "    outs:\n   broken", "is no YAML"),
        ("  bundles@x:\n", "  bundles@x: 3\n  other:\n", "bundles@x: got int, need a mapping"),
    ],
)
def test_a_merge_that_dropped_or_doubled_a_hash_is_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(LineageError, match=said):
        parse_lock(GOOD.replace(old, new), where="dvc.lock")
