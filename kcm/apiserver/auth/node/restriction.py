"""The rules of NodeRestriction: a node writes its own objects and those of its pods only.

It sees what the Node authorizer cannot: the names and contents of new objects, and the node of a
pod that is deleted, evicted or gets a status.

Source: plugin/pkg/admission/noderestriction/admission.go, Kubernetes 1.36. Departure: no drivers in
the tree are migrated to CSI when audiences are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from kcm import errors
from kcm.api.certificates_v1 import (
    API_SERVER_CLIENT_KUBELET,
    KUBELET_SERVING,
    CertificateSigningRequest,
)
from kcm.api.core_v1 import Node, PersistentVolumeClaim, Pod
from kcm.api.resource_v1 import ResourceSlice
from kcm.api.scheme import Resource
from kcm.apimachinery import certificates
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.auth.authorizer import Caller
from kcm.apiserver.auth.node import mirror_pods
from kcm.apiserver.auth.node.authorizer import NODE_LEASES
from kcm.apiserver.auth.node.identity import NODE_PREFIX, node_of
from kcm.apiserver.auth.node.token_audiences import check_audience
from kcm.apiserver.auth.service_accounts import Find
from kcm.store.admission.plugin import Change

T = TypeVar("T", bound=KubeObject)


@dataclass(frozen=True)
class WantedToken:
    """What a TokenRequest asks for: the object to which the token is bound, and audiences."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    audiences: tuple[str, ...] = ()


@dataclass(frozen=True)
class NodeWrite(Change):
    """A write that a user wants: the operation, its object, and the object before it.

    `name` is that of the request, of a new object, or of the pod that an Eviction names. `token` is
    set for a TokenRequest.
    """

    operation: str  # CREATE, UPDATE or DELETE
    resource: Resource
    namespace: str
    name: str
    subresource: str = ""
    new: KubeObject | None = None
    old: KubeObject | None = None
    token: WantedToken | None = None

    def forbid(self, why: str) -> errors.Forbidden:
        """Returns the error for a write that is not allowed, in upstream's words."""
        plural, group = self.resource.plural, self.resource.group
        resource = f"{plural}.{group}" if group else plural
        return errors.Forbidden(
            f'{resource} "{self.name}" is forbidden: {why}', resource=resource, name=self.name
        )


class NodeRestriction:
    """Checks the writes of nodes. `find` finds objects in the watch caches."""

    def __init__(self, find: Find) -> None:
        self._find = find

    def check(self, caller: Caller, write: NodeWrite) -> None:
        """Raises Forbidden or NotFound for a write that the user's node may not make."""
        node = node_of(caller.user)
        if node is None:
            return
        if not node:
            raise write.forbid(f'could not determine node from user "{caller.user.name}"')
        rule = _RULES.get(write.resource.name)
        if rule is not None:
            rule(self, node, write, caller)

    def _get(self, model: type[T], key: str, plural: str) -> T:
        """Returns an object. Raises NotFound."""
        obj = self._find(model, key)
        if not isinstance(obj, model):
            raise errors.NotFound.of(plural, key.rpartition("/")[2])
        return obj

    # --- pods

    def _pod(self, node: str, write: NodeWrite, caller: Caller) -> None:
        match write.subresource:
            case "":
                self._whole_pod(node, write)
            case "status":
                _check_pod_status(node, write)
            case "eviction":
                self._eviction(node, write)
            case other:
                raise write.forbid(
                    f"unexpected pod subresource \"{other}\", only 'status' and 'eviction' are "
                    "allowed"
                )

    def _whole_pod(self, node: str, write: NodeWrite) -> None:
        if write.operation == "CREATE":
            pod = write.new_as(Pod)
            why = mirror_pods.find_fault(pod, node, lambda: self._get(Node, node, "nodes"))
            if why:
                raise write.forbid(why)
        elif write.operation == "DELETE":
            if self._pod_of(write, write.name).spec.node_name != node:
                raise write.forbid(
                    f'node "{node}" can only delete pods with spec.nodeName set to itself'
                )
        else:
            raise write.forbid(
                f'unexpected operation "{write.operation}", node "{node}" can only create and '
                "delete mirror pods"
            )

    def _pod_of(self, write: NodeWrite, name: str) -> Pod:
        return self._get(Pod, f"{write.namespace}/{name}", "pods")

    def _eviction(self, node: str, write: NodeWrite) -> None:
        if write.operation != "CREATE":
            raise write.forbid(f"unexpected operation {write.operation}")
        if not write.name:
            raise write.forbid("could not determine pod from request data")
        if self._pod_of(write, write.name).spec.node_name != node:
            raise write.forbid(f"node {node} can only evict pods with spec.nodeName set to itself")

    # --- nodes

    def _node(self, node: str, write: NodeWrite, caller: Caller) -> None:
        if write.name != node:
            raise write.forbid(f'node "{node}" is not allowed to modify node "{write.name}"')
        if write.operation == "DELETE":
            return
        new = write.new_as(Node)
        if write.operation == "CREATE":
            if new.spec.config_source is not None:
                raise write.forbid(
                    f'node "{node}" is not allowed to create pods with a non-nil configSource'
                )
            if labels := find_forbidden(new.labels, {}):
                raise write.forbid(
                    f'node "{node}" is not allowed to set the following labels: '
                    + ", ".join(labels)
                )
            return
        _check_node_update(node, write, new, write.old_as(Node))

    # --- other kinds

    def _claim(self, node: str, write: NodeWrite, caller: Caller) -> None:
        if write.subresource != "status":
            raise write.forbid("may only update PVC status")
        if write.operation != "UPDATE":
            raise write.forbid(f'unexpected operation "{write.operation}"')
        new, old = write.new_as(PersistentVolumeClaim), write.old_as(PersistentVolumeClaim)
        if _without_progress(new) != _without_progress(old):
            raise write.forbid(
                f'node "{node}" is not allowed to update fields other than status.capacity and '
                "status.conditions"
            )

    def _account(self, node: str, write: NodeWrite, caller: Caller) -> None:
        if write.operation != "CREATE" or write.subresource != "token":
            return
        bound = write.token or WantedToken()
        if bound.api_version != "v1" or bound.kind != "Pod" or not bound.name:
            raise write.forbid("node requested token not bound to a pod")
        if not bound.uid:
            raise write.forbid("node requested token with a pod binding without a uid")
        pod = self._pod_of(write, bound.name)
        if pod.uid != bound.uid:
            raise write.forbid(
                f"the UID in the bound object reference ({bound.uid}) does not match the UID in "
                "record. The object might have been deleted and then recreated"
            )
        if pod.spec.node_name != node:
            raise write.forbid("node requested token bound to a pod scheduled on a different node")
        why = check_audience(self._find, caller, pod, write.name, bound.audiences)
        if why:
            raise write.forbid(why)

    def _lease(self, node: str, write: NodeWrite, caller: Caller) -> None:
        if write.namespace != NODE_LEASES:
            raise write.forbid(f'can only access leases in the "{NODE_LEASES}" system namespace')
        if write.name != node:
            raise write.forbid(
                "can only access node lease with the same name as the requesting node"
            )

    def _csi_node(self, node: str, write: NodeWrite, caller: Caller) -> None:
        if write.name != node:
            raise write.forbid("can only access CSINode with the same name as the requesting node")

    def _slice(self, node: str, write: NodeWrite, caller: Caller) -> None:
        """Checks new and deleted slices; of others the authorizer has checked the node."""
        checked = {"CREATE": write.new_as, "DELETE": write.old_as}
        if write.operation not in checked:
            return
        subject = checked[write.operation](ResourceSlice)
        if subject.spec.node_name != node:
            raise write.forbid(
                f"can only {write.operation.lower()} ResourceSlice with the same NodeName as the "
                "requesting node"
            )

    def _signing_request(self, node: str, write: NodeWrite, caller: Caller) -> None:
        if write.operation != "CREATE" or write.subresource:
            return
        spec = write.new_as(CertificateSigningRequest).spec
        if spec.signer_name not in {KUBELET_SERVING, API_SERVER_CLIENT_KUBELET}:
            return
        try:
            name = certificates.parse_request(spec.request).common_name
        except ValueError as error:
            raise write.forbid(f"unable to parse csr: {error}") from None
        if name != f"{NODE_PREFIX}{node}":
            raise write.forbid(f"can only create a node CSR with CN={NODE_PREFIX}{node}")


def _check_pod_status(node: str, write: NodeWrite) -> None:
    if write.operation != "UPDATE":
        raise write.forbid(f'unexpected operation "{write.operation}"')
    new, old = write.new_as(Pod), write.old_as(Pod)
    if old.spec.node_name != node:
        raise write.forbid(
            f'node "{node}" can only update pod status for pods with spec.nodeName set to itself'
        )
    if new.labels != old.labels:
        raise write.forbid(f'node "{node}" cannot update labels through pod status')
    claims = (new.status.resource_claim_statuses or [], old.status.resource_claim_statuses or [])
    if claims[0] != claims[1]:
        raise write.forbid(f'node "{node}" cannot update resource claim statues')
    if new.status.extended_resource_claim_status != old.status.extended_resource_claim_status:
        raise write.forbid(f'node "{node}" cannot update extended resource claim status')


def _check_node_update(node: str, write: NodeWrite, new: Node, old: Node) -> None:
    source = new.spec.config_source
    if source is not None and source != old.spec.config_source:
        raise write.forbid(
            f'node "{node}" is not allowed to update configSource to a new non-nil configSource'
        )
    if (new.spec.taints or []) != (old.spec.taints or []):
        raise write.forbid(f'node "{node}" is not allowed to modify taints')
    if (new.metadata.owner_references or []) != (old.metadata.owner_references or []):
        raise write.forbid(f'node "{node}" is not allowed to modify ownerReferences')
    if labels := find_forbidden(new.labels, old.labels):
        raise write.forbid(f"is not allowed to modify labels: {', '.join(labels)}")


def _without_progress(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """Returns the claim without what its node may change, and without what the server sets."""
    status = claim.status.replace(
        capacity=None, conditions=None, allocated_resources=None, allocated_resource_statuses=None
    )
    return claim.with_metadata(resource_version=None, managed_fields=None).with_status(status)


Rule = Callable[[NodeRestriction, str, NodeWrite, Caller], None]
_RULES: Mapping[str, Rule] = {
    "pods": NodeRestriction._pod,
    "nodes": NodeRestriction._node,
    "persistentvolumeclaims": NodeRestriction._claim,
    "serviceaccounts": NodeRestriction._account,
    "leases.coordination.k8s.io": NodeRestriction._lease,
    "csinodes.storage.k8s.io": NodeRestriction._csi_node,
    "resourceslices.resource.k8s.io": NodeRestriction._slice,
    "certificatesigningrequests.certificates.k8s.io": NodeRestriction._signing_request,
}
"""The rules of the kinds that a node may write, by name of the resource."""


# --- The labels that a kubelet may set on its Node.
#
# Source: plugin/pkg/admission/noderestriction/admission.go and
# staging/src/k8s.io/kubelet/pkg/apis/well_known_labels.go, Kubernetes 1.33.


_KUBELET_LABELS = frozenset(
    {
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    }
)
_KUBELET_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_KUBERNETES_DOMAINS = ("kubernetes.io", "k8s.io")
_RESTRICTED = "node-restriction.kubernetes.io"


def find_forbidden(new: Mapping[str, str], old: Mapping[str, str]) -> list[str]:
    """Returns the labels, sorted, that differ and that no kubelet may change."""
    changed = {name for name in {*new, *old} if new.get(name) != old.get(name)}
    return sorted(name for name in changed if _is_forbidden(name))


def _is_forbidden(label: str) -> bool:
    prefix, slash, _ = label.partition("/")
    domain = prefix if slash else ""
    if _is_within(domain, _RESTRICTED):
        return True
    if not any(_is_within(domain, own) for own in _KUBERNETES_DOMAINS):
        return False
    return label not in _KUBELET_LABELS and not any(
        _is_within(domain, own) for own in _KUBELET_DOMAINS
    )


def _is_within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")
