"""Checkouts for tests: parts carried from the repository, and a small one with the scripted engine.

The small one has its own registry, inputs and tokenizer, all registered by their real hashes, so that every
refusal of the product works there too; flows and tasks are links.
"""

import json
import os
import shlex
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tokenizers
import yaml
from support.section import small_section
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from fitladder.canonical import canonical_bytes, sha256_bytes, sha256_file
from fitladder.files.atomic import write_output
from fitladder.files.tree_digest import tree_sha256
from fitladder.prompts.manifest import TokenizerIdentity, freeze_prompts, render_manifest, render_prompts
from fitladder.prompts.messages import Message, Record
from fitladder.registry.data_paths import record_paths
from fitladder.workspace import Workspace

ROOT = Path(__file__).parents[2]
EXPERIMENT = "scripted_experiment"
ROOT_VARIABLE = "SCRIPTED_EXPERIMENT_ROOT"
OPEN_TEXT, CLOSE_TEXT = "<think>\n", "</think>\n\n"
ADEQUATE = ("close:20", "close:30", "close:12", "close:25")
REJECTED = ("drift",)


def _tokenizer(path: Path) -> tokenizers.Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = tokenizers.Tokenizer(models.BPE({char: at for at, char in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|im_start|>"), AddedToken("<|im_end|>")])
    tokenizer.save(str(path))
    return tokenizer


def _section(close_ids: list[int], marker_ids: list[int]) -> dict[str, Any]:
    return small_section(
        model={"name": "test/Scripted-Model"},
        engine={
            "num_gpu_blocks_override": 13,
            "args": {"enable_chunked_prefill": False},
            "environment": {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"},
        },
        thinking={
            "open_text": OPEN_TEXT,
            "close_text": CLOSE_TEXT,
            "close_marker_token_ids": marker_ids,
            "close_token_ids": close_ids,
            "model_eos_token_ids": [257],
        },
        loop_rule={"min_match_rate": 0.99},  # numbers, as somebody writes them into params.yaml
        thresholds={
            "unresolved_rate_below": 0.05,
            "answer_limit_rate_below": 0.05,
            "loop_rate_at_most": 0.25,
        },
        semantics={"min_parse_rate": 0.5},
        artifacts={"environment_override": ROOT_VARIABLE},
    )


def carry(folder: Path, *names: str) -> None:
    """Copy files and folders of the repository, where it has them, to their places below `folder`."""
    for name in names:
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copyfile(source, target)


def begin_records(data: Path, experiment_id: str) -> None:
    """Empty approvals and log of an experiment, as a registration leaves them."""
    for path in record_paths(data, experiment_id):
        write_output(path, b"")


@dataclass
class ScriptedCheckout:
    """A checkout below `folder`; `script` says what its engine does.

    `copies` are experiments equal to the scripted one, `copy_00` and on, each with a root of its own.
    """

    folder: Path
    document: dict[str, Any] = field(default_factory=dict)
    copies: tuple[str, ...] = ()

    @property
    def root(self) -> Path:
        return self.folder / "artifacts" / EXPERIMENT

    @property
    def generations(self) -> Path:
        """One line for every engine process that was told to generate."""
        return self.folder / "generations.log"

    @property
    def environment(self) -> dict[str, str]:
        """What a worker's or a command's environment has to hold for this checkout."""
        command = [
            sys.executable,
            str(ROOT / "tests" / "scripted" / "counting_engine.py"),
            str(self.generations),
            str(self.folder / "script.json"),
        ]
        return {
            ROOT_VARIABLE: str(self.root),
            **{_root_variable(name): str(self.folder / "artifacts" / name) for name in self.copies},
            **({"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}),
            "FITLADDER_ENGINE_COMMAND": shlex.join(command),
            "FITLADDER_CHECKOUT": str(self.folder),
        }

    @property
    def section(self) -> dict[str, Any]:
        return self.document["experiments"][EXPERIMENT]

    def workspace(self) -> Workspace:
        return Workspace(self.folder, self.environment)

    def script(self, **fields: Any) -> None:
        """Exchange what the next engine does; see tests/scripted/engine.py."""
        (self.folder / "script.json").write_text(json.dumps(fields))

    def register(self) -> None:
        """Write params.yaml from `document`."""
        (self.folder / "params.yaml").write_text(yaml.safe_dump(self.document, sort_keys=False))

    def generated(self) -> list[str]:
        """`phase@budget` of every generation of the scripted experiment that was begun, in order."""
        return [line.partition("/")[2] for line in self.lines() if line.startswith(f"{EXPERIMENT}/")]

    def replace_by_copies(self, count: int) -> None:
        """Register so many copies of the scripted experiment, on its inputs, in its place."""
        section = self.document["experiments"].pop(EXPERIMENT)
        inputs = self.folder / "data" / "inputs"
        self.copies = tuple(f"copy_{number:02d}" for number in range(count))
        for name in self.copies:
            copy = json.loads(json.dumps(section))
            copy["artifacts"]["environment_override"] = _root_variable(name)
            self.document["experiments"][name] = copy
            (inputs / name).symlink_to(inputs / EXPERIMENT)
        self.register()

    def lines(self) -> list[str]:
        """`experiment/phase@budget` of every generation that was begun, in order."""
        return self.generations.read_text().split() if self.generations.exists() else []


def _root_variable(copy: str) -> str:
    return f"{ROOT_VARIABLE}_{copy.upper()}"


def make_scripted_checkout(folder: Path, **changes: Any) -> ScriptedCheckout:
    """A checkout; `changes` replace fields of the section, with `_` first those at the top of the file."""
    model = folder / "models" / "scripted-model"
    model.mkdir(parents=True)
    tokenizer = _tokenizer(model / "tokenizer.json")
    close_ids = list(tokenizer.encode(CLOSE_TEXT, add_special_tokens=False).ids)
    section = _section(close_ids, close_ids[: len(CLOSE_TEXT.rstrip("\n"))])
    inputs = folder / "data" / "inputs" / EXPERIMENT
    inputs.mkdir(parents=True)
    arms = {}
    for arm in ("base", "designed_ceiling"):
        records = [
            Record(
                id=f"t-{n}::{arm}", messages=(Message(role="user", content=f"{arm} {n}"),), meta={"arm": arm}
            )
            for n in range(2)
        ]
        data = canonical_bytes([record.model_dump(mode="json") for record in records])
        (inputs / f"records_{arm}.json").write_bytes(data)
        section["data"][f"records_{arm}"] = sha256_bytes(data)
        arms[arm] = render_prompts(
            records, OPEN_TEXT, lambda text: tokenizer.encode(text, add_special_tokens=False).ids
        )
    identity = TokenizerIdentity(
        tokenizer_sha256=sha256_file(model / "tokenizer.json"), tokenizers_version=tokenizers.__version__
    )
    manifest = render_manifest(freeze_prompts(arms, OPEN_TEXT, identity, frozenset({256, 257})))
    for name, data in (("prompt_manifest", manifest), ("tasks", b"{}")):
        (inputs / f"{name}.json").write_bytes(data)
        section["data"][name] = sha256_bytes(data)
    section["model"] |= {"folder_sha256": tree_sha256(model), "tokenizer_sha256": identity.tokenizer_sha256}
    top = {name[1:]: changes.pop(name) for name in list(changes) if name.startswith("_")}
    made = ScriptedCheckout(
        folder,
        {"reviewers": [], "gpu_owners": {}, "experiments": {EXPERIMENT: section | changes}} | top,
    )
    made.register()
    made.script(outcomes=ADEQUATE)
    for name in ("flows", "tasks"):
        (folder / name).symlink_to(ROOT / name)
    carry(folder, "prefect.yaml")
    return made
