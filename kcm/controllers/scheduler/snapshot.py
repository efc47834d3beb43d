"""The snapshot: nodes and pods as one pass uses them, kept from pass to pass.

Guarantees: after `Snapshot.update` it agrees with the caches, and only what changed was computed
again. Every change is in `log`, in order, so that what is derived from a snapshot (see `template`)
can be updated by the changes alone. It can be built again from the caches.

Source: pkg/scheduler/backend/cache/{cache,snapshot,node_tree}.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kcm.api.core_v1 import Namespace, Node, PersistentVolumeClaim, Pod
from kcm.controllers.scheduler.cluster_events import ClusterEvent, ClusterEventKind, node_events
from kcm.controllers.scheduler.nodeinfo import NodeInfo, PodInfo
from kcm.helpers.pods import is_terminal
from kcm.helpers.volumes.binding import ClaimState

# Changes that are kept for templates, and cluster events for pods that wait: so many, or twice as
# many as there are pods and nodes. Then older templates start again, and pods with older attempts
# are all woken, which costs no more than what has happened since.
LEAST_KEPT = 1_000
_NO_LABELS: Mapping[str, str] = {}


class SnapshotChange(NamedTuple):
    """A pod came to a node (sign 1) or left it (sign -1).

    Without a pod, the node itself changed.
    """

    node: NodeInfo
    pod: PodInfo | None
    sign: int


class Snapshot:
    """The nodes, pods and namespaces as one pass uses them. Not thread-safe."""

    def __init__(self) -> None:
        # the nodes with a Node object, in the order in which they are tried
        self.nodes: list[NodeInfo] = []
        self.by_name: dict[str, NodeInfo] = {}
        self.pods: dict[str, PodInfo] = {}  # all pods that have not ended, by uid
        self.pending: dict[str, PodInfo] = {}  # pods without a node
        self.nominated: dict[str, dict[str, PodInfo]] = {}  # nominated pods by node, by uid
        self.nominations = 0  # raised with each change of nominations
        self.nominated_at: dict[str, int] = {}  # `nominations` at the last change, by node
        self.in_namespace: dict[str, dict[str, PodInfo]] = {}  # pods with a node
        self.with_terms: dict[str, PodInfo] = {}  # pods with a node and affinity terms
        # pods with a node, by claim and uid
        self.claim_users: dict[str, dict[str, PodInfo]] = {}
        self.claim_changes: dict[str, int] = {}  # by claim, the moment of its last change
        self._claims: dict[str, tuple[str | None, ClaimState]] = {}  # with the version
        self._storage_versions: tuple[int, ...] = ()
        self._attachments = 0  # the position of the cache of VolumeAttachments
        self.images: dict[str, int] = {}  # the number of nodes by image
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.layout = 0  # raised when nodes or labels change, which makes derived data void
        self.log: list[SnapshotChange] = []
        self.log_start = 0  # the number of changes dropped from the log
        self.cluster_events: list[ClusterEvent] = []
        self.known_since = 0  # all later events are in `cluster_events`
        self.position = 0  # the position of the cache of pods at the last update
        self.moment = 0  # the highest position of all caches then, which dates cluster events
        self._assumed: set[str] = set()  # uids of pods changed by this pass, not the caches

    @property
    def log_end(self) -> int:
        return self.log_start + len(self.log)

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        return self.namespaces.get(name, _NO_LABELS)

    def pods_in(self, namespaces: Iterable[str] | None) -> Iterator[PodInfo]:
        """Yields the pods with a node in these namespaces, or in all for None."""
        for name in self.in_namespace if namespaces is None else namespaces:
            yield from self.in_namespace.get(name, {}).values()

    def node_of(self, pod: PodInfo) -> NodeInfo:
        return self.by_name[pod.node]

    # --- following the caches

    def update(
        self,
        position: int,
        nodes: Sequence[Node],
        pods: Sequence[Pod],
        namespaces: Sequence[Namespace] = (),
        moment: int = 0,
    ) -> None:
        """Updates the snapshot from the caches.

        `position`, that of the pods, was read before the rest, and so was `moment`, the highest
        position of any cache.
        """
        first = not self.position
        self.position = position
        self.moment = max(position, moment)
        self._trim(first)
        self._update_namespaces(namespaces)
        self._update_nodes(nodes)
        self._update_pods(pods)
        if first:
            self.cluster_events.clear()
            self.known_since = self.moment

    def update_storage(
        self,
        claims: Sequence[PersistentVolumeClaim],
        versions: tuple[int, ...],
        attachments: int = 0,
    ) -> None:
        """Notes which claims have changed, and whether any other storage object has.

        `versions` are the positions of the caches of those other kinds, and `attachments` that of
        VolumeAttachments. Call it after `update`.
        """
        if attachments != self._attachments and self._storage_versions:
            event = ClusterEvent(self.moment, ClusterEventKind.ATTACHMENTS, "")
            self.cluster_events.append(event)
        self._attachments = attachments
        if versions != self._storage_versions:
            if self._storage_versions:
                self.cluster_events.append(ClusterEvent(self.moment, ClusterEventKind.STORAGE, ""))
            self._storage_versions = versions
        claims_before, present = self._claims, {}
        for claim in claims:
            key, version = claim.key, claim.metadata.resource_version
            before = claims_before.get(key)
            if before is not None and before[0] == version and version is not None:
                present[key] = before
                continue
            state = ClaimState.of(claim)
            present[key] = version, state
            if state.may_help(before[1] if before else None):
                self.claim_changes[key] = self.moment
        self._claims = present
        if len(self.claim_changes) > len(present):
            self.claim_changes = {k: m for k, m in self.claim_changes.items() if k in present}

    def _trim(self, first: bool) -> None:
        most = max(LEAST_KEPT, 2 * (len(self.pods) + len(self.nodes)))
        if len(self.log) > most:
            self.log_start += len(self.log)
            self.log.clear()
            self.layout += 1
        if len(self.cluster_events) > most and not first:
            self.known_since = self.cluster_events[-1].position
            self.cluster_events.clear()

    def _update_namespaces(self, namespaces: Sequence[Namespace]) -> None:
        labels = {ns.name: ns.metadata.labels or _NO_LABELS for ns in namespaces}
        if labels != self.namespaces:
            self.namespaces = labels
            self.layout += 1
            self.cluster_events.append(
                ClusterEvent(self.moment, ClusterEventKind.NAMESPACE_LABELS, "")
            )

    def _update_nodes(self, nodes: Sequence[Node]) -> None:
        before = self.layout
        for node in nodes:
            info = self.by_name.get(node.name)
            if info is None or info.node is not node:
                self._set_node(info or self._new(node.name), node)
        if len(nodes) != len(self.nodes) or self.layout != before:
            self._drop_nodes({node.name for node in nodes})
        if self.layout != before:
            self._order()

    def _new(self, name: str) -> NodeInfo:
        info = self.by_name[name] = NodeInfo(name)
        return info

    def _set_node(self, info: NodeInfo, node: Node) -> None:
        old = info.node
        changes = node_events(old, node)
        if old is not None and not changes and old.status.images == node.status.images:
            info.node = node  # a heartbeat
            return
        self._count_images(info, -1)
        info.set_node(node)
        self._count_images(info, 1)
        self.cluster_events += [ClusterEvent(self.moment, kind, info.name) for kind in changes]
        if old is None or ClusterEventKind.NODE_LABELS in changes or old.uid != node.uid:
            self.layout += 1
        else:
            self.log.append(SnapshotChange(info, None, 0))

    def _drop_nodes(self, present: set[str]) -> None:
        for info in [i for i in self.by_name.values() if i.node and i.name not in present]:
            self._count_images(info, -1)
            info.forget()
            info.index = -1
            self.cluster_events.append(
                ClusterEvent(self.moment, ClusterEventKind.NODE_REMOVED, info.name)
            )
            self.layout += 1
            if not info.pods:
                del self.by_name[info.name]

    def _count_images(self, info: NodeInfo, sign: int) -> None:
        for name in info.images:
            self.images[name] = self.images.get(name, 0) + sign

    def _order(self) -> None:
        """Sorts the nodes so that the zones take turns, as upstream's node tree does."""
        zones: dict[str, list[NodeInfo]] = {}
        for info in self.by_name.values():
            if info.node is not None:
                zones.setdefault(info.zone, []).append(info)
        self.nodes = []
        queues = list(zones.values())
        for turn in range(max(map(len, queues), default=0)):
            self.nodes += [queue[turn] for queue in queues if turn < len(queue)]
        for index, info in enumerate(self.nodes):
            info.index = index

    def _update_pods(self, pods: Sequence[Pod]) -> None:
        pods_before, assumed = self.pods, self._assumed
        self._assumed = set()
        alive = 0
        for pod in pods:
            info = pods_before.get(pod.metadata.uid or "")
            if info is not None and info.is_made_from(pod) and info.uid not in assumed:
                alive += 1
            elif info is not None and info.is_current(pod):
                info.follow(pod)
                alive += 1
            else:
                alive += self._replace(info, pod)
        if alive != len(pods_before):
            present = {pod.metadata.uid for pod in pods if not is_terminal(pod)}
            for info in [info for uid, info in pods_before.items() if uid not in present]:
                self._remove(info)

    def _replace(self, old: PodInfo | None, pod: Pod) -> bool:
        """Replaces a pod that has changed; returns False if the pod has ended."""
        if is_terminal(pod):
            if old is not None:
                self._remove(old)
            return False
        new = PodInfo(pod)
        if old is not None:
            self._take_out(old)
        self._put_in(new)
        if new.node and (old is None or old.node != new.node):
            self._log_event(ClusterEventKind.POD_ADDED, new)
        elif new.node and old is not None:
            self._log_event(ClusterEventKind.POD_CHANGED, new)
        elif old is not None and old.node:
            # It was assumed to be on that node, but its binding failed.
            self._log_event(ClusterEventKind.POD_REMOVED, old)
        return True

    def _remove(self, info: PodInfo) -> None:
        self._take_out(info)
        if info.node or info.nominated:
            self._log_event(ClusterEventKind.POD_REMOVED, info)

    def _log_event(self, kind: ClusterEventKind, pod: PodInfo) -> None:
        self.cluster_events.append(ClusterEvent(self.moment, kind, pod.node or pod.nominated, pod))

    # --- single changes

    def assume(self, pod: PodInfo, node: NodeInfo) -> None:
        """Counts the pod on the node for the rest of the pass.

        If the binding fails, the caches go on to have the pod without a node, and the next update
        takes it off the node.
        """
        self._take_out(pod)
        self._assumed.add(pod.uid)
        pod.node = node.name
        pod.nominated = ""
        self._put_in(pod)
        # It may help pods that found no node earlier in this pass.
        self.cluster_events.append(
            ClusterEvent(self.moment + 1, ClusterEventKind.POD_ADDED, node.name, pod)
        )

    def nominate(self, pod: PodInfo, node: str) -> None:
        """Sets the pod's nominated node, "" for none, for the rest of the pass."""
        self._take_out(pod)
        self._assumed.add(pod.uid)
        pod.nominated = node
        self._put_in(pod)

    def _put_in(self, pod: PodInfo) -> None:
        self.pods[pod.uid] = pod
        if not pod.node:
            self.pending[pod.uid] = pod
            if pod.nominated:
                self.nominated.setdefault(pod.nominated, {})[pod.uid] = pod
                self._note_nomination(pod.nominated)
            return
        info = self.by_name.get(pod.node) or self._new(pod.node)
        info.add(pod)
        self.in_namespace.setdefault(pod.namespace, {})[pod.uid] = pod
        for key in pod.claims:
            self.claim_users.setdefault(key, {})[pod.uid] = pod
        if pod.terms:
            self.with_terms[pod.uid] = pod
        self.log.append(SnapshotChange(info, pod, 1))

    def _note_nomination(self, node: str) -> None:
        self.nominations += 1
        if node in self.nominated:
            self.nominated_at[node] = self.nominations
        else:
            self.nominated_at.pop(node, None)

    def _take_out(self, pod: PodInfo) -> None:
        del self.pods[pod.uid]
        if not pod.node:
            del self.pending[pod.uid]
            if pod.nominated:
                del self.nominated[pod.nominated][pod.uid]
                if not self.nominated[pod.nominated]:
                    del self.nominated[pod.nominated]
                self._note_nomination(pod.nominated)
            return
        info = self.by_name[pod.node]
        info.remove(pod)
        del self.in_namespace[pod.namespace][pod.uid]
        for key in pod.claims:
            del self.claim_users[key][pod.uid]
            if not self.claim_users[key]:
                del self.claim_users[key]
        self.with_terms.pop(pod.uid, None)
        self.log.append(SnapshotChange(info, pod, -1))
        if info.node is None and not info.pods:
            del self.by_name[info.name]
