"""A backup as docs/how-to/operate-nats.md makes it: a copy of the store of a server that is stopped."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyoco_runtime.testing.nats_server import nats_server
from tests.integration.gateway_client import gateway


def test_a_copy_of_the_store_brings_runs_and_jobs_back(tmp_path: Path) -> None:
    """What was written after the copy is gone; what was there before is listed, and its job still waits."""
    with nats_server(tmp_path / "store") as server:
        with gateway(tmp_path, server.url) as started:
            kept = started.submit("hello")
        server.stop()
        shutil.copytree(tmp_path / "store", tmp_path / "backup")
        server.start()
        with gateway(tmp_path, server.url) as started:
            lost = started.submit("hello")
    shutil.rmtree(tmp_path / "store")
    shutil.copytree(tmp_path / "backup", tmp_path / "store")
    with nats_server(tmp_path / "store") as server, gateway(tmp_path, server.url) as started:
        assert started.listed() == {kept: "PENDING"}
        assert started.http.get(f"/runs/{lost}").status_code == 404
        assert '\npyoco_queue_waiting{tag="default"} 1.0\n' in started.http.get("/metrics").text
