"""Check of dvc.lock against the files, DVC's stores and the receipts, from bytes that are hashed now.

DVC's own status is not used: it accepts tampered objects, links and second hard links. The first
contradiction is named by path, with what was found and what is recorded; nothing is repaired here.
"""

import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fitladder.dvc_api.generation_inputs import check_recorded_generation
from fitladder.dvc_api.objects import Store, check_objects, read_listing
from fitladder.dvc_api.record_files import check_records
from fitladder.dvc_api.remotes import cache_store, check_settings, load_remotes
from fitladder.dvc_files.experiment_lists import load_lists
from fitladder.dvc_files.graph import load_outputs
from fitladder.dvc_files.lock_file import LockedPath, LockedStage, load_lock
from fitladder.dvc_files.md5 import differs_in_line_ends, folder_md5s, listing_md5, raw_md5
from fitladder.errors import LineageError
from fitladder.evidence.checkout_bundles import LOCK_FILE
from fitladder.registry.load import load_registry
from fitladder.registry.provenance import check_parity

__all__ = [
    "check_chain",
    "check_lineage",
    "check_output_paths",
    "check_remotes",
    "check_replaceable",
]


def check_lineage(checkout: Path, experiment_id: str, *, with_remotes: bool = False) -> int:
    """Check everything that dvc.lock records of an experiment; return how many objects were hashed.

    `with_remotes`: each remote that is a folder must hold every object too. Raises LineageError, or the kinds
    of BundleError where a receipt and its bundle disagree.
    """
    load_lists(checkout / "dvc.yaml")
    registry = load_registry(checkout / "params.yaml")
    registry.experiment(experiment_id)
    check_parity(registry, experiment_id, checkout / "data")
    check_settings(checkout)
    check_records(checkout / "data", experiment_id)
    lock = load_lock(checkout / LOCK_FILE)
    stages = {name: stage for name, stage in lock.items() if name.endswith(f"@{experiment_id}")}
    if not stages:
        raise LineageError(
            f"dvc.lock records nothing of {experiment_id}", do=f"run `dvc repro report@{experiment_id}`"
        )
    check_output_paths(stages, load_outputs(checkout / "dvc.yaml", list(registry.experiments)))
    check_chain(stages)
    cache = cache_store(checkout)
    remotes = [store for remote in load_remotes(checkout) if (store := remote.store)]
    outputs = [out for stage in stages.values() for out in stage.outs.values()]
    for out in outputs:
        _check_bytes(checkout, out, [cache, *remotes])
    needed = [pair for out in outputs for pair in _objects(checkout, out)]
    check_objects(needed, [cache, *remotes] if with_remotes else [cache], [] if with_remotes else remotes)
    if f"bundles@{experiment_id}" in stages:
        check_recorded_generation(checkout, stages[f"bundles@{experiment_id}"], registry)
    return len(needed)


def check_remotes(checkout: Path, experiment_id: str) -> None:
    """Hash every object that dvc.lock records of an experiment in each remote that is a folder.

    Needs no file of the experiment here. Raises LineageError naming the object and where it was looked for.
    """
    stages = load_lock(checkout / LOCK_FILE)
    remotes = [store for remote in load_remotes(checkout) if (store := remote.store)]
    for name, stage in stages.items():
        for out in stage.outs.values() if name.endswith(f"@{experiment_id}") and remotes else ():
            files = read_listing(remotes, out.md5, where=out.path) if out.is_folder else {}
            needed = [(md5, f"{out.path}/{file}") for file, md5 in sorted(files.items())]
            check_objects([*needed, (out.md5, out.path)], remotes)


def check_replaceable(checkout: Path, experiment_id: str) -> None:
    """Refuse to pull over an output that is not the recorded one, which DVC would not overwrite either.

    Raises LineageError naming the first output that is another.
    """
    for name, stage in load_lock(checkout / LOCK_FILE).items():
        for out in stage.outs.values() if name.endswith(f"@{experiment_id}") else ():
            path = checkout / out.path
            if path.exists() and (found := raw_md5(path)) != out.md5:
                raise LineageError(
                    f"{path} was made or changed here and is in the way of the recorded one",
                    got=f"MD5 {found}",
                    need=out.md5,
                    do=f"move it elsewhere, then run `fitladder lineage pull {experiment_id}` again",
                )


def check_output_paths(stages: Mapping[str, LockedStage], declared: Mapping[str, Sequence[str]]) -> None:
    """Refuse a dvc.lock whose outputs are not those of dvc.yaml, as after a rename by hand.

    Args:
        stages: of dvc.lock, by name.
        declared: output paths of dvc.yaml, by stage.
    """
    for name, stage in stages.items():
        if name not in declared:
            raise LineageError(f"dvc.lock records {name}", got="no such stage in dvc.yaml", need=name)
        for path in sorted(stage.outs.keys() ^ set(declared[name])):
            recorded = path in stage.outs
            raise LineageError(
                f"{name}: output {path} is " + ("not in dvc.yaml" if recorded else "not in dvc.lock"),
                got=", ".join(declared[name] if recorded else sorted(stage.outs)),
                need=f"{path} as recorded" if recorded else "the recorded path",
                do="an output that was recorded is not renamed or moved: restore dvc.yaml and the file",
            )


def check_chain(stages: Mapping[str, LockedStage]) -> None:
    """Refuse a dvc.lock in which a stage read another file than the one before it made, as after a merge."""
    made = {out.path: (out, name) for name, stage in stages.items() for out in stage.outs.values()}
    for name, stage in stages.items():
        for dep in stage.deps.values():
            out, maker = made.get(dep.path, (dep, name))
            if dep.md5 != out.md5:
                raise LineageError(
                    f"dvc.lock is mixed: {name} read another {dep.path} than {maker} made",
                    got=dep.md5,
                    need=out.md5,
                    do=f"keep one branch's dvc.lock whole, then run `dvc repro report@{name.split('@')[1]}`",
                )


def _check_bytes(checkout: Path, out: LockedPath, stores: Sequence[Store]) -> None:
    path = checkout / out.path
    if not path.exists() and not path.is_symlink():
        raise LineageError(
            f"{path} is missing at its recorded path",
            got="nothing",
            need=f"MD5 {out.md5}",
            do=f"run `dvc pull {out.path}`, or undo what moved it; where no remote has it, "
            "`dvc repro` makes everything but bundles again",
        )
    _check_one_name(path)
    if raw_md5(path) == out.md5:
        return
    if not out.is_folder or not path.is_dir():
        raise _differs(path, raw_md5(path), out.md5)
    found, need = folder_md5s(path), read_listing(stores, out.md5, where=out.path)
    for name in sorted(found.keys() | need.keys()):
        if name not in found:
            raise LineageError(f"{path / name} is missing", got="nothing", need=f"MD5 {need[name]}")
        if name not in need:
            raise LineageError(
                f"{path / name} is not recorded", got=f"MD5 {found[name]}", need="nothing there"
            )
        if found[name] != need[name]:
            raise _differs(path / name, found[name], need[name])
    raise LineageError(f"{path}: the recorded listing", got=listing_md5(need), need=out.md5)


def _check_one_name(path: Path) -> None:
    """Refuse a second hard link, through which the bytes could be changed later."""
    for one in path.rglob("*") if path.is_dir() else (path,):
        status = one.lstat()
        if stat.S_ISREG(status.st_mode) and status.st_nlink != 1:
            raise LineageError(
                f"{one}",
                got=f"{status.st_nlink} names for one file",
                need="one",
                do="copy instead of linking",
            )


def _differs(path: Path, found: str, need: str) -> LineageError:
    ends = path.is_file() and differs_in_line_ends(path, need)
    return LineageError(
        f"{path} is not what dvc.lock records" + (": only its line ends differ" if ends else ""),
        got=f"MD5 {found}",
        need=need,
        do="delete it and restore the recorded bytes with `dvc checkout`"
        + (", and keep tools from converting LF and CRLF" if ends else ""),
    )


def _objects(checkout: Path, out: LockedPath) -> Iterator[tuple[str, str]]:
    """(md5, path) of every object that a recorded output is kept as; its bytes here were already checked."""
    if out.is_folder:
        for name, md5 in sorted(folder_md5s(checkout / out.path).items()):
            yield md5, f"{out.path}/{name}"
    yield out.md5, f"the listing of {out.path}" if out.is_folder else out.path
