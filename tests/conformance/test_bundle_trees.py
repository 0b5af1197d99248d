"""The tree digests that the registered history recorded, from its own catalogs' entries, by our scheme."""

import json
from pathlib import Path
from typing import Any

import pytest

from fitladder.files.file_record import FileRecord
from fitladder.files.tree_digest import Tree, tree_of

REFERENCE = Path(__file__).parents[3] / "shared" / "reference"
pytestmark = pytest.mark.skipif(not REFERENCE.is_dir(), reason="../shared/reference is not here")


def load(folder: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((REFERENCE / folder / name).read_bytes())
    return found


def files(entries: list[dict[str, Any]]) -> dict[str, FileRecord]:
    return {
        file["relative_path"]: FileRecord(bytes=file["bytes"], sha256=file["sha256"])
        for entry in entries
        for file in [*entry["files"].values(), *([entry["receipt"]] if "receipt" in entry else [])]
    }


@pytest.mark.parametrize(
    ("folder", "count", "size", "sha256"),
    [
        ("capacity_fit", 5, 31_649_318, "0bf398db12f349a4c49b99770e7d5f07e5ca3b2dcc2c172aec17e844a6a78b6b"),
        (
            "exact_cudagraph",
            8,
            70_191_578,
            "4aa311ab579c301f2b2d7383591e3e68ed66035d184bbaaa2659d59bd95542d3",
        ),
    ],
)
def test_the_catalogs_trees(folder: str, count: int, size: int, sha256: str) -> None:
    catalog = load(folder, "scientific_smoke_artifact_catalog.json")
    expected = Tree(files=count, bytes=size, sha256=sha256)
    assert catalog["tree"] == expected.model_dump()
    assert tree_of(files(catalog["entries"])) == expected


@pytest.mark.parametrize(
    ("folder", "audit", "entries"),
    [
        ("capacity_fit", "scientific_smoke_49k_termination_audit.json", 2),  # with the 61k preflight
        ("exact_cudagraph", "scientific_smoke_49k_termination_audit.json", 1),
        ("exact_cudagraph", "scientific_smoke_61k_termination_audit.json", 2),
    ],
)
def test_the_trees_at_each_audit(folder: str, audit: str, entries: int) -> None:
    recorded = load(folder, audit)["bundle"]["catalog_verification"]["external_tree_at_audit"]
    catalog = load(folder, "scientific_smoke_artifact_catalog.json")
    assert tree_of(files(catalog["entries"][:entries])).model_dump() == recorded
