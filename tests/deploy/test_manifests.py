"""deploy/ is right as far as that shows without a container engine: schemas, settings, ports, probes and times."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from pyoco_runtime.layout import ActorLayout, SupervisorLayout
from pyoco_runtime.settings import SETTINGS, load
from pyoco_runtime.testing.nats_server import nats_server
from pyoco_runtime.tree import KNOWN, members, outline
from tests.deploy.manifests import (
    AUTOSCALED,
    BASE,
    DEPLOY,
    ROOT,
    Process,
    compose,
    documents,
    image_environment,
    processes,
)
from tests.integration.gateway_client import gateway
from tests.integration.programs import environment, run

KUBERNETES = "1.37"
PROCESSES = list(processes())
OWN = {
    "ScaledObject": "scaledobject.json",
    "ServiceMonitor": "servicemonitor.json",
    "Kustomization": "kustomization.json",
}
"""Kinds that Kubernetes itself does not have: our schemas know the fields that we use, and no others."""

every_process = pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process.origin)


def schema(name: str) -> dict[str, Any]:
    """A schema of our own."""
    found: dict[str, Any] = json.loads((Path(__file__).parent / "schemas" / name).read_text())
    return found


def test_there_is_a_gateway_and_a_worker_in_both_places() -> None:
    """The other tests here look at four processes."""
    assert [process.origin for process in PROCESSES] == [
        "compose gateway",
        "compose worker",
        "kubernetes pyoco-gateway",
        "kubernetes pyoco-worker",
    ]


# -- schemas ----------------------------------------------------------------------------------------------------------


def test_the_compose_file_follows_the_specification() -> None:
    """As the schema of the compose specification has it, with its variables filled in."""
    text = (resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json").read_text()
    jsonschema.validate(compose(), json.loads(text))


@pytest.mark.parametrize(
    "path", sorted((DEPLOY / "k8s").glob("*/*.yaml")), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_a_manifest_follows_its_schema(path: Path) -> None:
    """Strictly: an unknown field is an error."""
    for document in documents(path):
        if own := OWN.get(document["kind"]):
            jsonschema.validate(document, schema(own))
        else:
            kubernetes_validate.validate(document, KUBERNETES, strict=True)


def test_the_values_of_the_nats_chart_have_known_keys() -> None:
    """Those of the chart from 1.0 on; helm itself ignores a key that it does not know."""
    jsonschema.validate(yaml.safe_load((DEPLOY / "k8s" / "nats-values.yaml").read_text()), schema("nats-values.json"))


@pytest.mark.parametrize("folder", [BASE, AUTOSCALED], ids=lambda folder: folder.name)
def test_kustomize_builds_it(folder: Path) -> None:
    """What it puts together follows the schemas too."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("there is no kubectl on this machine")
    done = subprocess.run([kubectl, "kustomize", str(folder)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    built = list(yaml.safe_load_all(done.stdout))
    for document in built:
        if document["kind"] not in OWN:
            kubernetes_validate.validate(document, KUBERNETES, strict=True)
    worker = next(each for each in built if each["metadata"]["name"] == "pyoco-worker" and each["kind"] == "Deployment")
    assert ("replicas" in worker["spec"]) == (folder == BASE)  # KEDA's business otherwise
    assert worker["spec"]["template"]["spec"]["containers"][0]["image"] == f"pyoco-runtime:{version()}"


def version() -> str:
    """Of the package."""
    found = re.search(r'(?m)^version = "(.+)"$', (ROOT / "pyproject.toml").read_text())
    assert found is not None
    return found[1]


def test_the_compose_file_and_the_manifests_name_this_version() -> None:
    """An image of another version would be another program."""
    assert compose()["services"]["gateway"]["image"] == f"pyoco-runtime:{version()}"
    (kustomization,) = documents(BASE / "kustomization.yaml")
    assert kustomization["images"] == [{"name": "pyoco-runtime", "newTag": version()}]


# -- settings ---------------------------------------------------------------------------------------------------------


@every_process
def test_every_variable_is_a_setting(process: Process) -> None:
    """A name that is not in the table would be ignored."""
    assert {name for name in process.environment if name.startswith("PYOCO_")} <= {each.env for each in SETTINGS}


@every_process
def test_the_program_accepts_the_settings(process: Process, tmp_path: Path) -> None:
    """`pyoco-runtime --check` with exactly this environment."""
    done = run("--check", cwd=tmp_path, env=environment(**process.environment))
    assert done.returncode == 0, done.stderr
    assert "The configuration is valid" in done.stdout


@every_process
def test_probes_ask_the_port_that_is_served(process: Process) -> None:
    """The gateway's own port, and the worker's probe port; both listen on every address."""
    name, host = (
        ("PYOCO_WORKER_PROBE_PORT", "PYOCO_WORKER_PROBE_HOST")
        if process.role == "worker"
        else ("PYOCO_PORT", "PYOCO_HOST")
    )
    served = int(process.environment[name])
    assert process.probes
    assert set(process.probes.values()) | set(process.ports.values()) == {served}
    assert set(process.probes) <= {"/health", "/ready"}
    assert "/ready" in process.probes
    assert process.environment[host] == "0.0.0.0"


@every_process
def test_the_grace_is_longer_than_the_tree_may_take_to_stop(process: Process, tmp_path: Path) -> None:
    """Actors stop one after the other: the sum of their shutdown times, after the pause before SIGTERM."""
    loaded = load({}, process.environment, tmp_path, KNOWN)
    longest = stop_sec(outline(loaded.layout.root, members(loaded.settings)), len(loaded.settings.tags))
    assert longest + process.pause_sec <= process.grace_sec


def stop_sec(layout: ActorLayout | SupervisorLayout, tags: int) -> float:
    """How long it may take to stop when everything uses up its time; runs stop all at once."""
    if isinstance(layout, ActorLayout):
        return layout.shutdown_sec * (tags if layout.name == "consumer" else 1)
    return sum(stop_sec(child, tags) for child in layout.children)


# -- safety -----------------------------------------------------------------------------------------------------------


def test_no_container_of_ours_is_root_or_writes_to_its_image() -> None:
    """In the image, in the compose file and in the manifests, with the same user."""
    assert "\nUSER 10001:10001\n" in (ROOT / "Dockerfile").read_text()
    for name in ("gateway", "worker"):
        service = compose()["services"][name]
        assert (service["user"], service["read_only"], service["cap_drop"]) == ("10001:10001", True, ["ALL"])
        pod = documents(BASE / f"{name}.yaml")[0]["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["runAsUser"] == 10001
        assert pod["enableServiceLinks"] is False
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}


def test_what_is_written_is_on_a_volume() -> None:
    """Every directory that a setting of the image names is below a mount."""
    written = [path for name, path in image_environment().items() if name.endswith("_DIR")]
    assert written
    for name in ("gateway", "worker"):
        mounts = documents(BASE / f"{name}.yaml")[0]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
        mounted = {each["mountPath"] for each in mounts}
        in_memory = {each.partition(":")[0] for each in compose()["services"][name]["tmpfs"]}
        assert mounted == in_memory == {"/tmp", "/var/lib/pyoco"}
        assert all(path.startswith("/var/lib/pyoco/") for path in written)


# -- scaling and replicas ---------------------------------------------------------------------------------------------


def test_the_autoscaler_asks_for_metrics_that_the_gateway_has(tmp_path: Path) -> None:
    """By name and by label, in a real answer with a job in the queue."""
    (scaled,) = documents(AUTOSCALED / "scaledobject.yaml")
    wanted = {
        found
        for each in scaled["spec"]["triggers"]
        for found in re.findall(r"pyoco_\w+\{.+?\}", each["metadata"]["query"])
    }
    with nats_server(tmp_path / "store") as server, gateway(tmp_path, server.url) as started:
        started.submit("hello")
        text = started.http.get("/metrics").text
    assert len(wanted) == 3
    for name in wanted:
        assert f"\n{name} " in text


def test_the_autoscaler_fits_the_workers() -> None:
    """It scales the Deployment that there is, and one worker has as many jobs as it executes at the same time."""
    (scaled,) = documents(AUTOSCALED / "scaledobject.yaml")
    worker = next(process for process in PROCESSES if process.origin == "kubernetes pyoco-worker")
    assert scaled["spec"]["scaleTargetRef"]["name"] == "pyoco-worker"
    jobs, oldest = scaled["spec"]["triggers"]
    assert jobs["metadata"]["threshold"] == worker.environment["PYOCO_CONCURRENCY"]
    assert all(f'tag="{worker.environment["PYOCO_TAGS"]}"' in each["metadata"]["query"] for each in (jobs, oldest))


def test_there_are_as_many_replicas_as_servers() -> None:
    """The chart's cluster and PYOCO_NATS_REPLICAS agree."""
    values = yaml.safe_load((DEPLOY / "k8s" / "nats-values.yaml").read_text())
    (settings,) = documents(BASE / "settings.yaml")
    assert str(values["config"]["cluster"]["replicas"]) == settings["data"]["PYOCO_NATS_REPLICAS"] == "3"


# -- locks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["requirements.runtime.lock", "requirements.build.lock"])
def test_the_image_gets_what_the_tests_ran_on(name: str) -> None:
    """Its locks are parts of requirements.lock: after `make lock` all of them are new."""
    assert pins(ROOT / name).items() <= pins(ROOT / "requirements.lock").items()


def test_the_image_has_no_tools_of_development() -> None:
    """Only what pyproject.toml asks for at run time, and what that needs."""
    found = pins(ROOT / "requirements.runtime.lock")
    assert {"nats-py", "quart", "hypercorn", "pyoco"} <= found.keys()
    assert not {"pytest", "mypy", "ruff", "hatchling", "schemathesis", "trio"} & found.keys()


def pins(path: Path) -> dict[str, str]:
    """The versions of a lock file, by package."""
    return dict(re.findall(r"(?m)^([\w.-]+)==([^\s;]+)", path.read_text()))
