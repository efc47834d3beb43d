"""Prepares what a runtime that speaks CRI expects of the kubelet, and reads what comes of it.

A pod's folder has its hosts file, `etc-hosts`, and for each attempt of a container an empty file
for the termination message, `containers/<name>/<random>`.

Source: makeMounts in pkg/kubelet/kubelet_pods.go and pkg/kubelet/kuberuntime/
kuberuntime_container.go, getTerminationMessage there, Kubernetes 1.36. Departure: a message is only
read from the file that was made for it, never from a volume that is mounted in its place.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kcm import errors
from kcm.api.core_v1 import Container, Pod
from kcm.api.pods.qos import GUARANTEED, qos_class
from kcm.kubelet import cri
from kcm.kubelet.containers.dns import PodDNS
from kcm.kubelet.containers.hosts import build_hosts
from kcm.kubelet.containers.user_namespaces import UserNamespaces
from kcm.kubelet.environment.variables import Lookups
from kcm.kubelet.files.log_tail import FALLBACK, MOST, tail
from kcm.kubelet.isolation import UserNamespace
from kcm.kubelet.kuberuntime import labels
from kcm.kubelet.kuberuntime.configs import build_pod_resources, name_domain, name_host

ETC_HOSTS, CONTAINERS = "etc-hosts", "containers"


class ContainerPreparation:
    """Prepares sandboxes and containers. Thread-safe for different pods."""

    def __init__(
        self,
        pod_folder: Callable[[str], Path],
        dns: PodDNS,
        lookups: Lookups,
        *,
        users: UserNamespaces,
        get_status: Callable[[], cri.RuntimeStatus],
        cluster_domain: str,
    ) -> None:
        """`pod_folder` returns the folder of a pod by its uid. `lookups` has RuntimeClasses.
        `get_status` asks the runtime.
        """
        self._pod_folder = pod_folder
        self._dns = dns
        self._lookups = lookups
        self._users = users
        self._get_status = get_status
        self._domain = cluster_domain

    def complete_sandbox(self, pod: Pod, config: cri.SandboxConfig) -> cri.SandboxConfig:
        """Returns a sandbox's configuration with its DNS settings, its runtime handler, what its
        containers may use together, their users, and the control group of its quality-of-service
        class.

        Raises ContainerRuntimeError for what this node cannot give.
        """
        handler = self._find_handler(pod.spec.runtime_class_name or "")
        if pod.spec.host_users is False:
            users = self._find_users(pod, handler)
            namespaces = replace(config.isolation.namespaces, userns_options=users)
            config = replace(config, isolation=replace(config.isolation, namespaces=namespaces))
        qos = qos_class(pod)
        return replace(
            config,
            dns=self._dns.build(pod),
            runtime_handler=handler,
            resources=build_pod_resources(pod),
            cgroup_parent="" if qos == GUARANTEED else qos.lower(),
        )

    def _find_users(self, pod: Pod, handler: str) -> UserNamespace:
        """Returns the users of a pod. Raises ContainerRuntimeError where it can have none."""
        folder = self._pod_folder(pod.uid)
        if not self._users.has(folder) and handler not in self._get_status().user_namespaces:
            what = f'RuntimeClass handler "{handler}"' if handler else "runtime"
            raise errors.ContainerRuntimeError(
                f"can't set `spec.hostUsers: false`, {what} does not support user namespaces"
            )
        return self._users.get(folder)

    def _find_handler(self, name: str) -> str:
        """Returns the runtime handler of a RuntimeClass, "" for the default one."""
        if not name:
            return ""
        try:
            runtime_class = self._lookups.runtime_class(name)
        except errors.Temporary as error:
            raise errors.ContainerRuntimeError(
                f"failed to look up runtimeClass {name}: {error}"
            ) from error
        if runtime_class is None:
            raise errors.ContainerRuntimeError(
                f'failed to look up runtimeClass: RuntimeClass.node.k8s.io "{name}" not found'
            )
        return runtime_class.handler

    def add_mounts(
        self, pod: Pod, container: Container, ips: Sequence[str], mounts: Sequence[cri.Mount]
    ) -> list[cri.Mount]:
        """Returns the mounts with those of the hosts file and of the termination message.

        A volume at the same path comes before them. Raises ContainerRuntimeError.
        """
        taken = {os.path.normpath(mount.container_path) for mount in mounts}
        added: list[cri.Mount] = []
        try:
            if "/etc/hosts" not in taken and (ips or pod.spec.host_network):
                added.append(self._make_hosts(pod, ips))
            path = container.termination_message_path or ""
            if path and os.path.normpath(path) not in taken:
                added.append(self._make_message_file(pod, container.name, path))
        except OSError as error:
            raise errors.ContainerRuntimeError(f"failed to make {error.filename}: {error}") from (
                error
            )
        return [*mounts, *added]

    def _make_hosts(self, pod: Pod, ips: Sequence[str]) -> cri.Mount:
        path = self._pod_folder(pod.uid) / ETC_HOSTS
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        domain = name_domain(pod, self._domain)
        text = build_hosts(pod, ips, name_host(pod), domain)
        path.write_text(text, "utf-8")  # in place, since it may be mounted into another container
        path.chmod(0o644)
        return cri.Mount(str(path), "/etc/hosts")

    def _make_message_file(self, pod: Pod, container: str, path: str) -> cri.Mount:
        file = self._pod_folder(pod.uid) / CONTAINERS / container / uuid.uuid4().hex[:8]
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch()
        file.chmod(0o666)  # the container's user writes it
        return cri.Mount(str(file), path)

    def read_message(self, status: cri.RuntimeContainerStatus) -> str:
        """Returns what an exited container says: the runtime's message, and its own."""
        if status.state is not cri.RuntimeContainerState.EXITED:
            return status.message
        annotations = status.config.annotations
        message = self._read_file(status, annotations.get(labels.MESSAGE_PATH, ""))
        falls_back = annotations.get(labels.MESSAGE_POLICY) == FALLBACK
        if not message and falls_back and status.exit_code and status.reason != "StartError":
            message = tail(Path(status.log_path))
        return ": ".join(part for part in (status.message, message) if part)

    def _read_file(self, status: cri.RuntimeContainerStatus, path: str) -> str:
        uid = status.config.labels.get(labels.POD_UID, "")
        ours = self._pod_folder(uid) / CONTAINERS if uid else None
        for mount in status.config.mounts:
            file = Path(mount.host_path)
            if mount.container_path == path and ours is not None and file.parent.parent == ours:
                with suppress(OSError):
                    fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
                    with os.fdopen(fd, "rb") as opened:
                        return opened.read(MOST).decode("utf-8", "replace")
        return ""
