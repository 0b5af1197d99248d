"""Manifest of an experiment: where its files lie, who needs which of them, and what was left out.

Pure: a verified root and the registered experiment in, one record out. No clock, no machine, no text of any
answer.
"""

from fitladder.errors import BundleError
from fitladder.frozen import Frozen, Sha256
from fitladder.records.experiment import Experiment
from fitladder.store.verify_root import VerifiedRoot

__all__ = ["Manifest", "Need", "Omission", "Storage", "build_manifest"]

SCHEME = "sha256 over sorted relative-path NUL file-sha256 newline records"


class Storage(Frozen):
    """The one place where a GPU host writes, and the copy that everybody else gets."""

    root: str | None
    environment_override: str
    reviewers_copy: str
    pull: str


class Need(Frozen):
    """What somebody who wants to re-derive something must have, and the command that does it."""

    what: str
    files: tuple[str, ...]
    inputs: tuple[str, ...]
    command: str


class Omission(Frozen):
    """An artifact that is not here, and why."""

    what: str
    reason: str


class Manifest(Frozen):
    """What the export's predicate says beyond the receipt chain; files are relative to root or copy.

    `checksum_scheme` is how the predicate's `tree` digest is computed; `inputs`: name -> SHA-256.
    """

    storage: Storage
    checksum_scheme: str
    inputs: dict[str, Sha256]
    required_for: tuple[Need, ...]
    omitted: tuple[Omission, ...]


def build_manifest(experiment: Experiment, found: VerifiedRoot) -> Manifest:
    """The manifest of a registered experiment and its verified root or copy `found`.

    Raises BundleError where the root is of another experiment.
    """
    name, catalog = experiment.experiment_id, found.catalog
    if catalog.experiment_id != name:
        raise BundleError("manifest of another experiment's root", got=catalog.experiment_id, need=name)
    files = sorted(f"{entry.relative_path}/{file}" for entry in catalog.entries for file in entry.files)
    return Manifest(
        storage=Storage(
            root=experiment.artifacts.root,
            environment_override=experiment.artifacts.environment_override,
            reviewers_copy=f"data/bundles/{name}",
            pull=f"fitladder lineage pull {name}",
        ),
        checksum_scheme=SCHEME,
        inputs={str(input_name): sha for input_name, sha in experiment.data.items()},
        required_for=_needs(experiment, files),
        omitted=_omissions(experiment, found),
    )


def _needs(experiment: Experiment, files: list[str]) -> tuple[Need, ...]:
    name = experiment.experiment_id
    everything = ("catalog.json", "checkpoints/", *files)
    tasks = tuple(str(one) for one in experiment.data if one != "hidden")
    return (
        Need(
            what="every byte against its receipt",
            files=everything,
            inputs=(),
            command=f"fitladder verify {name}",
        ),
        Need(
            what="termination audits and selection, without any text",
            files=everything,
            inputs=("prompt_manifest",),
            command=f"dvc repro audit@{name} selection@{name}",
        ),
        Need(
            what="semantics, only of a selected matrix; it alone opens the hidden examples",
            files=everything,
            inputs=tuple(str(one) for one in experiment.data),
            command=f"dvc repro semantics@{name}",
        ),
        Need(what="the page", files=everything, inputs=tasks, command=f"dvc repro report@{name}"),
        Need(
            what="a new sampling, which is another experiment with its own root, GO and rows",
            files=(),
            inputs=tuple(str(one) for one in experiment.data),
            command=f"fitladder new NAME --from {name}",
        ),
    )


def _numbered(attempt: int) -> str:
    return f", attempt {attempt}" if attempt > 1 else ""


def _omissions(experiment: Experiment, found: VerifiedRoot) -> tuple[Omission, ...]:
    omitted = [
        Omission(
            what=f"{one.key}{_numbered(one.preflight.attempt)}: samples, engine metadata, receipt",
            reason="generation was not completed; a preflight is no result, and no row was kept",
        )
        for one in found.preflights
    ]
    omitted += [
        Omission(
            what=f"everything below {path}",
            reason="a predecessor's root: no row of another experiment is read, copied or pooled here",
        )
        for path in experiment.artifacts.forbidden_roots
    ]
    if experiment.predecessor:
        omitted.append(
            Omission(
                what=f"bundles, audits and selection of {experiment.predecessor}",
                reason="they stay with it; comparisons are descriptive and cite its audits by hash",
            )
        )
    omitted.append(
        Omission(what="decoded text", reason="bundles hold token ids; text exists only after a selection")
    )
    if experiment.state != "open":
        omitted.append(
            Omission(
                what="phases that were never begun",
                reason=f"the experiment is {experiment.state}; the ladder authorised nothing further",
            )
        )
    return tuple(omitted)
