"""Rendering of a record as ChatML text, the exact text that is tokenised.

The model's chat template is not read, since it could change, insert a date, or add a system turn.
"""

from fitladder.canonical import sha256_bytes
from fitladder.errors import InputRefused
from fitladder.prompts.messages import Record

__all__ = ["render_prompt", "text_sha256"]


def render_prompt(record: Record, open_text: str) -> str:
    """Text of a record: `<|im_start|>{role}\\n{content}<|im_end|>\\n` a message, then the assistant's turn.

    Args:
        open_text: registered opening of thinking, such as `<think>\\n`, which ends the text.
    """
    turns = (f"<|im_start|>{message.role}\n{message.content}<|im_end|>\n" for message in record.messages)
    return "".join(turns) + "<|im_start|>assistant\n" + open_text


def text_sha256(text: str) -> str:
    """SHA-256 of the UTF-8 bytes. Raises InputRefused on a lone surrogate, which has none."""
    try:
        return sha256_bytes(text.encode())
    except UnicodeEncodeError as failure:
        raise InputRefused(
            "prompt text has no UTF-8 form", got=f"a lone surrogate at {failure.start}"
        ) from failure
