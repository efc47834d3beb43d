"""Runs the program of a container with objects that a test gives, and no store."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kcm.api.core_v1 import (
    ConfigMap,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Secret,
    Service,
)
from kcm.api.node_v1 import RuntimeClass
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.errors import ContainerConfigError
from kcm.kubelet.environment.variables import PodLocation
from kcm.simulation.programs.process import PodPrograms
from kcm.simulation.runtime.containers import Attempt
from kcm.simulation.scripting.scripts import EMPTY
from tests.unit.simulation.life import START, pod

DEFAULT_END = 1_000_000.0  # when a container ends that runs no program
IMAGE = "busybox:1.36"


@dataclass
class Objects:
    """The objects that a container refers to."""

    config_maps: dict[str, Mapping[str, str]] = field(default_factory=dict)
    secrets: dict[str, Mapping[str, str]] = field(default_factory=dict)
    reads: int = 0

    def config_map(self, namespace: str, name: str) -> ConfigMap | None:
        self.reads += 1
        data = self.config_maps.get(name)
        return None if data is None else ConfigMap(metadata=ObjectMeta(name=name), data=dict(data))

    def secret(self, namespace: str, name: str) -> Secret | None:
        data = self.secrets.get(name)
        if data is None:
            return None
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
        return Secret(metadata=ObjectMeta(name=name), data=encoded)

    def persistent_volume_claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return None

    def persistent_volume(self, name: str) -> PersistentVolume | None:
        return None

    def runtime_class(self, name: str) -> RuntimeClass | None:
        return None

    def services(self) -> Iterable[Service]:
        return ()

    def service_account_token(self, pod: Pod, audience: str, seconds: int) -> str:
        raise ContainerConfigError("no tokens here")


@dataclass
class Running:
    """The program of the container `main` of a pod. Times are seconds since its start."""

    pod: Pod
    objects: Objects = field(default_factory=Objects)
    why: str = ""  # why the container cannot be created

    def __post_init__(self) -> None:
        location = PodLocation(("10.0.0.1",), ("192.0.2.1",))
        self.programs = PodPrograms(self.objects, location)
        self.due = 0.0
        self.start()

    def start(self, number: int = 0, name: str = "main") -> None:
        """Starts an attempt of a container."""
        spec = next(one for one in self.pod.spec.containers if one.name == name)
        self.why = self.programs.prepare(self.pod, spec, EMPTY, number, START)
        self.attempt = Attempt.of(spec, number, START)
        self.attempt.started, self.attempt.ends = START, START + DEFAULT_END
        if not self.why:
            self.go(0)

    def go(self, at: float) -> None:
        """Lets it go on until that time."""
        end = START + DEFAULT_END
        if self.attempt.runs(START + at):
            due = self.programs.follow(self.pod, self.attempt, EMPTY, START + at, end)
            self.due = due - START

    @property
    def is_program(self) -> bool:
        """Whether the container does not do what it would without programs."""
        return self.attempt.ends != START + DEFAULT_END

    @property
    def ended(self) -> float:
        return self.attempt.ends - START

    @property
    def lines(self) -> list[str]:
        return [text for _, text in self.timed]

    @property
    def timed(self) -> list[tuple[float, str]]:
        outputs = self.programs.list_outputs(self.pod.uid)
        return [(round(at - START, 3), text) for out in outputs for at, text in out.lines]


def run(*command: str, objects: Objects | None = None, **fields: Any) -> Running:
    """Runs a command in a container with these further fields; those of the pod are in `pod`."""
    of_pod = fields.pop("pod", {})
    container = {"name": "main", "image": IMAGE, "command": list(command), **fields}
    return Running(pod(None, containers=[container], **of_pod), objects or Objects())


def shell(script: str, objects: Objects | None = None, **fields: Any) -> Running:
    """Runs a script."""
    return run("/bin/sh", "-c", script, objects=objects, **fields)


def mounted(volume: Mapping[str, Any], path: str = "/data", **mount: Any) -> dict[str, Any]:
    """Returns the fields of a container and its pod that mount one volume."""
    return {
        "volumeMounts": [{"name": "v", "mountPath": path, **mount}],
        "pod": {"volumes": [{"name": "v", **volume}]},
    }
