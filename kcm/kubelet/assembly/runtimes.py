"""Builds the container runtime that the options select, with its prober and image service."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kcm.api.core_v1 import Pod
from kcm.clock import Clock
from kcm.kubelet.cri import Runtime
from kcm.kubelet.kuberuntime.images import ImageService
from kcm.kubelet.kuberuntime.security_context import NOTHING_CHECKED, RuntimeSecurity
from kcm.kubelet.options import SIMULATED, KubeletOptions
from kcm.kubelet.prober.outcomes import ProbeRunner
from kcm.kubelet.prober.probes import Prober
from kcm.kubelet.runtime.process.options import ProcessOptions
from kcm.kubelet.runtime.process.runtime import ProcessRuntime


@dataclass(frozen=True)
class RuntimeServices:
    """A container runtime, what runs the probes of its containers, and what it makes of security
    settings.

    `image_service` is None for a runtime without images. `close` wakes the threads that wait in the
    runtime.
    """

    runtime: Runtime
    probe_runner: ProbeRunner
    image_service: ImageService | None = None
    close: Callable[[], None] = lambda: None
    security: RuntimeSecurity = NOTHING_CHECKED


def new_runtime_services(
    options: KubeletOptions,
    clock: Clock,
    *,
    get_pod: Callable[[str], Pod | None],
    get_pod_cidrs: Callable[[], Sequence[str]],
) -> RuntimeServices:
    """Returns the container runtime that the options select, with its services.

    `get_pod` returns a pod by its uid, `get_pod_cidrs` the address ranges of the node's pods.
    Raises ConfigurationError if the stages file of the simulated runtime is not valid.
    """
    if options.container_runtime != SIMULATED:
        process_runtime = new_process_runtime(options)
        security = RuntimeSecurity(os.geteuid(), options.unenforced_security)
        return RuntimeServices(process_runtime, Prober(process_runtime), security=security)
    # Only kubelets with the simulated runtime need these imports.
    from kcm.kubelet.runtime.simulated.prober import SimulatedProber  # noqa: PLC0415
    from kcm.kubelet.runtime.simulated.runtime import SimulatedRuntime  # noqa: PLC0415
    from kcm.simulated import stages  # noqa: PLC0415

    script = stages.load(options.stages) if options.stages else stages.NO_STAGES
    runtime = SimulatedRuntime(
        get_pod, clock, stages=script, host_ip=options.node_ip, get_pod_cidrs=get_pod_cidrs
    )
    runner = SimulatedProber(runtime.attempt, clock)
    return RuntimeServices(runtime, runner, runtime, runtime.close)


def new_process_runtime(options: KubeletOptions) -> ProcessRuntime:
    """Returns the process runtime in the kubelet's root folder."""
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
