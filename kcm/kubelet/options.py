"""The kubelet's options. Names and defaults are those of upstream's flags where it has them.

Source: cmd/kubelet/app/options/options.go and pkg/kubelet/apis/config/v1beta1/defaults.go,
Kubernetes 1.33.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kcm.api.core_v1 import Taint
from kcm.apimachinery.quantity import ResourceList
from kcm.errors import ConfigurationError
from kcm.helpers.serviceaccount.tokens import DEFAULT_ISSUER
from kcm.kubelet.eviction.thresholds import DEFAULT_HARD, EvictionConfig, parse_thresholds
from kcm.kubelet.images.garbage import ImageLimits
from kcm.kubelet.isolation import ClusterDNS
from kcm.kubelet.kuberuntime.security_context import REFUSE, WARN
from kcm.kubelet.shutdown.grace_periods import ShutdownGracePeriod

PROCESS, SIMULATED, CRI = "process", "simulated", "cri"  # container runtimes
CGROUPFS, SYSTEMD = "cgroupfs", "systemd"  # who makes control groups
DEFAULT_ENDPOINT = "unix:///run/containerd/containerd.sock"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", re.ASCII)
_GROUP = re.compile(r"/?[A-Za-z0-9_.-]*", re.ASCII)
_MAX_NAME = 253


def _default_eviction() -> EvictionConfig:
    return EvictionConfig(parse_thresholds(DEFAULT_HARD, "", {}, ""))


@dataclass(frozen=True, kw_only=True)
class KubeletOptions:
    """The kubelet's options. Times are in seconds. Raises ConfigurationError for invalid values."""

    node_name: str
    root_dir: Path  # holds pods' volumes, logs and the runtime's state

    # --- the Node object
    node_ip: str = "127.0.0.1"
    register_node: bool = True
    node_labels: Mapping[str, str] = field(default_factory=dict)
    register_with_taints: Sequence[Taint] = ()
    max_pods: int = 110
    lease_duration: int = 40
    node_status_update_frequency: float = 10.0
    node_status_report_frequency: float = 300.0
    system_reserved: ResourceList = field(default_factory=dict)
    kube_reserved: ResourceList = field(default_factory=dict)

    # --- sources of pods
    pod_manifest_path: Path | None = None
    file_check_frequency: float = 20.0
    manifest_url: str = ""
    manifest_url_headers: Mapping[str, str] = field(default_factory=dict)
    http_check_frequency: float = 20.0

    # --- how pods run and are stopped
    sync_frequency: float = 60.0
    back_off_period: float = 10.0
    crash_loop_initial: float = 10.0  # back-off after a container's first crash
    crash_loop_longest: float = 300.0
    eviction: EvictionConfig = field(default_factory=_default_eviction)
    shutdown_grace_periods: tuple[ShutdownGracePeriod, ...] = ()  # (): pods are left running
    end_containers: bool = False  # whether the kubelet kills them when it stops

    # --- the container runtime
    container_runtime: str = PROCESS
    stages: Path | None = None  # what pods do in the simulated runtime
    container_runtime_endpoint: str = DEFAULT_ENDPOINT
    cgroup_root: str = ""  # the control group of all pods; "" is one named after the root folder
    cgroup_driver: str = CGROUPFS
    max_parallel_image_pulls: int = 1
    image_credential_provider_config: Path | None = None
    image_credential_provider_bin_dir: Path | None = None
    image_limits: ImageLimits = field(default_factory=ImageLimits)
    dns: ClusterDNS = field(default_factory=ClusterDNS)
    allowed_host_paths: tuple[Path, ...] = ()
    allowed_users: tuple[tuple[int, int], ...] = ()  # inclusive ranges of ids
    allowed_groups: tuple[tuple[int, int], ...] = ()  # inclusive ranges of ids
    # what becomes of pods that ask for what a process cannot have: WARN or REFUSE
    unenforced_security: str = WARN
    service_account_signing_key_file: Path | None = None  # for a kubelet that works on Redis
    service_account_issuer: str = DEFAULT_ISSUER
    pod_api_server: tuple[str, int] | None = None  # where pods reach the API server
    own_pod_addresses: bool = True  # whether each pod has a loopback address of its own
    pod_max_pids: int = 1024  # -1 is no limit
    adopts_orphans: bool = False  # see runtime/process/orphans.py
    container_log_max_size: int = 10 * 1024 * 1024  # bytes
    container_log_max_files: int = 5
    container_log_monitor_interval: float = 10.0  # for runtimes whose logs the kubelet rotates

    # --- the node's HTTP API
    port: int = 10250
    port_required: bool = False  # otherwise a free port is used if `port` is taken
    bind_address: str = ""  # "" is `node_ip`
    certificate: tuple[Path, Path] | None = None  # certificate and key; None is plain HTTP
    # authorities; whoever has a certificate of theirs in the group system:masters has access
    client_ca_file: Path | None = None

    def __post_init__(self) -> None:
        require(
            bool(_NAME.fullmatch(self.node_name)) and len(self.node_name) <= _MAX_NAME,
            f"--node-name {self.node_name!r} is not a valid name for a node",
        )
        require(self.max_pods >= 0, "--max-pods must not be negative")
        require(
            self.pod_max_pids == -1 or self.pod_max_pids > 0,
            "--pod-max-pids must be more than 0, or -1 for no limit",
        )
        require(self.lease_duration >= 1, "--node-lease-duration-seconds must be at least 1")
        for flag in (
            "file_check_frequency", "http_check_frequency", "sync_frequency",
            "container_log_monitor_interval",
        ):  # fmt: skip
            require(getattr(self, flag) > 0, f"--{flag.replace('_', '-')} must be more than 0")
        require(
            self.container_runtime in (PROCESS, SIMULATED, CRI),
            f"--container-runtime {self.container_runtime!r} is none of {PROCESS}, {CRI} and "
            f"{SIMULATED}",
        )
        require(
            self.cgroup_driver in (CGROUPFS, SYSTEMD),
            f"--cgroup-driver {self.cgroup_driver!r} is neither {CGROUPFS} nor {SYSTEMD}",
        )
        require(
            (self.image_credential_provider_config is None)
            == (self.image_credential_provider_bin_dir is None),
            "--image-credential-provider-config and --image-credential-provider-bin-dir need each "
            "other",
        )
        require(
            self.image_credential_provider_config is None or self.container_runtime == CRI,
            "--image-credential-provider-config has no effect without a container runtime",
        )
        require(self.max_parallel_image_pulls > 0, "--max-parallel-image-pulls must be at least 1")
        require(
            0 <= self.image_limits.low <= self.image_limits.high <= 100,
            "--image-gc-low-threshold must not be more than --image-gc-high-threshold, and both "
            "are percentages",
        )
        require(
            bool(_GROUP.fullmatch(self.cgroup_root)),
            f"--cgroup-root {self.cgroup_root!r} is not the name of one group",
        )
        require(
            self.stages is None or self.container_runtime == SIMULATED,
            f"--stages can only be used with --container-runtime {SIMULATED}",
        )
        require(
            self.unenforced_security in (WARN, REFUSE),
            f"--unenforced-security {self.unenforced_security!r} is neither {WARN} nor {REFUSE}",
        )
        require(
            self.crash_loop_longest >= self.crash_loop_initial > 0,
            "the longest crash-loop back-off must not be shorter than the first",
        )

    @property
    def pods_dir(self) -> Path:
        """The folder of pods' volumes."""
        return self.root_dir / "pods"

    @property
    def local_volumes_dir(self) -> Path:
        """The folder of PersistentVolumes of kcm.dev/local."""
        return self.root_dir / "local-volumes"

    @property
    def logs_dir(self) -> Path:
        """The folder of containers' logs."""
        return self.root_dir / "logs"

    @property
    def seccomp_dir(self) -> Path:
        """The folder of seccomp profiles that pods name."""
        return self.root_dir / "seccomp"

    @property
    def runtime_dir(self) -> Path:
        """The folder of the container runtime's state."""
        return self.root_dir / "runtime"


def require(condition: bool, message: str) -> None:
    """Raises ConfigurationError with the message unless the condition holds."""
    if not condition:
        raise ConfigurationError(message)
