"""An audit or a selection cannot look: not by Python, by C, by another program, by a link or a process."""

import re
import shutil
from pathlib import Path

import pytest
from support import dvc_checkout as make

from fitladder.dvc_api.ingest import ingest
from fitladder.errors import BindingChanged, ContentSealed
from fitladder.registry.load import load_registry
from fitladder.sandbox.landlock import landlock_abi

ID = make.ID
NEEDS_KERNEL = pytest.mark.skipif(landlock_abi() == 0, reason="this kernel has no Landlock")

DOORS = {
    "C's open": "import ctypes; assert ctypes.CDLL(None).open({path!r}.encode(), 0) >= 0",
    "pyarrow given a path": "import pyarrow; pyarrow.OSFile({path!r})",
    "a mapped file": "import pyarrow; pyarrow.memory_map({path!r})",
    "another program": "import subprocess; assert subprocess.run(['cat', {path!r}]).returncode == 0",
    "fork_exec itself": "import os; assert os.spawnv(os.P_WAIT, '/bin/cat', ['cat', {path!r}]) == 0",
    "open": "open({path!r}).read()",
    "by /proc": "open('/proc/self/root' + {path!r}).read()",
    "a child": "import os\nif os.fork() == 0:\n    open({path!r})\n    os._exit(0)\nassert os.wait()[1] == 0",
    "a thread": "from concurrent.futures import ThreadPoolExecutor as P; P().submit(open, {path!r}).result()",
    "the folder": "import os; os.listdir(os.path.dirname({path!r}))",
    "a link made inside": "import os; os.symlink({path!r}, {own!r} + '/l'); open({own!r} + '/l')",
    "a hard link made inside": "import os; os.link({path!r}, {own!r} + '/h'); open({own!r} + '/h')",
    "moving it inside": "import os; os.rename({path!r}, {own!r} + '/m'); open({own!r} + '/m')",
}
SEALED = """
from pathlib import Path
from fitladder.sandbox.content_blind import seal_process
print(seal_process(Path({data!r}), {id!r}, writes="audit"), flush=True)
assert Path({allowed!r}).read_bytes()
Path({own!r}, "new").write_bytes(b"written")
print("open for business", flush=True)
{door}
print("looked")
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with two rejected probes in data/bundles, brought in without DVC."""
    base = tmp_path_factory.mktemp("blind")
    checkout = make.make_checkout(base / "checkout")
    root = make.make_root(checkout, base / "root", make.WHOLE_LADDER)
    ingest(load_registry(checkout / "params.yaml"), ID, root, checkout / "data", {})
    for stage in ("prompts", "audit", "selection"):
        done = make.fitladder(checkout, "stage", stage, ID)
        assert done.returncode == 0, done.stderr
    return checkout


def _victims(workspace: Path) -> dict[str, Path]:
    other = workspace / "data/bundles/another_experiment/receipt.json"
    text = workspace / f"data/bundles/{ID}.txt"
    tokenizer = workspace / "models/smollm2/tokenizer.json"
    for path in (other, text, tokenizer):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a word")
    return {
        "hidden examples": workspace / f"data/inputs/{ID}/hidden.json",
        "visible examples": workspace / f"data/inputs/{ID}/tasks.json",
        "prompts": workspace / f"data/prompts/{ID}/base.json",
        "another experiment": other,
        "decoded text": text,
        "tokenizer": tokenizer,
    }


def _try(workspace: Path, path: Path, door: str) -> tuple[int, str, str]:
    own = workspace / f"data/audits/{ID}"
    code = SEALED.format(
        data=str(workspace / "data"),
        id=ID,
        own=str(own),
        allowed=str(workspace / f"data/bundles/{ID}/think_384/probe/samples.parquet"),
        door=door.format(path=str(path), own=str(own)),
    )
    done = make.python(workspace, code)
    for name in ("new", "l", "h", "m"):
        (own / name).unlink(missing_ok=True)
    return done.returncode, done.stdout, done.stderr


@NEEDS_KERNEL
@pytest.mark.parametrize("door", DOORS)
def test_no_door_of_the_kernel_opens_to_hidden_examples(workspace: Path, door: str) -> None:
    path = _victims(workspace)["hidden examples"]
    before = path.read_bytes()
    code, said, failed = _try(workspace, path, DOORS[door])
    assert "open for business" in said, failed
    assert "looked" not in said
    assert code != 0
    assert path.read_bytes() == before


@NEEDS_KERNEL
def test_nothing_but_tokens_receipts_and_code_is_readable(workspace: Path) -> None:
    for what, path in _victims(workspace).items():
        _, said, failed = _try(workspace, path, DOORS["C's open"])
        assert "open for business" in said, failed
        assert "looked" not in said, what


def test_every_door_is_one_where_nothing_is_sealed(workspace: Path) -> None:
    """So that the refusals above are the seal's."""
    path, own = _victims(workspace)["tokenizer"], workspace / f"data/audits/{ID}"
    for name, door in DOORS.items():
        code = door.format(path=str(path), own=str(own)) + "\nprint('looked')\n"
        done = make.python(workspace, code)
        assert "looked" in done.stdout, f"{name}: {done.stderr}"
        for rest in ("l", "h", "m"):
            (own / rest).unlink(missing_ok=True)


LOOK = """
import ctypes as _ctypes
_libc = _ctypes.CDLL(None)
def _look(path):
    return _libc.open(path.encode(), 0)
"""


@NEEDS_KERNEL
@pytest.mark.parametrize(
    "words", [("stage", "audit", ID), ("stage", "selection", ID), ("select", ID), ("audit", ID)]
)
def test_code_that_looks_inside_a_real_command_sees_nothing(
    workspace: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """The audit's own code turned hostile: it opens hidden examples by C, where no Python hook can see it."""
    checkout = Path(shutil.copytree(workspace, tmp_path / "checkout"))
    hidden = checkout / f"data/inputs/{ID}/hidden.json"
    module = checkout / "src/fitladder/evidence/checkout_bundles.py"
    spy = (
        f"{LOOK}\n_found = _look({str(hidden)!r}), _look({str(checkout / 'src/fitladder/errors.py')!r})\n"
        "import sys\nprint('spy', *[fd >= 0 for fd in _found], file=sys.stderr)\n"
    )
    module.write_text(module.read_text() + spy)
    done = make.fitladder(checkout, *words)
    assert "spy False True" in done.stderr, done.stderr
    if "selection" in words or "select" in words:  # deciding needs the bound code; the edit alone refuses it
        assert done.returncode == BindingChanged.exit_code
    else:
        assert re.search(r"content-blind by the kernel \(Landlock ABI \d+\)", done.stdout)


def test_the_seal_is_said_and_changes_no_byte(workspace: Path) -> None:
    """What is recorded is the same on a kernel without the seal; the seal is printed, never recorded."""
    made = {path: path.read_bytes() for path in (workspace / "data").rglob("*") if path.is_file()}
    code = (
        "import fitladder.sandbox.content_blind as blind, sys\n"
        "blind.landlock_abi = lambda: 0\n"
        "from fitladder.cli.main import main\n"
        "sys.argv = ['fitladder', 'stage', {stage!r}, {id!r}]\n"
        "main()\n"
    )
    for stage in ("audit", "selection"):
        done = make.python(workspace, code.format(stage=stage, id=ID))
        assert done.returncode == 0, done.stderr
        assert "alone: this kernel has no Landlock" in done.stdout
    assert {path: path.read_bytes() for path in (workspace / "data").rglob("*") if path.is_file()} == made


@NEEDS_KERNEL
def test_a_seal_that_comes_too_late_is_refused(workspace: Path) -> None:
    code = (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(5,), daemon=True).start()\n"
        "from pathlib import Path\nfrom fitladder.sandbox.content_blind import seal_process\n"
        f"seal_process(Path({str(workspace / 'data')!r}), {ID!r})\n"
    )
    done = make.python(workspace, code)
    assert "a seal comes too late: got 2 threads, need one" in done.stderr


@NEEDS_KERNEL
def test_data_among_the_programs_is_refused(workspace: Path) -> None:
    code = (
        "from pathlib import Path\nimport fitladder.sandbox.content_blind as blind\n"
        f"blind.SYSTEM = ({str(workspace.parent)!r},)\n"
        f"blind.seal_process(Path({str(workspace / 'data')!r}), {ID!r})\n"
    )
    done = make.python(workspace, code)
    assert "lies among the programs of this machine" in done.stderr
    assert ContentSealed.__name__ in done.stderr
