"""The engine's inputs: token ids of one arm, checked against the frozen manifest, and the model folder.

Reads registered inputs and the registered tokenizer; refuses before any engine is built.
"""

from dataclasses import dataclass
from pathlib import Path

from fitladder.canonical import parse_json
from fitladder.errors import EnvironmentNotReady, InputRefused
from fitladder.files.tree_digest import tree_sha256
from fitladder.gates.prompt_identity import PromptFacts
from fitladder.prompts.close_marker import check_marker
from fitladder.prompts.manifest import check_prompts, parse_manifest, render_prompts
from fitladder.prompts.messages import parse_records
from fitladder.prompts.tokenizer import PromptTokenizer, load_tokenizer
from fitladder.records.experiment import ARM_OF_PHASE, Experiment, InputName, Phase
from fitladder.registry.inputs import load_input
from fitladder.workspace import Workspace

__all__ = ["ArmPrompts", "check_model", "check_model_folder", "load_prompts"]

RECORDS_OF_ARM: dict[str, InputName] = {
    "base": "records_base",
    "designed_ceiling": "records_designed_ceiling",
}


@dataclass(frozen=True)
class ArmPrompts:
    """One arm's prompts: ids for the engine, facts as rendered now and as frozen, in record order."""

    token_ids: dict[str, tuple[int, ...]]
    rendered: tuple[PromptFacts, ...]
    frozen: tuple[PromptFacts, ...]


def check_model_folder(workspace: Workspace, experiment: Experiment) -> str:
    """What vLLM would be told to load, its bytes not read: a local folder, or a hub name.

    Raises EnvironmentNotReady where the registered folder is absent.
    """
    model = experiment.model
    folder = workspace.model_folder(model)
    if folder.is_dir():
        return str(folder)
    if model.folder_sha256 is None:
        return model.name
    raise EnvironmentNotReady(f"the model folder {folder} is absent", do="run `make setup`")


def check_model(workspace: Workspace, experiment: Experiment) -> str:
    """What vLLM is told to load: a verified local folder, or a hub name at its registered commit.

    Raises InputRefused where the folder's bytes are not the registered ones, EnvironmentNotReady without one.
    """
    named = check_model_folder(workspace, experiment)
    model = experiment.model
    if model.folder_sha256 is None:
        return named
    folder = workspace.model_folder(model)
    found = tree_sha256(folder, error=InputRefused)
    if found != model.folder_sha256:
        raise InputRefused(
            f"the model folder {folder} is not the registered one",
            got=found,
            need=model.folder_sha256,
            do="remove it and run `make setup`",
        )
    return named


def _tokenizer(workspace: Workspace, experiment: Experiment) -> PromptTokenizer:
    path: Path = workspace.model_folder(experiment.model) / "tokenizer.json"
    return load_tokenizer(path, experiment.model.tokenizer_sha256)


def load_prompts(workspace: Workspace, experiment: Experiment, phase: Phase) -> ArmPrompts:
    """Render and tokenise the phase's arm, and hold it against the frozen manifest. Raises InputRefused."""
    arm = ARM_OF_PHASE[phase]
    name = RECORDS_OF_ARM[arm]
    records = parse_records(
        parse_json(load_input(workspace.data, experiment, name), where=name), where=f"input {name}"
    )
    manifest = parse_manifest(
        parse_json(load_input(workspace.data, experiment, "prompt_manifest"), where="prompt_manifest"),
        where="prompt manifest",
    )
    tokenizer = _tokenizer(workspace, experiment)
    thinking = experiment.thinking
    prompts = render_prompts(records, thinking.open_text, tokenizer.encode)
    check_prompts(manifest, arm, prompts, tokenizer=tokenizer.identity, special_ids=tokenizer.special_ids)
    _check_close(experiment, tokenizer)
    return ArmPrompts(
        token_ids={prompt.id: prompt.prompt_token_ids for prompt in prompts},
        rendered=tuple(
            PromptFacts(prompt.id, prompt.rendered_prompt_sha256, len(prompt.prompt_token_ids))
            for prompt in prompts
        ),
        frozen=tuple(
            PromptFacts(entry.id, entry.rendered_prompt_sha256, entry.prompt_tokens)
            for entry in manifest.arms[arm]
        ),
    )


def _check_close(experiment: Experiment, tokenizer: PromptTokenizer) -> None:
    thinking = experiment.thinking
    check_marker(
        "close marker",
        marker=thinking.close_text.rstrip("\n"),
        marker_ids=thinking.close_marker_token_ids,
        sequence=thinking.close_text,
        sequence_ids=thinking.close_token_ids,
        encode=tokenizer.encode,
    )
