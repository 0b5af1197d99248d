"""A data folder with true bundles, audits and words of one small experiment, for pages to be made from."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from support import bundles as make
from support.checkout import ROOT, carry

from fitladder.approval.chain import chain_path
from fitladder.gates.cuda_graphs import check_cuda_graphs
from fitladder.gates.kv_fit import check_kv_fit
from fitladder.records.experiment import Experiment
from fitladder.records.registry import Registry
from fitladder.registry.binding import bind
from fitladder.registry.load import load_registry
from fitladder.stages.audit import make_audit
from fitladder.store.held_root import hold_root

WORDS: dict[str, Any] = {
    "kind": "rehearsal",
    "title": "A small experiment",
    "program_primary": "Does a page hold?",
    "program_secondary": "None.",
    "near_duplicate": "none",
    "near_duplicate_difference": "Nothing is like it.",
    "idea": ["One idea."],
    "question": ["Do {{ rung(64).budget }} tokens do?"],
    "found": [
        "{{ rung(64).loops }} of {{ rung(64).samples }} looped.",
        "{{ rung(96).loops }} of {{ rung(96).samples }} looped at the other rung.",
    ],
    "matters": ["It does."],
    "may_not_conclude": ["Anything about a model."],
}


def registry_of(*experiments: Experiment) -> Registry:
    return Registry(experiments={one.experiment_id: one for one in experiments}, reviewers=(), gpu_owners={})


def history_data(folder: Path) -> tuple[Path, Registry]:
    """The registered experiments of this checkout: history and words only, no bundle."""
    carry(folder, "data/history", "data/narratives")
    return folder / "data", load_registry(ROOT / "params.yaml")


def small_data(
    folder: Path,
    *,
    done: Sequence[tuple[int, str]] = ((64, "probe"),),
    begun: Sequence[tuple[int, str]] = (),
    words: dict[str, Any] | None = None,
    audited: bool = True,
    experiment: Experiment | None = None,
    **changed: Any,
) -> tuple[Path, Registry]:
    """The small experiment with these phases complete and these only begun. `changed`: of each preflight."""
    of = experiment or make.experiment()
    data, registry = folder / "data", registry_of(of)
    (data / "narratives").mkdir(parents=True)
    (data / "bundles").mkdir()
    text = yaml.safe_dump(WORDS | (words or {}), allow_unicode=True)
    (data / "narratives" / f"{of.experiment_id}.yaml").write_text(text, encoding="utf-8")
    chain_path(data / "approvals", of.experiment_id).parent.mkdir()
    chain_path(data / "approvals", of.experiment_id).touch()  # as a registration begins it
    if done or begun:
        root = folder / "root"
        with hold_root(root, of.experiment_id, "test") as held:
            for budget, phase in (*done, *begun):
                key = make.key(budget, phase, of.experiment_id)
                rung = of.rung(budget)
                facts = make.facts(rung.max_num_seqs)
                gates = (
                    check_kv_fit(of, rung, key.phase, facts, 21).model_dump(mode="json"),
                    check_cuda_graphs(of, rung, facts).model_dump(mode="json"),
                )
                preflight = make.begin(held, of, key, binding=bind(of), gates=gates, **changed)
                if (budget, phase) in done:
                    make.complete(held, preflight, seed=budget)
        copy = data / "bundles" / of.experiment_id
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".*"))
        if audited:
            make_audit(registry, of.experiment_id, data)
    return data, registry
