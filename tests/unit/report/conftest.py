import re
from collections.abc import Callable

import pytest


@pytest.fixture
def words_of() -> Callable[[str], str]:
    """What a reader sees of a page: tags, styles and pictures taken out, spaces made one."""

    def read(html: str) -> str:
        text = re.sub(r"<(style|svg)\b.*?</\1>", " ", html, flags=re.DOTALL)
        return " ".join(re.sub(r"<[^>]+>", " ", text).replace("\u00a0", " ").split())

    return read
