"""Name of a work queue: each GPU host serves one of the server, and a statement names its host by it."""

from typing import Annotated

from pydantic import Field

__all__ = ["DEFAULT_QUEUE", "WorkQueue"]

DEFAULT_QUEUE = "default"  # as Prefect names the first queue of a pool
WorkQueue = Annotated[str, Field(min_length=1, max_length=80)]
