"""What a kubelet runs pods with: its runtime, and what that brings along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kcm.api.core_v1 import Pod
from kcm.clock import Clock
from kcm.kubelet.cri import Runtime
from kcm.kubelet.kuberuntime.images import ImageService
from kcm.kubelet.options import SIMULATED, KubeletOptions
from kcm.kubelet.prober.probes import Prober
from kcm.kubelet.runtime.process.options import ProcessOptions
from kcm.kubelet.runtime.process.runtime import ProcessRuntime


@dataclass(frozen=True)
class Equipment:
    """`images` where the runtime has any, `prober` where probes are not real ones."""

    runtime: Runtime
    images: ImageService | None = None
    prober: Prober | None = None
    close: Callable[[], None] = lambda: None


def equipment_of(
    options: KubeletOptions,
    clock: Clock,
    pods: Callable[[str], Pod | None],
    cidrs: Callable[[], Sequence[str]],
) -> Equipment:
    """As the options say. `pods` finds a pod by its uid, `cidrs` are the ranges of the node's
    pods, where it has any. Raises ConfigurationError."""
    if options.container_runtime != SIMULATED:
        return Equipment(process_runtime(options))
    # Kubelets with processes do not carry it around.
    from kcm.kubelet.runtime.simulated.prober import SimulatedProber  # noqa: PLC0415
    from kcm.kubelet.runtime.simulated.runtime import SimulatedRuntime  # noqa: PLC0415
    from kcm.simulated import stages  # noqa: PLC0415

    script = stages.load(options.stages) if options.stages else stages.NO_STAGES
    runtime = SimulatedRuntime(pods, clock, stages=script, host_ip=options.node_ip, cidrs=cidrs)
    prober = SimulatedProber(runtime.attempt, clock)
    return Equipment(runtime, runtime, prober, runtime.close)


def process_runtime(options: KubeletOptions) -> ProcessRuntime:
    """The process runtime on this kubelet's root folder."""
    return ProcessRuntime(
        ProcessOptions(
            root=options.runtime_dir,
            host_ip=options.node_ip,
            own_addresses=options.own_pod_addresses,
            container_log_max_size=options.container_log_max_size,
            container_log_max_files=options.container_log_max_files,
            pod_max_pids=options.pod_max_pids if options.pod_max_pids > 0 else None,
            adopts_orphans=options.adopts_orphans,
            allowed_users=options.allowed_users,
            allowed_groups=options.allowed_groups,
        )
    )
