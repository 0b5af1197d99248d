"""An S3 remote on loopback: pushed to, pulled from, and refused once an object was exchanged there.

Needs `dvc-s3`, `moto` with `flask` and `flask-cors`; skips with that reason where they are not installed.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import dvc_checkout as make

from fitladder.dvc_api.check import check_lineage
from fitladder.dvc_api.publish import pull, push
from fitladder.dvc_files.md5 import raw_md5
from fitladder.errors import LineageError

for needed in ("dvc_s3", "moto", "flask", "flask_cors"):
    pytest.importorskip(needed, reason=f"an S3 server on loopback needs {needed}")
boto3: Any = pytest.importorskip("boto3")

ID = make.ID
SAMPLES = f"data/bundles/{ID}/think_384/probe/samples.parquet"
BUCKET = "lineage"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [sys.executable, "-c", "from moto.server import main; main()", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ)
    )
    try:
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        else:
            pytest.fail("the S3 server did not come up")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(20)


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, value in (
        ("ACCESS_KEY_ID", "test"),
        ("SECRET_ACCESS_KEY", "test"),
        ("DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(f"AWS_{name}", value)
    made = boto3.resource("s3", endpoint_url=endpoint).Bucket(BUCKET)
    made.create()
    return made


def _on_s3(checkout: Path, endpoint: str) -> Path:
    return make.point_remote(checkout, url=f"s3://{BUCKET}/dvc", endpointurl=endpoint)


def test_a_bundle_goes_over_s3_and_a_tampered_object_is_refused(
    checkout: Path, tmp_path: Path, endpoint: str, bucket: Any
) -> None:
    first = _on_s3(checkout, endpoint)
    assert push(make.dvc(first), ID) == "here"
    clone = tmp_path / "clone"
    make.git(tmp_path, "clone", "-q", str(first), str(clone))
    _on_s3(clone, endpoint)
    md5 = raw_md5(first / SAMPLES)
    assert pull(make.dvc(clone), ID) == check_lineage(first, ID)

    again = tmp_path / "again"
    make.git(tmp_path, "clone", "-q", str(first), str(again))
    _on_s3(again, endpoint)
    key = bucket.Object(f"dvc/files/md5/{md5[:2]}/{md5[2:]}")
    data = key.get()["Body"].read()
    key.put(Body=data[:-5] + bytes([data[-5] ^ 1]) + data[-4:])
    with pytest.raises(LineageError, match=r"dvc pull .* failed: got "):
        pull(make.dvc(again), ID)
    assert not (again / SAMPLES).exists()
    key.delete()
    with pytest.raises(LineageError, match=r"dvc pull .* failed: got "):
        pull(make.dvc(again), ID)
