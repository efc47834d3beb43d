"""Builds the simulated container runtime of a kubelet, with its prober and image service."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kcm.api.core_v1 import Pod
from kcm.clock import Clock
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.runtime.services import RuntimeServices


def new_simulated_services(
    options: KubeletOptions,
    clock: Clock,
    *,
    get_pod: Callable[[str], Pod | None],
    get_pod_cidrs: Callable[[], Sequence[str]],
) -> RuntimeServices:
    """Returns the simulated runtime; the arguments are those of `NewRuntimeServices`.

    Raises ConfigurationError if the stages file is not valid.
    """
    # Only kubelets with the simulated runtime need these imports.
    from kcm.simulation.runtime.prober import SimulatedProber  # noqa: PLC0415
    from kcm.simulation.runtime.runtime import SimulatedRuntime  # noqa: PLC0415
    from kcm.simulation.scripting import stages  # noqa: PLC0415

    script = stages.load(options.stages) if options.stages else stages.NO_STAGES
    runtime = SimulatedRuntime(
        get_pod, clock, stages=script, host_ip=options.node_ip, get_pod_cidrs=get_pod_cidrs
    )
    runner = SimulatedProber(runtime.attempt, clock)
    return RuntimeServices(runtime, runner, runtime, close=runtime.close)
