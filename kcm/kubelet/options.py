"""What a kubelet is told at its start. Names and defaults are upstream's flags' where it has them.

Source: cmd/kubelet/app/options/options.go and pkg/kubelet/apis/config/v1beta1/defaults.go,
Kubernetes 1.33.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kcm.api.core_v1 import Taint
from kcm.errors import ConfigurationError

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", re.ASCII)
PROCESS, SIMULATED = "process", "simulated"  # runtimes
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@dataclass(frozen=True, kw_only=True)
class KubeletOptions:
    """Times are seconds. Raises ConfigurationError for what cannot be."""

    node_name: str
    root_dir: Path  # of everything: pods' volumes, logs, what the runtime keeps
    node_ip: str = "127.0.0.1"
    port: int = 10250  # of the node's HTTP API
    register_node: bool = True
    node_labels: Mapping[str, str] = field(default_factory=dict)
    register_with_taints: Sequence[Taint] = ()
    max_pods: int = 110
    pod_manifest_path: Path | None = None
    file_check_frequency: float = 20.0
    manifest_url: str = ""
    manifest_url_headers: Mapping[str, str] = field(default_factory=dict)
    http_check_frequency: float = 20.0
    sync_frequency: float = 60.0
    back_off_period: float = 10.0
    crash_loop_initial: float = 10.0  # seconds that the first crash waits
    crash_loop_longest: float = 300.0
    lease_duration: int = 40
    node_status_update_frequency: float = 10.0
    node_status_report_frequency: float = 300.0
    allowed_host_paths: tuple[Path, ...] = ()
    allowed_users: tuple[tuple[int, int], ...] = ()  # inclusive ranges
    allowed_groups: tuple[tuple[int, int], ...] = ()  # inclusive ranges
    own_pod_addresses: bool = True
    pod_max_pids: int = 1024  # -1: no limit
    adopts_orphans: bool = False  # see runtime/process/orphans.py
    container_log_max_size: int = 10 * 1024 * 1024  # bytes
    container_log_max_files: int = 5
    container_runtime: str = PROCESS
    stages: Path | None = None  # what pods do, in the simulated runtime
    end_containers: bool = False  # with the kubelet, instead of letting them run on

    def __post_init__(self) -> None:
        _require(
            bool(_NAME.fullmatch(self.node_name)) and len(self.node_name) <= 253,
            f"--node-name {self.node_name!r} is no name for a node",
        )
        _require(self.max_pods >= 0, "--max-pods must not be negative")
        _require(
            self.pod_max_pids == -1 or self.pod_max_pids > 0,
            "--pod-max-pids must be more than 0, or -1 for no limit",
        )
        _require(self.lease_duration >= 1, "--node-lease-duration-seconds must be at least 1")
        for flag in ("file_check_frequency", "http_check_frequency", "sync_frequency"):
            _require(getattr(self, flag) > 0, f"--{flag.replace('_', '-')} must be more than 0")
        _require(
            self.container_runtime in (PROCESS, SIMULATED),
            f"--container-runtime {self.container_runtime!r} is neither {PROCESS} nor {SIMULATED}",
        )
        _require(
            self.stages is None or self.container_runtime == SIMULATED,
            "--stages are for --container-runtime simulated",
        )
        _require(
            self.crash_loop_longest >= self.crash_loop_initial > 0,
            "the longest crash-loop wait must not be shorter than the first",
        )

    @property
    def pods_dir(self) -> Path:
        """Of pods' volumes."""
        return self.root_dir / "pods"

    @property
    def logs_dir(self) -> Path:
        """Of containers' logs."""
        return self.root_dir / "logs"

    @property
    def runtime_dir(self) -> Path:
        """Of the runtime."""
        return self.root_dir / "runtime"


def parse_labels(text: str) -> dict[str, str]:
    """`a=b,c=d`. Raises ConfigurationError."""
    found: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = part.partition("=")
        _require(bool(name and equals), f"--node-labels: {part!r} is not like name=value")
        found[name] = value
    return found


def parse_taints(text: str) -> list[Taint]:
    """`key=value:Effect,key:Effect`. Raises ConfigurationError."""
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, colon, effect = part.rpartition(":")
        _require(
            bool(colon) and effect in _EFFECTS,
            f"--register-with-taints: {part!r} is not like key=value:{_EFFECTS[0]}",
        )
        key, _, value = name.partition("=")
        found.append(Taint(key=key, value=value or None, effect=effect))
    return found


def parse_ids(text: str, flag: str) -> tuple[tuple[int, int], ...]:
    """`1000,2000-2999`: ids and ranges of them. Raises ConfigurationError."""
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        low, _, high = part.partition("-")
        _require(
            low.isdigit() and (not high or high.isdigit()),
            f"{flag}: {part!r} is not like 1000 or 2000-2999",
        )
        found.append((int(low), int(high or low)))
    return tuple(found)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ConfigurationError(message)
