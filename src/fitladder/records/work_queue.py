"""Which host may a statement be about? Each serves one work queue of the server; the first has this name."""

from typing import Annotated

from pydantic import Field

__all__ = ["DEFAULT_QUEUE", "WorkQueue"]

DEFAULT_QUEUE = "default"  # as Prefect names the first queue of a pool
WorkQueue = Annotated[str, Field(min_length=1, max_length=80)]
