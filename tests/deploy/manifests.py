"""What deploy/ says, as data: every process that it starts, with its settings, ports, probes and times."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from attrs import frozen

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
BASE = DEPLOY / "k8s" / "base"
AUTOSCALED = DEPLOY / "k8s" / "autoscaled"
_VARIABLE = re.compile(r"\$\{\w+:-([^}]*)\}")


@frozen
class Process:
    """One role as a file of deploy/ starts it."""

    origin: str
    environment: dict[str, str]
    ports: dict[str, int]
    """What the container opens, by name."""
    probes: dict[str, int]
    """Path and port of what is asked whether it is well."""
    grace_sec: float
    pause_sec: float
    """How much of the grace passes before SIGTERM."""

    @property
    def role(self) -> str:
        return self.environment["PYOCO_ROLE"]


def documents(path: Path) -> list[dict[str, Any]]:
    """The documents of a YAML file."""
    return [found for found in yaml.safe_load_all(path.read_text()) if found is not None]


def compose() -> dict[str, Any]:
    """The compose file with the defaults of its variables filled in."""
    found: dict[str, Any] = yaml.safe_load(_VARIABLE.sub(r"\1", (DEPLOY / "compose.yaml").read_text()))
    return found


def image_environment() -> dict[str, str]:
    """The ENV of the Dockerfile."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    given = re.search(r"(?m)^ENV (.+)$", text)
    assert given is not None
    return dict(re.findall(r"(PYOCO_\w+)=(\S+)", given[1]))


def processes() -> Iterator[Process]:
    """Every process of ours in deploy/."""
    for name, service in compose()["services"].items():
        if "PYOCO_ROLE" in service.get("environment", {}):
            yield _of_service(name, service)
    for path in (BASE / "gateway.yaml", BASE / "worker.yaml"):
        for document in documents(path):
            if document["kind"] == "Deployment":
                yield _of_deployment(document)


def _of_service(name: str, service: dict[str, Any]) -> Process:
    environment = {**image_environment(), **{key: str(value) for key, value in service["environment"].items()}}
    port = "PYOCO_WORKER_PROBE_PORT" if environment["PYOCO_ROLE"] == "worker" else "PYOCO_PORT"
    published = {f"published {n}": int(each.rpartition(":")[2]) for n, each in enumerate(service.get("ports", ()))}
    return Process(
        origin=f"compose {name}",
        environment=environment,
        ports=published,
        probes={service["healthcheck"]["test"][-1]: int(environment[port])},  # healthcheck.py asks that one
        grace_sec=float(service["stop_grace_period"].removesuffix("s")),
        pause_sec=0.0,
    )


def _of_deployment(document: dict[str, Any]) -> Process:
    pod = document["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (settings,) = documents(BASE / "settings.yaml")
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    asked = [container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
    pause = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    return Process(
        origin=f"kubernetes {document['metadata']['name']}",
        environment={
            **image_environment(),
            **settings["data"],
            **{each["name"]: each["value"] for each in container["env"]},
        },
        ports=ports,
        probes={each["path"]: ports[each["port"]] for each in asked},
        grace_sec=pod["terminationGracePeriodSeconds"],
        pause_sec=pause,
    )
