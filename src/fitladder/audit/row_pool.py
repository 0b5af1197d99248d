"""Every row of several files audited, in order, in this process or in several: the same samples either way.

Files are read and decompressed here, batch by batch; parsing of JSON and every search run where the batch is
sent to. At most BATCHES_EACH batches a worker wait or run at a time, so memory does not grow with the input.
"""

import multiprocessing
import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace

from fitladder.audit.row_batches import RowBatch, read_batches
from fitladder.audit.row_ends import EndIds
from fitladder.audit.row_sources import Source
from fitladder.audit.row_values import Columns
from fitladder.audit.token_files import ForeignSample, RowNames, audit_row
from fitladder.errors import EnvironmentNotReady, InputRefused
from fitladder.records.settings import LoopRule

__all__ = ["RowAudit", "audit_sources", "usable_processes"]

BATCHES_EACH = 2
WORTH_WORKERS_BYTES = 16 << 20  # starting workers costs about a second


@dataclass(frozen=True)
class RowAudit:
    """What is read and judged, and how: plain data that every worker gets."""

    columns: Columns
    rule: LoopRule
    ends: EndIds


@dataclass(frozen=True)
class _Audited:
    """A batch after its audit, or the refusal of it as plain text."""

    samples: list[ForeignSample]
    places: list[tuple[str | int, str]]
    named: bool
    refusal: tuple[str, object, object, str | None] | None = None


def usable_processes(sources: Sequence[Source]) -> int:
    """Workers worth starting: the processors of this process, or 1 for little input."""
    if sum(source.size_bytes() for source in sources) < WORTH_WORKERS_BYTES:
        return 1
    return len(os.sched_getaffinity(0))


def audit_sources(
    sources: Sequence[Source], audit: RowAudit, processes: int
) -> Iterator[list[ForeignSample]]:
    """Samples of every row, a batch at a time, in the order of files and rows.

    With more than one source, a row's name is `<label>:<id>`. Raises InputRefused at the first file, line or
    row that is not whole; EnvironmentNotReady where a worker was killed.
    """
    batches = _batches(sources, audit.columns)
    results = _in_pool(batches, audit, processes) if processes > 1 else _here(batches, audit)
    at, names = 0, RowNames(sources[0].label, audit.columns)
    for place, result in results:
        if place != at:
            names.check_any()
            at, names = place, RowNames(sources[place].label, audit.columns)
        if result.refusal is not None:
            what, got, need, do = result.refusal
            raise InputRefused(what, got=got, need=need, do=do)
        names.check(result.places, named=result.named)
        if len(sources) > 1:
            yield [replace(sample, id=f"{sources[place].label}:{sample.id}") for sample in result.samples]
        else:
            yield result.samples
    names.check_any()


def _batches(sources: Sequence[Source], columns: Columns) -> Iterator[tuple[int, RowBatch]]:
    for place, source in enumerate(sources):
        for batch in read_batches(source, columns):
            yield place, batch


def _here(batches: Iterator[tuple[int, RowBatch]], audit: RowAudit) -> Iterator[tuple[int, _Audited]]:
    for place, batch in batches:
        yield place, _audit_batch(batch, audit)


def _in_pool(
    batches: Iterator[tuple[int, RowBatch]], audit: RowAudit, processes: int
) -> Iterator[tuple[int, _Audited]]:
    """Results in the order of the batches. A batch that cannot be read raises after those before it."""
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"))
    waiting: deque[tuple[int, Future[_Audited]]] = deque()
    refused: InputRefused | None = None
    try:
        while True:
            while refused is None and len(waiting) < BATCHES_EACH * processes:
                try:
                    place, batch = next(batches)
                except StopIteration:
                    break
                except InputRefused as error:
                    refused = error
                    break
                waiting.append((place, pool.submit(_audit_batch, batch, audit)))
            if not waiting:
                break
            place, future = waiting.popleft()
            yield place, future.result()
        if refused is not None:
            raise refused
    except BrokenProcessPool as error:
        raise EnvironmentNotReady(
            "a worker of the audit ended early", need="memory for each", do="use --processes 1"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _audit_batch(batch: RowBatch, audit: RowAudit) -> _Audited:
    try:
        rows, named = batch.rows(audit.columns)
    except InputRefused as error:
        return _Audited([], [], named=False, refusal=(error.what, error.got, error.need, error.do))
    samples = [audit_row(row, audit.rule, audit.ends) for row in rows]
    return _Audited(samples, [(row.id, row.where) for row in rows], named)
