"""`TrackedPod`: what a simulator knows of one of its pods."""

from __future__ import annotations

from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.kubelet.admission import NodeUsage
from kcm.simulation.runs import PodRun
from kcm.simulation.scripting import scripts
from kcm.simulation.scripting.scripts import PodScript
from kcm.simulation.storage.mounts import PodMounts

PODS = Pod.resource


class TrackedPod:
    """One pod on a simulated node."""

    __slots__ = (
        "addresses",
        "key",
        "mounts",
        "node_name",
        "owner",
        "pod",
        "raw",
        "run",
        "script",
        "taken",
        "uid",
        "version",
    )

    def __init__(self, pod: Pod, node_name: str) -> None:
        self.key = pod.key
        self.uid = pod.uid
        self.owner = ""  # the uid of its controller, or its own uid
        self.node_name = node_name
        self.version = 0
        self.pod: Pod | None = None  # the object, while it is being changed
        self.raw = b""  # its JSON, while it is at rest
        self.run: PodRun | None = None
        self.script: PodScript = scripts.NO_SCRIPT
        self.taken: NodeUsage | None = None  # what is counted for it on its node
        self.addresses: tuple[str, ...] = ()
        self.mounts: PodMounts | None = None  # of a pod with claims, once it is admitted

    def object(self) -> Pod:
        """Returns the pod as last seen in the store."""
        if self.pod is None:
            pod = codec.decode(self.raw, PODS)
            self.pod = pod
        return self.pod
