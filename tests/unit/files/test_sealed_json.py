"""Sealed records: what may be written, and which bytes are read back as one."""

import json
from typing import Any

import pytest
from support import bundles as make

from fitladder.canonical import canonical_bytes, canonical_sha256
from fitladder.errors import BundleError, BundleTampered
from fitladder.files.escaped_text import escape_text, unescape_text
from fitladder.files.sealed_json import SEAL, parse_sealed, render_sealed
from fitladder.records.preflight import EngineMeta

META = make.engine_meta(make.key(), warnings=("late compilation",))


def resealed(plain: dict[str, Any]) -> bytes:
    body = {name: value for name, value in plain.items() if name != SEAL}
    return canonical_bytes({**body, SEAL: canonical_sha256(body)}) + b"\n"


def test_a_record_comes_back_equal_from_canonical_bytes() -> None:
    data = render_sealed(META)
    assert parse_sealed(EngineMeta, data, where="x") == META
    assert data == resealed(json.loads(data))
    assert data.endswith(b"}\n")


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.replace(b'"log_bytes":3', b'"log_bytes":4'),
        lambda d: d.replace(b"\n", b"\r\n"),
        lambda d: d[:-1],
        lambda d: d + b"\n",
        lambda d: d.replace(b",", b", ", 1),
        lambda d: d.replace(b'{"', b'{ "', 1),
        lambda d: d.replace(SEAL.encode(), b"seal"),
        lambda d: b"\xef\xbb\xbf" + d,
        lambda d: b"[]\n",
        lambda d: b"",
    ],
)
def test_any_other_bytes_are_refused(change: Any) -> None:
    with pytest.raises(BundleTampered, match=r"engine\.json"):
        parse_sealed(EngineMeta, change(render_sealed(META)), where="engine.json")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"log_bytes":3', '"log_bytes":NaN'),
        ('"log_bytes":3', '"log_bytes":-Infinity'),
        ('"log_bytes":3', '"log_bytes":1e400'),
        ('"log_bytes":3', '"log_bytes":true'),
        ('"log_bytes":3', '"log_bytes":5.0'),
        ('"log_bytes":3', '"log_bytes":' + "9" * 4301),
        ('"log_bytes":3', '"log_bytes":-1'),
        ('"log_bytes":3', '"log_bytes":"3"'),
        ('"log_bytes":3', '"log_bytes":3,"further":4'),
        ('"preemptions":0', '"preemptions":true'),
        ('"preemptions":0', '"preemptions":0.0'),
        ('"phase":"probe"', '"phase":"Probe"'),
    ],
)
def test_odd_numbers_are_refused_even_under_a_fitting_seal(old: str, new: str) -> None:
    text = render_sealed(META).decode().replace(old, new)
    assert new in text
    try:
        data = resealed(json.loads(text))
    except Exception:  # not even a seal can be made for it
        data = text.encode()
    for candidate in (text.encode(), data):
        with pytest.raises(BundleTampered, match=r"engine\.json"):
            parse_sealed(EngineMeta, candidate, where="engine.json")


@pytest.mark.parametrize("twice", ['"log_bytes":4,"log_bytes":3', '"rate":0.01,"rate":0.9,"log_bytes":3'])
def test_duplicate_keys_are_refused_although_a_loose_reader_sees_a_fitting_seal(twice: str) -> None:
    data = render_sealed(META).replace(b'"log_bytes":3', twice.encode())
    with pytest.raises(BundleTampered, match="twice in one object"):
        parse_sealed(EngineMeta, data, where="engine.json")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), object(), 10**30, "\ud835"])
def test_the_writer_never_emits_what_no_reader_takes(value: Any) -> None:
    of = make.experiment()
    bad = make.preflight(
        of, make.key(), root_id=make.sha("r"), sequence=0, sampling_sent={"temperature": value}
    )
    with pytest.raises(BundleError, match=r"Preflight"):
        render_sealed(bad)


def test_warnings_with_surrogates_are_kept() -> None:
    text = "ok \ud835 end \\u0041 \ufffd \x00 C:\\x"
    back = parse_sealed(
        EngineMeta, render_sealed(make.engine_meta(make.key(), warnings=(text, "plain"))), where="x"
    )
    assert [unescape_text(one) for one in back.warnings] == [text, "plain"]
    assert "\ufffd" in back.warnings[0]


@pytest.mark.parametrize(
    "text", ["", "plain", "\\", "\\\\u0000", "\ud800\udfff", "ü\u2028\U0001f600", "\x00"]
)
def test_escaping_is_reversible_and_encodable(text: str) -> None:
    assert unescape_text(escape_text(text)) == text
    assert "\x00" not in escape_text(text).encode().decode()
