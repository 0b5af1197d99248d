"""Text to ids and back with one registered tokenizer file; the only importer of `tokenizers`.

The file's SHA-256 is checked before it is loaded. No special token is ever added: the rendered text
already holds them.
"""

from collections.abc import Sequence
from pathlib import Path

import tokenizers

from fitladder.canonical import sha256_bytes
from fitladder.errors import InputRefused
from fitladder.prompts.manifest import TokenizerIdentity

__all__ = ["PromptTokenizer", "load_tokenizer"]


class PromptTokenizer:
    """A loaded tokenizer with its identity for manifest and receipt."""

    def __init__(self, inner: tokenizers.Tokenizer, identity: TokenizerIdentity) -> None:
        self._inner = inner
        self.identity = identity
        self.vocabulary_size = inner.get_vocab_size(with_added_tokens=True)
        added = inner.get_added_tokens_decoder()
        self.special_ids = frozenset(number for number, token in added.items() if token.special)

    def encode(self, text: str) -> list[int]:
        """Token ids, none added. Raises InputRefused on a lone surrogate."""
        try:
            text.encode()
        except UnicodeEncodeError as failure:
            raise InputRefused(
                "text has no UTF-8 form", got=f"a lone surrogate at {failure.start}"
            ) from failure
        return list(self._inner.encode(text, add_special_tokens=False).ids)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of ids, special tokens spelled out. Raises InputRefused on an id outside the vocabulary,
        which the library would drop without a word."""
        for at, number in enumerate(token_ids):
            if not 0 <= number < self.vocabulary_size:
                raise InputRefused("token id", got=f"{number} at {at}", need=f"below {self.vocabulary_size}")
        return str(self._inner.decode(list(token_ids), skip_special_tokens=False))


def load_tokenizer(path: Path, sha256: str | None) -> PromptTokenizer:
    """The tokenizer of a tokenizer.json whose bytes have the registered SHA-256.

    None is for the first registration only, to learn the hash. Raises InputRefused.
    """
    try:
        data = path.read_bytes()
    except OSError as failure:
        raise InputRefused(f"tokenizer {path} cannot be read", got=failure.strerror or failure) from failure
    found = sha256_bytes(data)
    if sha256 is not None and found != sha256:
        raise InputRefused(f"tokenizer {path} changed", got=found, need=sha256)
    try:
        inner = tokenizers.Tokenizer.from_buffer(data)
    except Exception as failure:  # the library raises bare Exception for any unreadable file
        raise InputRefused(f"{path} is no tokenizer.json", got=str(failure)[:120]) from failure
    identity = TokenizerIdentity(tokenizer_sha256=found, tokenizers_version=tokenizers.__version__)
    return PromptTokenizer(inner, identity)
