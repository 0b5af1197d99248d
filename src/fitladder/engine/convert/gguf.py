"""Conversion of a GGUF file into a model folder that vLLM loads; runs in the engine environment.

    python -m fitladder.engine.convert.gguf NAME FOLDER      (started by `fitladder model convert`)

Prints one JSON object: the folder's tree digest and its tokenizer's SHA-256, or the refusal. Weights become
float32: a CPU without bf16 units is quick at it, and it holds the de-quantised values exactly.
"""

import importlib.metadata
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig  # noqa: TID251  # engine environment

from fitladder.canonical import sha256_file
from fitladder.engine.convert.sources import ModelSource, find_source
from fitladder.errors import EnvironmentNotReady, FitladderError, InputRefused
from fitladder.files.tree_digest import tree_sha256

__all__ = ["convert"]

SPARE_BYTES = 200_000_000  # free disk space needed besides the folder's own size


def convert(name: str, folder: Path) -> Path:
    """Make the folder of a source, unless it is there already; two runs give equal bytes.

    Args:
        name: a name of sources.SOURCES.
        folder: what to make; it appears whole or not at all.

    Returns the folder. Raises UsageError on an unknown name, InputRefused where the GGUF or the folder has
    not its registered digest, EnvironmentNotReady on a missing package or too little disk space.
    """
    source = find_source(name)
    if folder.exists():
        _check(folder, source, do="remove it and run this again")
        return folder
    gguf = _gguf(source)
    folder.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder.parent).free
    if free < source.folder_bytes + SPARE_BYTES:
        raise EnvironmentNotReady(
            f"not enough disk space under {folder.parent}",
            got=f"{free / 1e9:.2f} GB free",
            need=f"{(source.folder_bytes + SPARE_BYTES) / 1e9:.2f} GB",
        )
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".partial", dir=folder.parent))
    try:
        model = AutoModelForCausalLM.from_pretrained(
            gguf.parent,
            gguf_file=gguf.name,
            quantization_config=GgufConfig(dequantize=True),
            dtype="float32",
        )
        model.save_pretrained(partial)
        AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(partial)
        for path in partial.iterdir():
            path.chmod(0o644)
        partial.chmod(0o755)
        _check(partial, source, do="install the locked engine environment (make setup)")
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def _check(folder: Path, source: ModelSource, *, do: str) -> None:
    digest = tree_sha256(folder, error=InputRefused)
    if digest != source.folder_sha256:
        raise InputRefused(
            f"{folder} is not the registered conversion", got=digest, need=source.folder_sha256, do=do
        )


def _gguf(source: ModelSource) -> Path:
    try:
        distribution = importlib.metadata.distribution(source.distribution)
    except importlib.metadata.PackageNotFoundError:
        raise EnvironmentNotReady(
            f"the package {source.distribution} is not installed", do="run make setup"
        ) from None
    if distribution.version != source.version:
        raise EnvironmentNotReady(
            source.distribution, got=distribution.version, need=source.version, do="run make setup"
        )
    path = Path(str(distribution.locate_file(source.gguf)))
    if not path.is_file():
        raise EnvironmentNotReady(f"{source.distribution} lacks {source.gguf}", do="run make setup")
    digest = sha256_file(path)
    if digest != source.gguf_sha256:
        raise InputRefused(f"{path.name} is not the registered file", got=digest, need=source.gguf_sha256)
    return path


def main(argv: Sequence[str]) -> int:
    """Run one conversion and print its outcome as JSON; `argv` is NAME FOLDER. Returns the exit code."""
    code, answer = 0, {}
    try:
        folder = convert(argv[0], Path(argv[1]))
        answer = {
            "folder": str(folder),
            "folder_sha256": tree_sha256(folder),
            "tokenizer_sha256": sha256_file(folder / "tokenizer.json"),
        }
    except FitladderError as error:
        code, answer = error.exit_code, {"refused": type(error).__name__, "message": str(error)}
    except OSError as error:
        code = EnvironmentNotReady.exit_code
        answer = {"refused": EnvironmentNotReady.__name__, "message": f"conversion failed: {error}"}
    sys.stdout.write(json.dumps(answer) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
