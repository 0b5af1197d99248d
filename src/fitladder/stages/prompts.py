"""Stage prompts@X: the registered inputs rendered to prompts, each checked against the frozen manifest.

Reads registered inputs by SHA-256, renders, and needs no tokenizer: ids were frozen with the manifest. The
sealed half of the task set is not opened.
"""

from pathlib import Path
from typing import Any

from fitladder.canonical import canonical_bytes, canonical_sha256, parse_json, sha256_bytes
from fitladder.errors import InputRefused
from fitladder.files.atomic import write_output_folder
from fitladder.prompts.manifest import PromptEntry, PromptManifest, parse_manifest
from fitladder.prompts.messages import Record, parse_records
from fitladder.prompts.render import render_prompt, text_sha256
from fitladder.records.experiment import ARMS, Arm, Experiment, InputName
from fitladder.records.registry import Registry
from fitladder.registry.data_paths import prompts_folder
from fitladder.registry.inputs import load_input
from fitladder.registry.provenance import check_parity

__all__ = ["make_prompts", "render_arm"]

RECORDS: dict[Arm, InputName] = {"base": "records_base", "designed_ceiling": "records_designed_ceiling"}
SEALED: InputName = "hidden"


def make_prompts(registry: Registry, experiment_id: str, data_dir: Path) -> str:
    """Write `base.json`, `designed_ceiling.json` (text and frozen ids of every prompt) and `manifest.json`.

    Raises InputRefused where an input is absent or different, or where a prompt is not the frozen one.
    """
    experiment = registry.experiment(experiment_id)
    check_parity(registry, experiment_id, data_dir)
    for name in experiment.data:
        if name != SEALED:
            load_input(data_dir, experiment, name)
    where = f"prompt manifest of {experiment_id}"
    manifest = parse_manifest(
        parse_json(load_input(data_dir, experiment, "prompt_manifest"), where=where), where=where
    )
    files = {f"{arm}.json": canonical_bytes(_arm(data_dir, experiment, arm, manifest)) for arm in ARMS}
    summary = {
        "schema_version": 1,
        "experiment_id": experiment_id,
        "inputs": dict(experiment.data),
        "arms": {name.removesuffix(".json"): sha256_bytes(data) for name, data in files.items()},
        "longest_prompt_tokens": max(
            entry.prompt_tokens for entries in manifest.arms.values() for entry in entries
        ),
    }
    write_output_folder(
        prompts_folder(data_dir, experiment_id), {**files, "manifest.json": canonical_bytes(summary)}
    )
    return f"{experiment_id}: {sum(len(entries) for entries in manifest.arms.values())} prompts as frozen"


def _arm(data_dir: Path, experiment: Experiment, arm: Arm, manifest: PromptManifest) -> list[dict[str, Any]]:
    where = f"{RECORDS[arm]} of {experiment.experiment_id}"
    records = parse_records(
        parse_json(load_input(data_dir, experiment, RECORDS[arm]), where=where), where=where
    )
    return render_arm(experiment, records, manifest.arms.get(arm, ()), where=where)


def render_arm(
    experiment: Experiment, records: tuple[Record, ...], entries: tuple[PromptEntry, ...], *, where: str
) -> list[dict[str, Any]]:
    """The prompts of one arm as plain rows. Pure. Raises InputRefused naming the first that drifted."""
    if [record.id for record in records] != [entry.id for entry in entries]:
        raise InputRefused(
            f"{where}: ids", got=[record.id for record in records], need=[entry.id for entry in entries]
        )
    rows = []
    for record, entry in zip(records, entries, strict=True):
        text = render_prompt(record, experiment.thinking.open_text)
        for what, got, need in (
            ("record", canonical_sha256(record), entry.input_record_sha256),
            ("rendered prompt", text_sha256(text), entry.rendered_prompt_sha256),
        ):
            if got != need:
                raise InputRefused(f"{where}: {what} {entry.id}", got=got, need=need)
        if entry.prompt_tokens > experiment.longest_prompt_tokens:
            raise InputRefused(
                f"{where}: prompt {entry.id}",
                got=f"{entry.prompt_tokens} tokens",
                need=f"at most the registered {experiment.longest_prompt_tokens}",
            )
        rows.append(
            {
                "id": entry.id,
                "text": text,
                "rendered_prompt_sha256": entry.rendered_prompt_sha256,
                "prompt_tokens": entry.prompt_tokens,
                "prompt_token_ids": entry.prompt_token_ids and list(entry.prompt_token_ids),
            }
        )
    return rows
