"""Builds the container runtime of a kubelet from the endpoint of one that speaks CRI v1."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import grpc

from kcm.clock import Clock
from kcm.errors import ConfigurationError
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.prober.probes import Prober
from kcm.kubelet.runtime.cri.channel import CallFailed, RuntimeChannel
from kcm.kubelet.runtime.cri.events import ContainerEvents
from kcm.kubelet.runtime.cri.images import CRIImages
from kcm.kubelet.runtime.cri.runtime import OWNER, CRIRuntime
from kcm.kubelet.runtime.pod_cgroups import PodCgroups
from kcm.kubelet.runtime.services import RuntimeServices
from kcm.kubelet.runtime.shims import ShimCollector

_SCHEME = "unix://"
_PATIENCE = 10.0  # seconds for a runtime that starts at the same time
_PAUSE = 0.2  # seconds between tries


def new_cri_services(options: KubeletOptions, clock: Clock) -> RuntimeServices:
    """Returns the runtime at the options' endpoint. Raises ConfigurationError if it is not there.

    It makes what it runs its own by the path of the kubelet's root folder, which no other kubelet
    uses.
    """
    channel = connect(options.container_runtime_endpoint, clock)
    owner = identify(options.root_dir)
    cgroups = PodCgroups(
        options.cgroup_root.strip("/") or f"kcm-{owner[:8]}",
        options.cgroup_driver,
        options.pod_max_pids if options.pod_max_pids > 0 else None,
    )
    runtime = CRIRuntime(channel, owner=owner, host_ip=options.node_ip, cgroups=cgroups)
    with suppress(CallFailed):  # the runtime has gone again; the next start does it
        runtime.clean_up_groups()
    images = CRIImages(channel)

    def list_sandboxes() -> set[str]:
        return {sandbox.id for sandbox in channel.call("ListPodSandbox").items}

    shims = ShimCollector(channel.endpoint.removeprefix(_SCHEME), list_sandboxes, clock)
    return RuntimeServices(
        runtime,
        Prober(runtime),
        image_store=images,
        close=channel.close,
        is_prepared=True,
        reopen_log=runtime.reopen_container_log,
        events=ContainerEvents(channel, {OWNER: owner}, clock),
        runs=[("shims", shims.run)],
    )


def identify(root_dir: Path) -> str:
    """Returns what marks the sandboxes and containers of the kubelet with this root folder."""
    return sha256(os.fsencode(root_dir.resolve())).hexdigest()[:16]


def connect(endpoint: str, clock: Clock) -> RuntimeChannel:
    """Returns a channel to a runtime that answers within _PATIENCE. Raises ConfigurationError."""
    path = Path(endpoint.removeprefix(_SCHEME))
    flag = f"--container-runtime-endpoint {endpoint!r}"
    if not endpoint.startswith(_SCHEME) or not path.is_absolute():
        raise ConfigurationError(
            f"{flag} is not of the form unix:///run/containerd/containerd.sock"
        )
    if not path.is_socket():
        raise ConfigurationError(
            f"{flag}: there is no socket {path}; is the container runtime installed and running?"
        )
    if os.geteuid() != 0:
        raise ConfigurationError(f"{flag}: only root can run containers")
    channel, deadline = RuntimeChannel(endpoint), clock.monotonic() + _PATIENCE
    while True:
        try:
            channel.call("Version", 10.0)
            return channel
        except CallFailed as error:
            if error.code is grpc.StatusCode.UNIMPLEMENTED or clock.monotonic() >= deadline:
                channel.close()
                raise ConfigurationError(f"{flag}: {_explain(error)}") from error
        clock.wait(threading.Event(), _PAUSE)


def _explain(error: CallFailed) -> str:
    if error.code is grpc.StatusCode.UNIMPLEMENTED:
        return (
            "what answers there does not speak CRI v1. containerd does from version 1.6 on, unless "
            'its configuration disables the plugin "cri", as the one of Docker\'s packages does'
        )
    return f"the container runtime does not answer: {error.details}"
