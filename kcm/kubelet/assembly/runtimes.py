"""Builds the process runtime, with its prober."""

from __future__ import annotations

import os

from kcm.kubelet.kuberuntime.security_context import RuntimeSecurity
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.prober.probes import Prober
from kcm.kubelet.runtime.process.options import ProcessOptions
from kcm.kubelet.runtime.process.runtime import ProcessRuntime
from kcm.kubelet.runtime.services import RuntimeServices


def new_process_services(options: KubeletOptions, *_: object, **__: object) -> RuntimeServices:
    """Returns the process runtime with its prober. It needs nothing but the options."""
    runtime = new_process_runtime(options)
    security = RuntimeSecurity(os.geteuid(), options.unenforced_security)
    return RuntimeServices(runtime, Prober(runtime), security=security)


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
