"""Workers announce what they can run, and submitting says when nobody can."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

import pyoco_runtime
from pyoco_runtime.testing.nats_server import RunningServer, nats_server
from tests.integration.gateway_client import gateway, good, until
from tests.integration.worker_client import worker, worker_client

FLOWS = """
import os
from pathlib import Path
from pyoco.core.models import Flow
Path("imported").open("a").write(f"{os.getpid()}\\n")
FLOWS = {"hello": Flow(name="hello"), "other": Flow(name="other")}
def resolve(name):
    return FLOWS[name]
"""
YAML = "flow: {graph: nobody_has_it}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with nats_server(tmp_path_factory.mktemp("announced") / "store") as running:
        yield running


def test_a_worker_announces_its_flows_and_submitting_knows_them(server: RunningServer, tmp_path: Path) -> None:
    """From a process of their own: the worker itself never imports the user's code."""
    (tmp_path / "flows.py").write_text(FLOWS)
    with (
        worker_client(server.url) as client,
        worker(tmp_path, server.url, "--flow-resolver", "flows.py:resolve", name="w-flows") as started,
        gateway(tmp_path, server.url) as office,
    ):
        record = client.wait_worker("w-flows", lambda record: record.flows is not None)
        assert (record.flows, record.tasks) == (("hello", "other"), ())
        pids = {int(line) for line in (tmp_path / "imported").read_text().split()}
        assert pids.isdisjoint({os.getpid(), started.process.pid})

        def submitted(flow: str, tag: str = "default") -> list[str]:
            found: list[str] = good(office.http.post("/runs", json={"flow_name": flow, "tag": tag})).get("warnings", [])
            return found

        until(lambda: submitted("nobody"), lambda warnings: "they run hello, other" in "".join(warnings))
        assert submitted("hello") == []
        assert "no live worker has the tag" in submitted("hello", "nobodys-tag")[0]
        files = {"workflow": ("flow.yaml", YAML)}
        answer = good(office.http.post("/runs/yaml", files=files, data={"flow_name": "x"}))
        assert 'has the task "nobody_has_it"' in answer["warnings"][0]
        shown = {each["worker_id"]: each for each in good(office.http.get("/workers"))}
        assert shown["w-flows"]["flows"] == ["hello", "other"]


async def _embedded(url: str) -> None:
    def resolve(name: str) -> object:
        raise KeyError(name)

    async with pyoco_runtime.worker(
        flow_resolver=resolve, flows=["mine"], nats_url=url, tags=["embedded"], worker_id="w-embedded"
    ) as embedded:
        await embedded.wait_ready()


def test_an_embedded_worker_announces_what_its_program_names(server: RunningServer) -> None:
    """And the record that it leaves behind still says so."""
    with worker_client(server.url) as client:
        anyio.run(_embedded, server.url)
        assert client.worker_record("w-embedded").flows == ("mine",)


def test_a_synced_wheel_changes_what_is_announced(server: RunningServer, tmp_path: Path) -> None:
    """The tasks of its plug-in are there with it, and gone with the next version that lacks them."""
    with worker_client(server.url) as client:
        client.upload_wheel(*_wheel("1.0", "plugged"), tags="wheels")
        settings = {"PYOCO_WHEEL_SYNC_ENABLED": "1", "PYOCO_WHEEL_SYNC_DIR": str(tmp_path / "wheels")}
        with worker(tmp_path, server.url, "--tags", "wheels", name="w-wheels", **settings):
            client.wait_worker("w-wheels", lambda record: record.tasks == ("demo/plugged",))
            client.upload_wheel(*_wheel("2.0", "other"), tags="wheels")
            client.wait_worker("w-wheels", lambda record: record.tasks == ("demo/other",))


def _wheel(version: str, task: str) -> tuple[str, bytes]:
    """The name and the bytes of a wheel with a plug-in that offers one task."""
    name, info = f"announced-{version}-py3-none-any.whl", f"announced-{version}.dist-info"
    files = {
        "announced.py": f"def register(registry): registry.register_callable(lambda: 1, name='demo/{task}')\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: announced\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[pyoco.tasks]\ndemo = announced:register\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{each},,\n" for each in [*files, f"{info}/RECORD"])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return name, packed.getvalue()
