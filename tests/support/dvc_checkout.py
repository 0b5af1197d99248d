"""A checkout of its own with one small experiment: real graph, real commands, real DVC, bundles from a seed.

The experiment is the registered rehearsal under a smaller name, so that inputs and prompts are the real ones;
its bundles are written by the real writer, with rows from a seed.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from support import bundles as make
from support.checkout import begin_records, carry

from fitladder.canonical import read_json
from fitladder.dvc_api.command import Dvc
from fitladder.records.experiment import ARM_OF_PHASE, Experiment
from fitladder.records.preflight import PromptRecord
from fitladder.records.record_ids import seeds_sha256
from fitladder.registry.binding import bind
from fitladder.registry.inputs import load_input
from fitladder.registry.load import load_registry
from fitladder.sampling.seeds import stage1_seed
from fitladder.store.held_root import hold_root

ID = "smollm2_135m_cpu_rehearsal"
CARRIED = (
    ".gitignore",
    "dvc.yaml",
    "params.yaml",
    ".dvcignore",
    ".dvc/config",
    ".dvc/.gitignore",
    ".dvc/plots/rates.json",
    "data/.gitignore",
    "src",
    f"data/inputs/{ID}",
    "data/history",
    "data/narratives",
)
PROBE_REJECTED = ((384, "probe"),)
WHOLE_LADDER = ((384, "probe"), (576, "probe"))


def make_checkout(folder: Path) -> Path:
    """A Git repository with everything that the graph reads, and nothing that it makes."""
    carry(folder, *CARRIED)
    for experiment_id in load_registry(folder / "params.yaml").experiments:
        begin_records(folder / "data", experiment_id)
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "start")
    return folder


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "core.autocrlf=false")
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def commit(folder: Path, message: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)


def environment(folder: Path) -> dict[str, str]:
    """This process's, with the checkout's own code in front."""
    return {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}


def dvc(folder: Path) -> Dvc:
    return Dvc(folder, environment(folder), wait_s=60)


def point_remote(folder: Path, **settings: str) -> Path:
    """What `dvc remote modify --local here NAME VALUE` writes, in a clone that has no local settings yet."""
    lines = [f"    {name} = {value}\n" for name, value in settings.items()]
    (folder / ".dvc/config.local").write_text("".join(["['remote \"here\"']\n", *lines]))
    return folder


def fitladder(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The real command in the checkout."""
    return _run(folder, str(Path(sys.executable).parent / "fitladder"), *words)


def python(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Code in a process of its own, with the checkout's package."""
    return _run(folder, sys.executable, "-c", code)


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def registered(folder: Path, experiment_id: str = ID) -> Experiment:
    return load_registry(folder / "params.yaml").experiment(experiment_id)


def add_experiment(folder: Path, experiment_id: str) -> None:
    """Register a copy of the rehearsal under another id, with a root variable of its own."""
    params, graph = folder / "params.yaml", folder / "dvc.yaml"
    document = yaml.safe_load(params.read_text())
    section = yaml.safe_load(yaml.safe_dump(document["experiments"][ID]))
    section["artifacts"]["environment_override"] = f"ROOT_OF_{experiment_id.upper()}"
    text = yaml.safe_dump({experiment_id: section}, sort_keys=False, indent=2)
    params.write_text(
        params.read_text().rstrip() + "\n\n" + "".join(f"  {line}\n" for line in text.splitlines())
    )
    graph.write_text(graph.read_text().replace(f"      - {ID}\n", f"      - {ID}\n      - {experiment_id}\n"))
    shutil.copytree(folder / f"data/inputs/{ID}", folder / f"data/inputs/{experiment_id}")
    shutil.copyfile(folder / f"data/narratives/{ID}.yaml", folder / f"data/narratives/{experiment_id}.yaml")
    begin_records(folder / "data", experiment_id)


def make_root(
    folder: Path,
    root: Path,
    done: Sequence[tuple[int, Any]] = PROBE_REJECTED,
    experiment_id: str = ID,
    *,
    seed: int = 0,
) -> Path:
    """Write (or continue) an external root with these phases complete."""
    of = registered(folder, experiment_id)
    binding = bind(of)
    with hold_root(root, experiment_id, "test") as held:
        for budget, phase in done:
            key = make.key(budget, phase, experiment_id)
            given = prompts(folder, of, phase)
            begun = make.begin(
                held, of, key, binding=binding, prompts=given, seeds_sha256=_seeds(of, of.k(phase), given)
            )
            make.complete(held, begun, seed=seed + budget)
    return root


def _seeds(of: Experiment, k: int, given: Sequence[PromptRecord]) -> str:
    run_seed = of.sampling.run_seed
    return seeds_sha256(
        (one.record_id, index, stage1_seed(run_seed, one.record_id) + index)
        for one in given
        for index in range(k)
    )


def prompts(folder: Path, of: Experiment, phase: Any) -> tuple[PromptRecord, ...]:
    load_input(folder / "data", of, "prompt_manifest")
    manifest = read_json(folder / "data" / "inputs" / of.experiment_id / "prompt_manifest.json")
    return tuple(
        PromptRecord(
            record_id=row["id"],
            rendered_sha256=row["rendered_prompt_sha256"],
            prompt_tokens=row["prompt_tokens"],
        )
        for row in manifest["arms"][ARM_OF_PHASE[phase]]
    )
