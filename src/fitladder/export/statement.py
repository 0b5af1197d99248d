"""in-toto Statement v1 of one experiment: its files by SHA-256, its receipt chain and its manifest.

Pure: the same files and the same registration give the same bytes; no clock and no machine is in them.
"""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from fitladder.canonical import canonical_bytes, parse_json, parse_model
from fitladder.errors import BundleTampered
from fitladder.export.manifest import Manifest
from fitladder.files.file_record import FileRecord
from fitladder.files.tree_digest import Tree
from fitladder.frozen import Count, Frozen, Identifier, Sha256, Size
from fitladder.records.bundle_key import BundleKey
from fitladder.records.engine_facts import EngineFacts, RuntimeFacts
from fitladder.records.layout import CATALOG, CHECKPOINTS, PREFLIGHT, RECEIPT, checkpoint_name
from fitladder.records.preflight import GoIdentity
from fitladder.store.verify_bundle import VerifiedBundle, VerifiedPreflight
from fitladder.store.verify_root import VerifiedRoot

__all__ = ["PREDICATE_TYPE", "Statement", "build_statement", "parse_statement", "render_statement"]

StatementType = Literal["https://in-toto.io/Statement/v1"]
PredicateType = Literal["urn:fitladder:export:v1"]
STATEMENT_TYPE: StatementType = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: PredicateType = "urn:fitladder:export:v1"


class Annotations(Frozen):
    """What in-toto has no field for."""

    bytes: Size


class Subject(Frozen):
    """A file, named relative to the data folder: `bundles/<experiment>/...`, `audits/...`."""

    name: str = Field(min_length=1)
    digest: dict[Literal["sha256"], Sha256] = Field(min_length=1)
    annotations: Annotations


class ExportedBundle(Frozen):
    """One link of the receipt chain. `receipt_sha256` is None where only a preflight exists."""

    key: BundleKey
    attempt: Count
    state: Literal["preflight_only", "complete"]
    sequence: Size
    preflight_sha256: Sha256
    receipt_sha256: Sha256 | None
    binding_sha256: Sha256
    generation_sha256: Sha256
    go_sha256: Sha256
    go_identity: GoIdentity
    engine: EngineFacts
    runtime: RuntimeFacts


class Export(Frozen):
    """The predicate. Everything but `manifest` follows from the files; `manifest` also from params.yaml.

    `audits`: file name relative to the data folder -> SHA-256, of what was made of the bundles.
    """

    experiment_id: Identifier
    root_id: Sha256
    catalog_checkpoint: Size
    catalog_sha256: Sha256
    tree: Tree
    bundles: tuple[ExportedBundle, ...]
    audits: dict[str, Sha256]
    manifest: Manifest


class Statement(Frozen):
    """in-toto Statement v1 with an export as its predicate."""

    type_: StatementType = Field(alias="_type")
    subject: tuple[Subject, ...] = Field(min_length=1)
    predicateType: PredicateType  # noqa: N815 - the specification's spelling
    predicate: Export

    @model_validator(mode="after")
    def _names_once(self) -> Self:
        names = [subject.name for subject in self.subject]
        if names != sorted(set(names)):
            raise ValueError("subject: names must stand once each, in order")
        return self

    @property
    def files(self) -> dict[str, FileRecord]:
        """Subject name -> size and SHA-256."""
        return {
            one.name: FileRecord(bytes=one.annotations.bytes, sha256=one.digest["sha256"])
            for one in self.subject
        }


def build_statement(
    found: VerifiedRoot,
    records: Mapping[str, FileRecord],
    audits: Mapping[str, FileRecord],
    manifest: Manifest,
) -> Statement:
    """The statement of a verified root.

    Args:
        found: the verified root, or its copy.
        records: the catalog and its old checkpoints, relative to the root, as they were read.
        audits: what was made of the bundles, relative to the data folder.
        manifest: storage, inputs, uses and omissions, by `build_manifest`.

    Raises BundleTampered where `records` are not exactly the catalog and its checkpoints.
    """
    catalog = found.catalog
    names = {CATALOG, *(f"{CHECKPOINTS}/{checkpoint_name(n)}" for n in range(catalog.checkpoint))}
    if set(records) != names:
        odd = sorted(set(records) ^ names)[0]
        raise BundleTampered(f"{found.root / odd} is not of this catalog", need=", ".join(sorted(names)))
    inside: dict[str, FileRecord] = dict(records)
    for entry in catalog.entries:
        inside |= {f"{entry.relative_path}/{name}": record for name, record in entry.files.items()}
    files = {f"bundles/{catalog.experiment_id}/{name}": record for name, record in inside.items()} | dict(
        audits
    )
    return Statement(
        _type=STATEMENT_TYPE,
        subject=tuple(
            Subject(
                name=name,
                digest={"sha256": files[name].sha256},
                annotations=Annotations(bytes=files[name].bytes),
            )
            for name in sorted(files)
        ),
        predicateType=PREDICATE_TYPE,
        predicate=Export(
            experiment_id=catalog.experiment_id,
            root_id=catalog.root_id,
            catalog_checkpoint=catalog.checkpoint,
            catalog_sha256=records[CATALOG].sha256,
            tree=catalog.tree,
            bundles=tuple(_link(one) for one in found.links),
            audits={name: record.sha256 for name, record in audits.items()},
            manifest=manifest,
        ),
    )


def _link(one: VerifiedBundle | VerifiedPreflight) -> ExportedBundle:
    files = one.files if isinstance(one, VerifiedBundle) else {PREFLIGHT: one.file}
    preflight = one.preflight
    return ExportedBundle(
        key=one.key,
        attempt=preflight.attempt,
        state="complete" if isinstance(one, VerifiedBundle) else "preflight_only",
        sequence=preflight.sequence,
        preflight_sha256=files[PREFLIGHT].sha256,
        receipt_sha256=files[RECEIPT].sha256 if RECEIPT in files else None,
        binding_sha256=preflight.binding.binding_sha256,
        generation_sha256=preflight.binding.generation_sha256,
        go_sha256=preflight.go_sha256,
        go_identity=preflight.go_identity,
        engine=preflight.engine,
        runtime=preflight.runtime,
    )


def render_statement(statement: Statement) -> bytes:
    """Canonical JSON of the statement: the payload that a signature covers."""
    return canonical_bytes(statement.model_dump(mode="json", by_alias=True))


def parse_statement(data: bytes, *, where: str) -> Statement:
    """A statement from its canonical bytes `data`. Raises BundleTampered naming `where` and the field."""
    plain = parse_json(data, where=where, error=BundleTampered)
    statement = parse_model(Statement, plain, where=where, error=BundleTampered)
    if render_statement(statement) != data:
        raise BundleTampered(f"{where}: not in canonical form")
    return statement
