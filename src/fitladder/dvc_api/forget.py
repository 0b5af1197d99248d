"""How is what dvc.lock says of one experiment put back to what Git last recorded? The rest stays as it is.

For a rehearsal that is thrown away: what was never committed may be forgotten, what was committed may not.
"""

import re
import subprocess
from pathlib import Path

from fitladder.dvc_api.call_lock import project_lock
from fitladder.dvc_files.lock_file import load_lock, parse_lock
from fitladder.errors import LineageError
from fitladder.evidence.checkout_bundles import LOCK_FILE
from fitladder.files.atomic import write_output

__all__ = ["forget", "forget_text"]

_HEAD = re.compile(r"  (\S+):\s*$")
WAIT_S = 60.0


def forget(checkout: Path, experiment_id: str) -> int:
    """Put the entries of an experiment back; how many stages moved. Raises LineageError."""
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
    """dvc.lock `now` with the blocks of an experiment as they stand in `committed`. Raises LineageError."""
    (head, mine), (before, theirs) = _blocks(now), _blocks(committed)
    own = f"@{experiment_id}"
    blocks = {name: block if name.endswith(own) else mine.get(name, "") for name, block in theirs.items()}
    blocks |= {name: block for name, block in mine.items() if not name.endswith(own)}
    text = (head or before) + "".join(blocks.values())
    found, there, was = (parse_lock(one, where="dvc.lock") for one in (text, now, committed))
    need = {name: stage for name, stage in there.items() if not name.endswith(own)}
    need |= {name: stage for name, stage in was.items() if name.endswith(own)}
    if found != need:
        raise LineageError(
            "dvc.lock cannot be put back by its text",
            got=f"{len(found)} stages",
            need=f"{len(need)}",
            do="run `git checkout dvc.lock`, if nothing else in it is new",
        )
    return text


def _blocks(text: str) -> tuple[str, dict[str, str]]:
    """What stands before the stages, and each stage's lines by its name."""
    head, blocks, name = "", dict[str, str](), ""
    for line in text.splitlines(keepends=True):
        if match := _HEAD.match(line):
            name = match.group(1).strip("'\"")
            blocks[name] = ""
        if name:
            blocks[name] += line
        else:
            head += line
    return head, blocks


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
