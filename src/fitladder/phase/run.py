"""The steps of one phase, from the root's lock to its receipt, in their only order.

    with hold_phase(...) as held:                 the root's lock is taken
        done = existing_receipt(held)             a valid receipt is never redone
        approved = authorise(held, go_sha256)     ladder, GO, hand-off, as read under the lock
        prompts = check_inputs(held)              before any engine starts
        with start_engine(held, prompts) as engine:   the model folder is hashed here
            built = build(held, engine, prompts)  facts, every live gate
            write_preflight(held, approved, built, prompts)   from here on the GO is used
            result = generate(held, engine, built, on_live)
        receipt = commit(held, result)

`hold_phase` reads registry and root again under the lock, in one pass; the steps take that evidence and
verify no bundle again. Knows no Prefect and no vLLM. A failure before the preflight leaves nothing; after it,
preflight-only.
"""

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from fitladder.approval.chain import adopt_chain, chain_path, load_chain
from fitladder.approval.check import Identity, check_handed_over, check_usable, find_go
from fitladder.approval.uses import check_begun, check_unused, load_uses, record_begun, record_use
from fitladder.engine.messages import GenerationResult
from fitladder.engine.parent.llm_arguments import build_request
from fitladder.engine.parent.process import EngineProcess
from fitladder.errors import EngineFailed, EnvironmentNotReady
from fitladder.files.file_record import file_record_at
from fitladder.files.lock import hold_lock
from fitladder.gates.all_gates import GateRecord, run_gates
from fitladder.phase.ask import situation
from fitladder.phase.held_phase import HeldPhase, hold_phase
from fitladder.phase.progress_line import LiveLine, live_line
from fitladder.phase.prompt_tokens import ArmPrompts, check_model, check_model_folder, load_prompts
from fitladder.records.approval import Go
from fitladder.records.engine_facts import EngineFacts, RuntimeFacts
from fitladder.records.layout import PREFLIGHT
from fitladder.records.preflight import EngineMeta, Preflight, PromptRecord
from fitladder.records.receipt import Receipt
from fitladder.records.record_ids import seeds_sha256
from fitladder.sampling.engine_protocol import Progress
from fitladder.sampling.parameters import sampling_parameters
from fitladder.sampling.seeds import stage1_seed
from fitladder.store.write_bundle import commit_bundle
from fitladder.store.write_bundle import write_preflight as write_preflight_file
from fitladder.workspace import Workspace

__all__ = [
    "Approved",
    "Built",
    "HeldPhase",
    "adopt_approvals",
    "authorise",
    "build",
    "check_inputs",
    "commit",
    "existing_receipt",
    "generate",
    "hold_phase",
    "start_engine",
    "write_preflight",
]

BUILD_DEADLINE_S = 1800.0
FREE_BYTES_A_TOKEN = 64  # ids, their copies while a bundle is written, and slack


@dataclass(frozen=True)
class Approved:
    """A GO that may be used for this phase, now."""

    go: Go
    identity: Identity


@dataclass(frozen=True)
class Built:
    """What a live engine reported and what the gates let pass."""

    facts: EngineFacts
    runtime: RuntimeFacts
    gates: tuple[GateRecord, ...]


def adopt_approvals(workspace: Workspace, experiment_id: str, approvals: str) -> None:
    """Take over the approval chain that came with a dispatched run. Raises GoRefused on a fork.

    `approvals`: the lines of the launch host's chain, or nothing where both hosts share a checkout.
    """
    if approvals:
        adopt_chain(chain_path(workspace.approvals, experiment_id), experiment_id, approvals.encode())


def existing_receipt(held: HeldPhase) -> Receipt | None:
    """The receipt of this phase where a valid one stands; such a phase is never run again."""
    return held.evidence.receipt(held.key)


def authorise(held: HeldPhase, go_sha256: str) -> Approved:
    """Check ladder, GO, hand-off and binding right before the engine.

    Approvals and uses are read now; registry, binding and root are those that were read under the lock.
    Raises LadderRefused, BindingChanged, GoRefused.
    """
    entries = load_chain(chain_path(held.workspace.approvals, held.key.experiment_id), held.key.experiment_id)
    go, entry = find_go(entries, go_sha256)
    held.evidence.check_open(held.key, resume=go.resumes_sha256 is not None)
    here = situation(held.workspace, held.evidence, held.key, datetime.now(UTC))
    identity = check_usable(go, entry.signature, here)
    uses = load_uses(held.uses, held.key.experiment_id)
    check_unused(uses, go.sha256, held.held_root.root_id)
    check_begun(uses, {entry.files[PREFLIGHT].sha256 for entry in held.verified.catalog.entries})
    check_handed_over(entries, go, held.work_pool, here)
    return Approved(go, identity)


def check_inputs(held: HeldPhase) -> ArmPrompts:
    """Check frozen prompts, model folder and disk space; nothing is built yet.

    The folder need only be there: `start_engine` hashes its bytes, once, after any wait for the device.
    Raises InputRefused, EnvironmentNotReady.
    """
    experiment = held.evidence.experiment
    rung = experiment.rung(held.key.thinking_budget_tokens)
    prompts = load_prompts(held.workspace, experiment, held.key.phase)
    check_model_folder(held.workspace, experiment)
    rows = experiment.records_per_arm * experiment.k(held.key.phase)
    need = rows * rung.thinking_budget_tokens * FREE_BYTES_A_TOKEN + (64 << 20)
    for folder in (held.evidence.root, held.scratch):
        free = shutil.disk_usage(folder).free
        if free < need:
            raise EnvironmentNotReady(
                f"no disk space below {folder}",
                got=f"{free >> 20} MiB free",
                need=f"{need >> 20} MiB",
                do="free some, then launch again",
            )
    return prompts


@contextlib.contextmanager
def start_engine(held: HeldPhase, prompts: ArmPrompts) -> Iterator[EngineProcess]:
    """An engine process that does not outlive the `with` block, whatever ends it.

    Raises InputRefused where the model folder's bytes are not the registered ones, RootBusy, naming the
    holder, where another engine of this host is on the device.
    """
    experiment = held.evidence.experiment
    request = build_request(
        experiment,
        experiment.rung(held.key.thinking_budget_tokens),
        held.key.phase,
        prompts=prompts.token_ids,
        model=check_model(held.workspace, experiment),
        samples_path=held.scratch / "samples.parquet",
        engine_lock_path=held.workspace.engine_lockfile(experiment.engine),
    )
    run_id = held.held_root.lock.holder.flow_run_id
    with (
        hold_lock(held.workspace.device_lock, f"engine of {held.key}", flow_run_id=run_id),
        EngineProcess.start(
            request,
            command=held.workspace.engine_command(),
            log_path=held.scratch / "engine.log",
            inherited=held.workspace.environment,
        ) as engine,
    ):
        yield engine


def build(held: HeldPhase, engine: EngineProcess, prompts: ArmPrompts) -> Built:
    """Wait for the engine's facts and run every live gate on them. Raises EngineFailed, GateRefused."""
    experiment = held.evidence.experiment
    facts, reported = engine.wait_facts(BUILD_DEADLINE_S)
    environment = reported.environment | held.workspace.engine_override()
    runtime = reported.model_copy(update={"environment": environment})
    gates = run_gates(
        experiment,
        experiment.rung(held.key.thinking_budget_tokens),
        held.key.phase,
        facts,
        prompts.rendered,
        frozen=prompts.frozen,
    )
    held.evidence.check_same_runtime(held.key, facts, runtime)
    return Built(facts, runtime, gates)


def write_preflight(held: HeldPhase, approved: Approved, built: Built, prompts: ArmPrompts) -> Preflight:
    """Write the preflight, which uses the GO up. Checks the GO once more: building took time.

    Raises what `authorise` raises, and BundleError where the catalog moved under the lock.
    """
    evidence, key = held.evidence, held.key
    experiment = evidence.experiment
    authorise(held, approved.go.sha256)
    k = experiment.k(key.phase)
    run_seed = experiment.sampling.run_seed
    preflight = Preflight(
        schema_version=1,
        key=key,
        sequence=held.verified.catalog.next_sequence,
        root_id=held.held_root.root_id,
        binding=evidence.binding,
        go_sha256=approved.go.sha256,
        go_identity=approved.identity,
        resumes=evidence.interrupted_attempts(key),
        model=experiment.model,
        sampling=experiment.sampling,
        sampling_sent=sampling_parameters(experiment.sampling, experiment.thinking),
        prompts=tuple(
            PromptRecord(
                record_id=prompt.record_id,
                rendered_sha256=prompt.rendered_sha256,
                prompt_tokens=prompt.prompt_tokens,
            )
            for prompt in prompts.rendered
        ),
        k=k,
        seeds_sha256=seeds_sha256(
            (prompt.record_id, index, stage1_seed(run_seed, prompt.record_id) + index)
            for prompt in prompts.rendered
            for index in range(k)
        ),
        engine=built.facts,
        runtime=built.runtime,
        gates=tuple(gate.model_dump(mode="json") for gate in built.gates),
        noted_at_s=int(time.time()),
    )
    record_use(held.uses, key, go_sha256=preflight.go_sha256, root_id=preflight.root_id)
    catalog = write_preflight_file(held.held_root, preflight, held.verified)
    begun = catalog.entries[-1].files[PREFLIGHT].sha256
    record_begun(
        held.uses, key, go_sha256=preflight.go_sha256, root_id=preflight.root_id, preflight_sha256=begun
    )
    return preflight


def generate(
    held: HeldPhase, engine: EngineProcess, built: Built, on_live: Callable[[LiveLine], None]
) -> GenerationResult:
    """Let the engine generate, and watch. `on_live` gets a line for people at every progress report.

    Raises EngineFailed; then the phase stays preflight-only.
    """
    experiment = held.evidence.experiment
    rung = experiment.rung(held.key.thinking_budget_tokens)
    limit = experiment.records_per_arm * experiment.k(held.key.phase) * rung.thinking_budget_tokens
    stage1_tokens = 0

    def show(stage: int, progress: Progress) -> None:
        nonlocal stage1_tokens
        if stage == 1:
            stage1_tokens = progress.sampled_tokens
        on_live(
            live_line(stage, progress, built.facts, stage1_limit_tokens=limit, stage1_tokens=stage1_tokens)
        )

    return engine.generate(show, float(rung.deadline_s))


def commit(held: HeldPhase, result: GenerationResult) -> Receipt:
    """Samples, engine metadata, receipt, catalog; the receipt last. Raises BundleError, EngineFailed."""
    log = file_record_at(held.scratch / "engine.log", error=EngineFailed)
    engine = EngineMeta(
        schema_version=1,
        key=held.key,
        log_sha256=log.sha256,
        log_bytes=log.bytes,
        **dict(result.metadata),
    )
    told, now_s = result.samples_sha256, int(time.time())
    bundle = commit_bundle(
        held.held_root, held.key, result.samples_path, engine, samples_sha256=told, noted_at_s=now_s
    )
    return bundle.receipt
