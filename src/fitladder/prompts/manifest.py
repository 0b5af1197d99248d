"""Prompt manifest: digests and token ids of every prompt, frozen at registration.

Prompts are compared with it before any engine is built. It is never written again: a changed prompt is
another experiment.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field

from fitladder.canonical import canonical_bytes, canonical_sha256, parse_model
from fitladder.errors import InputRefused
from fitladder.frozen import Frozen, Sha256, TokenId
from fitladder.prompts.messages import Record
from fitladder.prompts.record_names import check_ids
from fitladder.prompts.render import render_prompt, text_sha256

__all__ = [
    "PromptEntry",
    "PromptManifest",
    "RenderedPrompt",
    "TokenizerIdentity",
    "check_prompts",
    "freeze_prompts",
    "parse_manifest",
    "render_manifest",
    "render_prompts",
]


class TokenizerIdentity(Frozen):
    """SHA-256 of the tokenizer file that made the ids, and the version of the `tokenizers` library."""

    tokenizer_sha256: Sha256
    tokenizers_version: str


class PromptEntry(Frozen):
    """One prompt. `prompt_token_ids` is None in the historic manifest, which froze counts only."""

    id: str
    input_record_sha256: Sha256
    rendered_prompt_sha256: Sha256
    prompt_tokens: Annotated[int, Field(ge=1)]
    prompt_token_ids: tuple[TokenId, ...] | None = None


class PromptManifest(Frozen):
    """prompt_manifest.json: entries of each arm in record order, and the text that opens thinking."""

    schema_version: Literal[1]
    arms: dict[str, tuple[PromptEntry, ...]]
    open_text: str | None = None
    tokenizer: TokenizerIdentity | None = None
    source_experiment: str | None = None
    source_note: str | None = None


@dataclass(frozen=True)
class RenderedPrompt:
    """A prompt as rendered and tokenised now: its digests and ids, without its text."""

    id: str
    input_record_sha256: str
    rendered_prompt_sha256: str
    prompt_token_ids: tuple[int, ...]


def parse_manifest(value: object, *, where: str) -> PromptManifest:
    """Manifest from parsed JSON.

    Args:
        where: path that refusals name.

    Raises InputRefused on another form, on record ids that alias each other (record_names.py), and on token
    ids that are not as many as their count says.
    """
    manifest = parse_model(PromptManifest, value, where=where)
    entries = [entry for rows in manifest.arms.values() for entry in rows]
    check_ids([entry.id for entry in entries], what=where)
    for entry in entries:
        if entry.prompt_token_ids is not None and len(entry.prompt_token_ids) != entry.prompt_tokens:
            raise InputRefused(
                f"{where}: prompt {entry.id}",
                got=f"{len(entry.prompt_token_ids)} ids",
                need=entry.prompt_tokens,
            )
    return manifest


def render_manifest(manifest: PromptManifest) -> bytes:
    """The manifest's bytes: canonical JSON, absent fields left out."""
    return canonical_bytes(manifest.model_dump(mode="json", exclude_none=True))


def render_prompts(
    records: Iterable[Record], open_text: str, encode: Callable[[str], Sequence[int]]
) -> tuple[RenderedPrompt, ...]:
    """Render and tokenise records, in order.

    Args:
        open_text: registered opening of thinking, appended to the assistant's turn.
        encode: text to ids, without special ones added.
    """
    rows = []
    for record in records:
        text = render_prompt(record, open_text)
        rows.append(
            RenderedPrompt(
                record.id,
                canonical_sha256(record),
                text_sha256(text),
                tuple(int(one) for one in encode(text)),
            )
        )
    return tuple(rows)


def freeze_prompts(
    arms: Mapping[str, tuple[RenderedPrompt, ...]],
    open_text: str,
    tokenizer: TokenizerIdentity,
    special_ids: frozenset[int],
) -> PromptManifest:
    """Manifest of a new experiment.

    Args:
        arms: rendered prompts by arm, in record order.
        special_ids: the tokenizer's special ids; a prompt that begins with one of them twice has a doubled
            BOS.

    Raises InputRefused on record ids that alias each other, on an empty prompt, or on a doubled BOS.
    """
    check_ids([row.id for rows in arms.values() for row in rows], what="prompt manifest")
    for rows in arms.values():
        for row in rows:
            _check_start(row, special_ids)
    entries = {
        arm: tuple(
            PromptEntry(
                id=row.id,
                input_record_sha256=row.input_record_sha256,
                rendered_prompt_sha256=row.rendered_prompt_sha256,
                prompt_tokens=len(row.prompt_token_ids),
                prompt_token_ids=row.prompt_token_ids,
            )
            for row in rows
        )
        for arm, rows in arms.items()
    }
    return PromptManifest(schema_version=1, arms=entries, open_text=open_text, tokenizer=tokenizer)


def check_prompts(
    manifest: PromptManifest,
    arm: str,
    prompts: Sequence[RenderedPrompt],
    *,
    tokenizer: TokenizerIdentity,
    special_ids: frozenset[int],
) -> None:
    """Refuse prompts that are not the frozen ones of an arm, in order.

    The tokenizer file must be the frozen one; another version of `tokenizers` is allowed where it makes equal
    ids.

    Args:
        prompts: the arm as rendered now.
        tokenizer: of the file in use.
        special_ids: as in `freeze_prompts`.

    Raises InputRefused naming the prompt and, where ids are frozen, the first differing token and both ids.
    """
    entries = manifest.arms.get(arm)
    if entries is None:
        raise InputRefused(
            "prompt manifest has no such arm", got=ascii(arm)[:40], need=", ".join(manifest.arms)
        )
    if manifest.tokenizer and manifest.tokenizer.tokenizer_sha256 != tokenizer.tokenizer_sha256:
        raise InputRefused(
            "tokenizer file changed", got=tokenizer.tokenizer_sha256, need=manifest.tokenizer.tokenizer_sha256
        )
    check_ids([row.id for row in prompts], what=f"prompts of {arm}")
    have, need = [row.id for row in prompts], [entry.id for entry in entries]
    if have != need:
        odd = next(
            (pair for pair in zip(have, need, strict=False) if pair[0] != pair[1]), (len(have), len(need))
        )
        raise InputRefused(f"prompts of {arm} are not the frozen ones", got=odd[0], need=odd[1])
    for row, entry in zip(prompts, entries, strict=True):
        _check_start(row, special_ids)
        _check_entry(row, entry)


def _check_start(row: RenderedPrompt, special_ids: frozenset[int]) -> None:
    ids = row.prompt_token_ids
    if not ids:
        raise InputRefused(f"prompt {row.id}", got="no tokens")
    if len(ids) > 1 and ids[0] == ids[1] and ids[0] in special_ids:
        raise InputRefused(
            f"prompt {row.id} begins with a doubled BOS", got=f"{list(ids[:2])}", need=f"one {ids[0]}"
        )


def _check_entry(row: RenderedPrompt, entry: PromptEntry) -> None:
    ids, frozen = row.prompt_token_ids, entry.prompt_token_ids
    what = f"prompt {row.id} drifted"
    if frozen is not None and ids != frozen:
        at = next(
            (i for i, (a, b) in enumerate(zip(ids, frozen, strict=False)) if a != b),
            min(len(ids), len(frozen)),
        )
        got, need = (side[at] if at < len(side) else "the end" for side in (ids, frozen))
        raise InputRefused(what, got=f"id {got} at token {at}", need=f"id {need}", do=_NEW)
    if len(ids) != entry.prompt_tokens:
        raise InputRefused(what, got=f"{len(ids)} tokens", need=entry.prompt_tokens, do=_NEW)
    for field in ("input_record_sha256", "rendered_prompt_sha256"):
        if getattr(row, field) != getattr(entry, field):
            raise InputRefused(
                what, got=f"{field} {getattr(row, field)}", need=getattr(entry, field), do=_NEW
            )


_NEW: Final = "restore the registered input, or register a new experiment"
