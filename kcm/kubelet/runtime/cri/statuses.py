"""Converts CRI's messages into sandboxes, containers and their statuses: pure functions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kcm.kubelet import cri
from kcm.kubelet.runtime.cri.messages import Message, enum_name

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STATES = {
    "CONTAINER_CREATED": cri.RuntimeContainerState.CREATED,
    "CONTAINER_RUNNING": cri.RuntimeContainerState.RUNNING,
    "CONTAINER_EXITED": cri.RuntimeContainerState.EXITED,
}


def is_ready(sandbox: Message) -> bool:
    """Reports whether a PodSandbox or PodSandboxStatus is ready."""
    return enum_name(sandbox, "state") == "SANDBOX_READY"


def is_in_node_network(status: Message) -> bool:
    """Reports whether the sandbox of a PodSandboxStatus uses the node's network."""
    return enum_name(status.linux.namespaces.options, "network") == "NODE"


def convert_sandbox(sandbox: Message, *, ip: str, host_network: bool) -> cri.Sandbox:
    """Returns a sandbox for a PodSandbox. Its configuration has what identifies it."""
    metadata = sandbox.metadata
    config = cri.SandboxConfig(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        attempt=metadata.attempt,
        labels=dict(sandbox.labels),
        annotations=dict(sandbox.annotations),
        host_network=host_network,
    )
    ready = is_ready(sandbox)
    state = cri.SandboxState.READY if ready else cri.SandboxState.NOT_READY
    return cri.Sandbox(sandbox.id, config, state, to_time(sandbox.created_at), ip if ready else "")


def convert_container(container: Message) -> cri.RuntimeContainer:
    """Returns a container for a Container."""
    return cri.RuntimeContainer(
        id=container.id,
        sandbox_id=container.pod_sandbox_id,
        name=container.metadata.name,
        attempt=container.metadata.attempt,
        image=container.image.image,
        state=_state(container),
        created_at=to_time(container.created_at),
        labels=dict(container.labels),
        annotations=dict(container.annotations),
    )


def convert_status(status: Message, resources: cri.Resources) -> cri.RuntimeContainerStatus:
    """Returns the status for a ContainerStatus. `resources` are what the container was given.

    A container whose start was cancelled, because the kubelet was killed meanwhile, has not run: it
    counts as made, and not as ended. containerd says that it has ended with code 128.
    """
    image = status.image.user_specified_image or status.image.image
    config = cri.ContainerConfig(
        name=status.metadata.name,
        attempt=status.metadata.attempt,
        image=image,
        mounts=[
            cri.Mount(mount.host_path, mount.container_path, mount.readonly)
            for mount in status.mounts
        ],
        resources=resources,
        labels=dict(status.labels),
        annotations=dict(status.annotations),
    )
    state = _state(status)
    if _is_start_cancelled(status):
        state = cri.RuntimeContainerState.CREATED
    exited = state is cri.RuntimeContainerState.EXITED
    return cri.RuntimeContainerStatus(
        id=status.id,
        config=config,
        state=state,
        created_at=to_time(status.created_at),
        started_at=to_time(status.started_at) if status.started_at else None,
        finished_at=to_time(status.finished_at) if exited and status.finished_at else None,
        exit_code=status.exit_code if exited else 0,
        reason=status.reason,
        message=status.message,
        log_path=status.log_path,
        image_id=status.image_ref,
    )


def _is_start_cancelled(status: Message) -> bool:
    message = status.message
    return (
        status.reason == "StartError"
        and not status.started_at
        and message.startswith("failed to create containerd task: ")
        and ": context canceled" in message  # `: unknown` may follow, the code of gRPC
    )


def convert_stats(stats: Message) -> cri.ContainerStats:
    """Returns the stats for a ContainerStats. CRI does not count a container's processes."""
    moment = stats.cpu.timestamp or stats.memory.timestamp
    return cri.ContainerStats(
        id=stats.attributes.id,
        at=to_time(moment),
        cpu_nanoseconds=stats.cpu.usage_core_nano_seconds.value,
        memory_working_set_bytes=stats.memory.working_set_bytes.value,
        memory_usage_bytes=stats.memory.usage_bytes.value,
    )


def convert_runtime_status(answer: Message, limits: str) -> cri.RuntimeStatus:
    """Returns the status for a StatusResponse. Faults are in the words of upstream's kubelet."""
    status = answer.status
    faults = {
        condition.type: (
            f"{condition.type}=false reason:{condition.reason} message:{condition.message}"
        )
        for condition in status.conditions
        if not condition.status
    }
    present = {condition.type for condition in status.conditions}
    for type_ in ("RuntimeReady", "NetworkReady"):
        if type_ not in present:
            faults[type_] = f"{type_} condition is not set"
    fault = faults.get("RuntimeReady", "")
    handlers = {each.name for each in answer.runtime_handlers if each.features.user_namespaces}
    return cri.RuntimeStatus(
        not fault, fault, limits, faults.get("NetworkReady", ""), frozenset(handlers)
    )


def _state(message: Message) -> cri.RuntimeContainerState:
    name = enum_name(message, "state")
    return _STATES.get(name, cri.RuntimeContainerState.UNKNOWN)


def to_time(nanoseconds: int) -> datetime:
    """Returns the time that is so many nanoseconds after 1970."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)
