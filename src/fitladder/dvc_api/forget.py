"""Puts the entries of one experiment in dvc.lock back to what Git last recorded; the others stay.

For a rehearsal that is thrown away: what was never committed may be forgotten, what was committed may not.
"""

import io
import subprocess
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from fitladder.dvc_api.call_lock import project_lock
from fitladder.dvc_files.lock_file import load_lock, parse_lock
from fitladder.errors import LineageError
from fitladder.evidence.checkout_bundles import LOCK_FILE
from fitladder.files.atomic import write_output

__all__ = ["forget", "forget_text"]

WAIT_S = 60.0


def forget(checkout: Path, experiment_id: str) -> int:
    """Put the entries of an experiment back, under the project's lock.

    Returns how many stages changed. Raises LineageError.
    """
    path = checkout / LOCK_FILE
    with project_lock(checkout, f"forget {experiment_id}", wait_s=WAIT_S):
        now = load_lock(path)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        kept = forget_text(text, _committed(checkout), experiment_id)
        then = parse_lock(kept, where="dvc.lock put back")
        if then:
            write_output(path, kept.encode())
        else:
            path.unlink(missing_ok=True)
    return sum(now.get(name) != then.get(name) for name in now.keys() | then.keys())


def forget_text(now: str, committed: str, experiment_id: str) -> str:
    """dvc.lock with the stages of one experiment as they are in `committed`, all others as they are in `now`.

    Read and written as DVC does, so that entries which stay keep their bytes. Raises LineageError on a text
    that is no dvc.lock.
    """
    for text in (now, committed):
        parse_lock(text, where="dvc.lock")
    yaml = YAML()
    yaml.default_flow_style = False
    document, before = yaml.load(now), yaml.load(committed)
    mine, theirs = ((one or {}).get("stages") or {} for one in (document, before))
    own = f"@{experiment_id}"
    source = {name: theirs if name.endswith(own) else mine for name in (*theirs, *mine)}
    stages = CommentedMap((name, kept[name]) for name, kept in source.items() if name in kept)
    document = document or before
    if document is None:
        return ""
    document["stages"] = stages or None
    stream = io.StringIO()
    yaml.dump(document, stream)
    return stream.getvalue()


def _committed(checkout: Path) -> str:
    """dvc.lock as of the last commit; empty where that has none."""
    listed = _git(checkout, "ls-tree", "--name-only", "HEAD", LOCK_FILE)
    return _git(checkout, "show", f"HEAD:./{LOCK_FILE}") if listed.strip() else ""


def _git(checkout: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", *words], cwd=checkout, capture_output=True, text=True, check=True, timeout=WAIT_S
        )
    except (OSError, subprocess.SubprocessError) as failure:
        said = getattr(failure, "stderr", None) or failure
        raise LineageError(f"git {' '.join(words)} failed", got=said, need="a Git checkout") from failure
    return done.stdout
