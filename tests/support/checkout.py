"""A small checkout for tests: own registry, inputs and tokenizer, flows by link, the scripted engine.

Everything is registered by its real hash, so that every refusal of the product works here too.
"""

import json
import os
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tokenizers
import yaml
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from fitladder.canonical import canonical_bytes, sha256_bytes, sha256_file
from fitladder.files.tree_digest import tree_sha256
from fitladder.prompts.manifest import TokenizerIdentity, freeze_prompts, render_manifest, render_prompts
from fitladder.prompts.messages import Message, Record
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
    return {
        "state": "open",
        "predecessor": None,
        "review": "independent",
        "model": {
            "name": "test/Scripted-Model",
            "revision": None,
            "folder_sha256": None,
            "tokenizer_sha256": None,
            "dtype": "float32",
        },
        "engine": {
            "backend": "vllm-cpu",
            "vllm_version": "1",
            "max_model_len_tokens": 512,
            "max_num_batched_tokens": 1024,
            "tensor_parallel_size": 1,
            "engine_seed": 0,
            "enforce_eager": True,
            "enable_prefix_caching": False,
            "async_scheduling": False,
            "gpu_memory_utilization": None,
            "kv_cache_memory_bytes": None,
            "num_gpu_blocks_override": 13,
            "capture": "none",
            "admission": "worst_case",
            "args": {"enable_chunked_prefill": False},
            "environment": {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"},
        },
        "thinking": {
            "open_text": OPEN_TEXT,
            "close_text": CLOSE_TEXT,
            "close_marker_token_ids": marker_ids,
            "close_token_ids": close_ids,
            "model_eos_token_ids": [257],
            "eos_inside_thinking": "forced_close",
        },
        "sampling": {
            "temperature": 0.6,
            "top_p": 0.95,
            "top_k": 20,
            "answer_max_tokens": 24,
            "run_seed": 2701,
        },
        "records_per_arm": 2,
        "longest_prompt_tokens": 120,
        "probe_k": 2,
        "matrix_k": 3,
        "rungs": [
            {"thinking_budget_tokens": 64, "max_num_seqs": 4, "capture_sizes": None, "deadline_s": 120},
            {"thinking_budget_tokens": 96, "max_num_seqs": 4, "capture_sizes": None, "deadline_s": 120},
        ],
        "kv_rule": "both",
        "loop_rule": {
            "tail_tokens": 32,
            "max_period_tokens": 16,
            "min_match_rate": 0.99,
            "min_budget_tokens": 32,
        },
        "thresholds": {
            "unresolved_rate_below": 0.05,
            "answer_limit_rate_below": 0.05,
            "loop_rate_at_most": 0.25,
        },
        "semantics": {
            "min_parse_rate": 0.5,
            "min_macro_reuse_tasks": 2,
            "designed_reuse_oracle_not_below_base": True,
        },
        "data": {},
        "artifacts": {"root": None, "environment_override": ROOT_VARIABLE, "forbidden_roots": []},
    }


@dataclass
class ScriptedCheckout:
    """A checkout below `folder`; `script` says what its engine does."""

    folder: Path
    document: dict[str, Any] = field(default_factory=dict)

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

    def lines(self) -> list[str]:
        """`experiment/phase@budget` of every generation that was begun, in order."""
        return self.generations.read_text().split() if self.generations.exists() else []


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
    (folder / "prefect.yaml").write_bytes((ROOT / "prefect.yaml").read_bytes())
    return made
