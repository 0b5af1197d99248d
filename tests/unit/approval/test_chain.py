"""The approval chain: appended once, read strictly, never edited unseen, never forked."""

import json
import multiprocessing
from pathlib import Path

import pytest

from fitladder.approval.chain import adopt_chain, append, chain_path, load_chain
from fitladder.canonical import canonical_bytes
from fitladder.errors import GoRefused
from fitladder.records.approval import CHECKLIST, Ask, Go
from fitladder.records.approval_entry import Draft, Entry

EXPERIMENT = "some_experiment"


def ask(ask_id: str) -> Draft:
    statement = Ask(
        schema_version=1,
        ask_id=ask_id,
        experiment_id=EXPERIMENT,
        binding_sha256="a" * 64,
        thinking_budget_tokens=512,
        phase="probe",
        requester="rosa",
        asked="2026-01-02T03:00:00Z",
        deadline="2026-01-02T04:00:00Z",
    )
    return Draft(
        kind="asked",
        recorded="2026-01-02T03:00:00Z",
        statement=statement.model_dump(mode="json"),
        signature=None,
        identity="self-asserted",
    )


def decision(verdict: str, kind: str) -> Draft:
    statement = Go(
        **{k: v for k, v in ask("ask").statement.items() if k not in {"asked", "deadline"}},
        reviewer="jan",
        verdict=verdict,
        checklist=dict.fromkeys(CHECKLIST, True),
        notes="fine 🙂",
        not_before="2026-01-02T03:00:00Z",
        expires="2026-01-02T04:00:00Z",
        allows_window=False,
    )
    return ask("ask").model_copy(update={"kind": kind, "statement": statement.model_dump(mode="json")})


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    path = chain_path(tmp_path, EXPERIMENT)
    for ask_id in ("one", "two", "three"):
        append(path, EXPERIMENT, lambda _, ask_id=ask_id: ask(ask_id))
    return path


def test_entries_come_back_in_order_and_linked(chain: Path) -> None:
    entries = load_chain(chain, EXPERIMENT)
    assert [entry.statement["ask_id"] for entry in entries] == ["one", "two", "three"]
    assert [entry.sequence for entry in entries] == [1, 2, 3]
    assert entries[1].previous_sha256 == entries[0].sha256


def test_no_file_is_no_approval(tmp_path: Path) -> None:
    assert load_chain(tmp_path / "none.jsonl", EXPERIMENT) == ()


def test_every_changed_byte_is_noticed(chain: Path) -> None:
    data = chain.read_bytes()
    last_line = data.rindex(b"\n", 0, -1) + 1
    for position in range(
        0, last_line, 7
    ):  # nothing binds the last line yet; the preflight that uses it will
        torn = bytearray(data)
        torn[position] ^= 1
        chain.write_bytes(bytes(torn))
        with pytest.raises(GoRefused, match=r"line [1-3]"):
            load_chain(chain, EXPERIMENT)


@pytest.mark.parametrize(
    ("mangle", "line"),
    [
        (lambda lines: lines[1:], 1),
        (lambda lines: [lines[0], lines[2]], 2),
        (lambda lines: [lines[1], lines[0], lines[2]], 1),
        (lambda lines: [*lines, lines[2]], 4),
        (lambda lines: [*lines, b""], 4),
        (lambda lines: [lines[0].replace(b",", b", ", 1), *lines[1:]], 1),
    ],
)
def test_dropped_swapped_repeated_or_reformatted_lines_are_refused(chain: Path, mangle, line: int) -> None:
    lines = chain.read_bytes().splitlines()
    chain.write_bytes(b"".join(part + b"\n" for part in mangle(lines)))
    with pytest.raises(GoRefused, match=f"line {line}"):
        load_chain(chain, EXPERIMENT)


@pytest.mark.parametrize("cut", [1, 2, 40])
def test_torn_last_line_is_refused_and_never_appended_to(chain: Path, cut: int) -> None:
    torn = chain.read_bytes()[:-cut]
    chain.write_bytes(torn)
    with pytest.raises(GoRefused, match="line 3"):
        append(chain, EXPERIMENT, lambda _: ask("four"))
    assert chain.read_bytes() == torn


def test_another_experiments_chain_is_refused(chain: Path) -> None:
    with pytest.raises(GoRefused, match="experiment"):
        load_chain(chain, "other_experiment")


def test_a_verdict_recorded_as_its_opposite_is_refused(chain: Path) -> None:
    with pytest.raises(GoRefused, match="recorded as go"):
        append(chain, EXPERIMENT, lambda _: decision("NO-GO", "go"))
    assert len(load_chain(chain, EXPERIMENT)) == 3
    append(chain, EXPERIMENT, lambda _: decision("GO", "go"))
    assert load_chain(chain, EXPERIMENT)[-1].parsed().notes == "fine 🙂"


@pytest.mark.parametrize("value", ["NaN", "true", "1.0", "99999999999999999999"])
def test_odd_numbers_in_a_line_are_refused(chain: Path, value: str) -> None:
    text = chain.read_text().replace('"sequence":1', f'"sequence":{value}')
    chain.write_text(text)
    with pytest.raises(GoRefused, match="line 1"):
        load_chain(chain, EXPERIMENT)


def test_an_entry_that_stands_already_is_not_written_again(chain: Path) -> None:
    before = chain.read_bytes()

    def once(entries: tuple[Entry, ...]) -> Draft | None:
        return None if any(entry.statement["ask_id"] == "two" for entry in entries) else ask("two")

    append(chain, EXPERIMENT, once)
    assert chain.read_bytes() == before


def _append_many(path: str, name: str) -> None:
    for index in range(10):
        append(Path(path), EXPERIMENT, lambda _, index=index: ask(f"{name}-{index}"))


def test_two_processes_append_without_losing_a_line(tmp_path: Path) -> None:
    path = chain_path(tmp_path, EXPERIMENT)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_append_many, args=(str(path), name)) for name in ("a", "b")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert len({entry.statement["ask_id"] for entry in load_chain(path, EXPERIMENT)}) == 20


def test_a_link_in_place_of_the_chain_is_refused(tmp_path: Path, chain: Path) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to(chain)
    with pytest.raises(GoRefused, match="cannot be opened"):
        append(link, EXPERIMENT, lambda _: ask("four"))


def test_a_gpu_host_adopts_what_continues_its_chain_and_refuses_a_fork(tmp_path: Path, chain: Path) -> None:
    whole = chain.read_bytes()
    host = tmp_path / "host" / chain.name
    first = whole.splitlines(keepends=True)[0]
    assert len(adopt_chain(host, EXPERIMENT, first)) == 1
    assert len(adopt_chain(host, EXPERIMENT, whole)) == 3
    assert len(adopt_chain(host, EXPERIMENT, first)) == 3  # an older copy changes nothing
    assert host.read_bytes() == whole
    other = tmp_path / "other" / chain.name
    adopt_chain(other, EXPERIMENT, first)
    append(other, EXPERIMENT, lambda _: ask("fork"))
    with pytest.raises(GoRefused, match="fork at line 2"):
        adopt_chain(host, EXPERIMENT, other.read_bytes())
    assert host.read_bytes() == whole


def test_lines_are_canonical_json(chain: Path) -> None:
    for line in chain.read_bytes().splitlines():
        assert canonical_bytes(json.loads(line)) == line
