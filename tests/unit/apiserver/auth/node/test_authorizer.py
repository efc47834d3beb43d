"""Decisions of the Node authorizer, after upstream's node_authorizer_test.go."""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.api.core_v1 import (
    ObjectReference,
    PersistentVolume,
    Pod,
    Volume,
)
from kcm.api.core_v1.persistent_volumes import CSIPersistentVolumeSource, PersistentVolumeSpec
from kcm.api.core_v1.pods import (
    PodExtendedResourceClaimStatus,
    PodResourceClaim,
    PodResourceClaimStatus,
)
from kcm.api.core_v1.references import SecretReference
from kcm.api.core_v1.volume_sources import (
    ConfigMapVolumeSource,
    PersistentVolumeClaimVolumeSource,
    SecretVolumeSource,
)
from kcm.api.rbac_v1 import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from kcm.api.resource_v1 import ResourceSlice
from kcm.api.resource_v1.slices import ResourceSliceSpec
from kcm.api.storage_v1 import VolumeAttachment, VolumeAttachmentSpec
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.apiserver.auth.attributes import Attributes, User
from kcm.apiserver.auth.authorizer import Union
from kcm.apiserver.auth.node.authorizer import NodeAuthorizer
from kcm.apiserver.auth.node.graph_feed import GraphFeed
from kcm.apiserver.auth.rbac import RBAC
from kcm.testing.builders import pod
from tests.unit.apiserver.auth.caches import FakeHub

NODE0 = User("system:node:node0", groups=("system:nodes",))
UNREGISTERED = User("system:node:nodeunregistered", groups=("system:nodes",))
LEASES, STORAGE, RESOURCE = "coordination.k8s.io", "storage.k8s.io", "resource.k8s.io"


def sample() -> list[KubeObject]:
    """Returns the objects of two nodes, named as upstream's generate() does."""
    made: list[KubeObject] = []
    for node in ("node0", "node1"):
        name = f"pod0-{node}"
        volumes = [
            Volume(name="a", secret=SecretVolumeSource(secret_name=f"secret0-{name}")),
            Volume(name="b", secret=SecretVolumeSource(secret_name="secret0-shared")),
            Volume(name="c", config_map=ConfigMapVolumeSource(name=f"configmap0-{name}")),
            Volume(name="d", persistent_volume_claim=PersistentVolumeClaimVolumeSource(
                claim_name=f"pvc0-{name}")),
        ]  # fmt: skip
        made.append(_pod(name, node, volumes, f"svcacct0-{node}"))
        csi = CSIPersistentVolumeSource(
            node_publish_secret_ref=SecretReference(name=f"secret-pv0-{name}-ns0", namespace="ns0"),
            controller_publish_secret_ref=SecretReference(name="hidden", namespace="ns0"),
        )
        claim = ObjectReference(namespace="ns0", name=f"pvc0-{name}")
        made.append(
            PersistentVolume(
                metadata=ObjectMeta(name=f"pv0-{name}-ns0"),
                spec=PersistentVolumeSpec(csi=csi, claim_ref=claim),
            )
        )
        made.append(
            VolumeAttachment(
                metadata=ObjectMeta(name=f"attachment0-{node}"),
                spec=VolumeAttachmentSpec(node_name=node),
            )
        )
        made.append(
            ResourceSlice(
                metadata=ObjectMeta(name=f"slice0-{node}"), spec=ResourceSliceSpec(node_name=node)
            )
        )
    return made


def _pod(name: str, node: str, volumes: list[Volume], account: str) -> Pod:
    statuses = [PodResourceClaimStatus(name="b", resource_claim_name=f"made-{name}")]
    extended = PodExtendedResourceClaimStatus(resource_claim_name=f"extended-{name}")
    claims = [
        PodResourceClaim(name="a", resource_claim_name=f"claim0-{name}"),
        PodResourceClaim(name="b", resource_claim_template_name="template"),
    ]
    made = pod(
        name,
        namespace="ns0",
        node=node,
        resource_claims=claims,
        status={
            "resource_claim_statuses": statuses,
            "extended_resource_claim_status": extended,
        },
    )
    return made.with_spec(made.spec.replace(volumes=volumes, service_account_name=account))


def ask(verb: str, resource: str, name: str = "", namespace: str = "", **more: str) -> Attributes:
    """Returns the attributes of a request. `resource` is written as rules do: pods/status."""
    plural, _, subresource = resource.partition("/")
    group, selector = more.get("group", ""), more.get("selector", "")
    field, _, value = selector.partition("=")
    fields = ((field, value),) if selector else ()
    return Attributes(verb, group, "v1", plural, subresource, namespace, name, fields=fields)


def authorizer(*objects: KubeObject) -> NodeAuthorizer:
    return NodeAuthorizer(GraphFeed(FakeHub(*objects)))


ALLOWED = {
    "allowed configmap": ask("get", "configmaps", "configmap0-pod0-node0", "ns0"),
    "allowed secret via pod": ask("get", "secrets", "secret0-pod0-node0", "ns0"),
    "list allowed secret via pod": ask("list", "secrets", "secret0-pod0-node0", "ns0"),
    "watch allowed secret via pod": ask("watch", "secrets", "secret0-pod0-node0", "ns0"),
    "allowed shared secret via pod": ask("get", "secrets", "secret0-shared", "ns0"),
    "allowed shared secret via pvc": ask("get", "secrets", "secret-pv0-pod0-node0-ns0", "ns0"),
    "allowed pvc": ask("get", "persistentvolumeclaims", "pvc0-pod0-node0", "ns0"),
    "allowed pvc status": ask("patch", "persistentvolumeclaims/status", "pvc0-pod0-node0", "ns0"),
    "allowed pv": ask("get", "persistentvolumes", "pv0-pod0-node0-ns0"),
    **{
        f"allowed {name} claim": ask(
            "get", "resourceclaims", f"{name}-pod0-node0", "ns0", group=RESOURCE
        )
        for name in ("claim0", "made", "extended")
    },
    **{
        f"{verb} own slice": ask(verb, "resourceslices", "slice0-node0", group=RESOURCE)
        for verb in ("get", "create", "update", "patch", "delete")
    },
    **{
        f"{verb} own slices": ask(
            verb, "resourceslices", selector="spec.nodeName=node0", group=RESOURCE
        )
        for verb in ("list", "watch", "deletecollection")
    },
    "allowed attachment": ask("get", "volumeattachments", "attachment0-node0", group=STORAGE),
    "allowed svcacct token create": ask("create", "serviceaccounts/token", "svcacct0-node0", "ns0"),
    "allowed svcacct get": ask("get", "serviceaccounts", "svcacct0-node0", "ns0"),
    **{
        f"allowed {verb} node lease": ask(verb, "leases", "node0", "kube-node-lease", group=LEASES)
        for verb in ("get", "create", "update", "patch", "delete")
    },
    **{
        f"allowed {verb} CSINode": ask(verb, "csinodes", "node0", group=STORAGE)
        for verb in ("get", "create", "update", "patch", "delete")
    },
    "get related pod": ask("get", "pods", "pod0-node0", "ns0"),
    "list related pods": ask("list", "pods", selector="spec.nodeName=node0"),
    "list single related pod": ask("list", "pods", "pod0-node0", "ns0"),
    "watch related pods": ask("watch", "pods", selector="spec.nodeName=node0"),
    "watch single related pod": ask("watch", "pods", "pod0-node0", "ns0"),
    "create unnamed pod": ask("create", "pods", "", "ns0"),
    "delete related pod": ask("delete", "pods", "pod0-node0", "ns0"),
    "delete unrelated pod": ask("delete", "pods", "pod0-node1", "ns0"),
    "update related pod status": ask("update", "pods/status", "pod0-node0", "ns0"),
    "update unrelated pod status": ask("update", "pods/status", "pod0-node1", "ns0"),
    "patch related pod status": ask("patch", "pods/status", "pod0-node0", "ns0"),
    "patch unrelated pod status": ask("patch", "pods/status", "pod0-node1", "ns0"),
    "create related pod eviction": ask("create", "pods/eviction", "pod0-node0", "ns0"),
    "create unrelated pod eviction": ask("create", "pods/eviction", "pod0-node1", "ns0"),
    "get related node": ask("get", "nodes", "node0"),
    "list single related node": ask("list", "nodes", "node0"),
    "watch single related node": ask("watch", "nodes", "node0"),
    "create related node": ask("create", "nodes", "node0"),
    "update related node": ask("update", "nodes", "node0"),
    "patch related node": ask("patch", "nodes", "node0"),
    "update related node status": ask("update", "nodes/status", "node0"),
    "patch related node status": ask("patch", "nodes/status", "node0"),
    "watch services": ask("watch", "services"),
    "create a signing request": ask(
        "create", "certificatesigningrequests", group="certificates.k8s.io"
    ),
}
UNRELATED = "no relationship found between node 'node0' and this object"
FOREIGN_LEASE = "can only access node lease with the same name as the requesting node"
FOREIGN_CSI = "can only access CSINode with the same name as the requesting node"
SLICE_FIELDS = "can only list/watch/deletecollection resourceslices with nodeName field selector"
DENIED = {
    **{
        f"disallowed {name} claim": (
            ask("get", "resourceclaims", f"{name}-pod0-node1", "ns0", group=RESOURCE),
            UNRELATED,
        )
        for name in ("claim0", "made", "extended")
    },
    "list claims": (
        ask("list", "resourceclaims", "", "ns0", group=RESOURCE),
        "can only get individual resources of this type",
    ),
    **{
        f"{verb} a slice of another node": (
            ask(verb, "resourceslices", "slice0-node1", group=RESOURCE),
            UNRELATED,
        )
        for verb in ("get", "update", "patch", "delete")
    },
    **{
        f"{verb} slices {fields}": (
            ask(verb, "resourceslices", selector=fields, group=RESOURCE),
            SLICE_FIELDS,
        )
        for verb in ("list", "watch", "deletecollection")
        for fields in ("", "spec.nodeName=node1", "metadata.name=node0")
    },
    "a subresource of a slice": (
        ask("get", "resourceslices/status", "slice0-node0", group=RESOURCE),
        "cannot authorize ResourceSlice subresources",
    ),
    "disallowed list many secrets": (ask("list", "secrets", "", "ns0"), "No Object name found"),
    "disallowed watch many secrets": (ask("watch", "secrets", "", "ns0"), "No Object name found"),
    "disallowed list secrets from all namespaces with name": (
        ask("list", "secrets", "secret0-pod0-node0"),
        "can only read namespaced object of this type",
    ),
    "disallowed update secret": (
        ask("update", "secrets", "secret0-pod0-node0", "ns0"),
        "can only read resources of this type",
    ),
    "disallowed configmap": (ask("get", "configmaps", "configmap0-pod0-node1", "ns0"), UNRELATED),
    "disallowed secret via pod": (ask("get", "secrets", "secret0-pod0-node1", "ns0"), UNRELATED),
    "disallowed shared secret via pvc": (
        ask("get", "secrets", "secret-pv0-pod0-node1-ns0", "ns0"),
        UNRELATED,
    ),
    "a secret for the controller only": (ask("get", "secrets", "hidden", "ns0"), UNRELATED),
    "disallowed pvc": (ask("get", "persistentvolumeclaims", "pvc0-pod0-node1", "ns0"), UNRELATED),
    "disallowed pvc list": (
        ask("list", "persistentvolumeclaims", "", "ns0"),
        "can only get individual resources of this type",
    ),
    "disallowed pv": (ask("get", "persistentvolumes", "pv0-pod0-node1-ns0"), UNRELATED),
    "disallowed attachment": (
        ask("get", "volumeattachments", "attachment0-node1", group=STORAGE),
        UNRELATED,
    ),
    "disallowed svcacct token create - serviceaccount not attached to node": (
        ask("create", "serviceaccounts/token", "svcacct0-node1", "ns0"),
        UNRELATED,
    ),
    "disallowed svcacct get - serviceaccount not attached to node": (
        ask("get", "serviceaccounts", "svcacct0-node1", "ns0"),
        UNRELATED,
    ),
    "disallowed svcacct token create - no subresource": (
        ask("create", "serviceaccounts", "svcacct0-node0", "ns0"),
        "can only create token subresource of serviceaccount",
    ),
    "disallowed svcacct token create - non create": (
        ask("update", "serviceaccounts/token", "svcacct0-node0", "ns0"),
        "can only create tokens for individual service accounts",
    ),
    **{
        f"disallowed {verb} lease in namespace other than kube-node-lease": (
            ask(verb, "leases", "node0", "foo", group=LEASES),
            'can only access leases in the "kube-node-lease" system namespace',
        )
        for verb in ("get", "create", "update", "patch", "delete")
    },
    **{
        f"disallowed {verb} another node's lease": (
            ask(verb, "leases", "node1", "kube-node-lease", group=LEASES),
            FOREIGN_LEASE,
        )
        for verb in ("get", "update", "patch", "delete")
    },
    **{
        f"disallowed {verb} node leases": (
            ask(verb, "leases", "", "kube-node-lease", group=LEASES),
            "can only get, create, update, patch, or delete a node lease",
        )
        for verb in ("list", "watch")
    },
    "disallowed CSINode with subresource": (
        ask("get", "csinodes/csiDrivers", "node0", group=STORAGE),
        "cannot authorize CSINode subresources",
    ),
    **{
        f"disallowed {verb} another node's CSINode": (
            ask(verb, "csinodes", "node1", group=STORAGE),
            FOREIGN_CSI,
        )
        for verb in ("get", "update", "patch", "delete")
    },
    **{
        f"disallowed {verb} CSINodes": (
            ask(verb, "csinodes", group=STORAGE),
            "can only get, create, update, patch, or delete a CSINode",
        )
        for verb in ("list", "watch")
    },
    "get unrelated pod": (ask("get", "pods", "pod0-node1", "ns0"), UNRELATED),
    "list unrelated pods": (
        ask("list", "pods"),
        "can only list/watch pods with spec.nodeName field selector",
    ),
    "watch another node's pods": (
        ask("watch", "pods", selector="spec.nodeName=node1"),
        "can only list/watch pods with spec.nodeName field selector",
    ),
    "create pod proxy subresource forbidden": (ask("create", "pods/proxy", "", "ns0"), ""),
    "delete pod proxy subresource forbidden": (
        ask("delete", "pods/proxy", "pod0-node0", "ns0"),
        "",
    ),
    "get pod status": (ask("get", "pods/status", "pod0-node0", "ns0"), ""),
    "update a pod": (ask("update", "pods", "pod0-node0", "ns0"), ""),
    "get unrelated node": (
        ask("get", "nodes", "node1"),
        "node 'node0' cannot read 'node1', only its own Node object",
    ),
    "list single unrelated node": (
        ask("list", "nodes", "node1"),
        "node 'node0' cannot read 'node1', only its own Node object",
    ),
    "list all nodes": (
        ask("list", "nodes"),
        "node 'node0' cannot read all nodes, only its own Node object",
    ),
    "delete related node": (ask("delete", "nodes", "node0"), ""),
    "delete a deployment": (ask("delete", "deployments", "x", "ns0", group="apps"), ""),
    "a page": (Attributes("get", path="/metrics"), ""),
}


# Source of both tables: TestNodeAuthorizer
@pytest.mark.parametrize("name", ALLOWED)
def test_a_node_may(name: str) -> None:
    assert authorizer(*sample()).authorize(NODE0, ALLOWED[name]).allowed


@pytest.mark.parametrize("name", DENIED)
def test_a_node_may_not(name: str) -> None:
    asked, reason = DENIED[name]
    decision = authorizer(*sample()).authorize(NODE0, asked)
    assert (decision.allowed, decision.reason) == (False, reason)


def test_a_node_that_is_not_registered_may_read_its_own_node_only() -> None:
    nodes = authorizer(*sample())
    assert nodes.authorize(UNREGISTERED, ask("get", "nodes", "nodeunregistered")).allowed
    assert not nodes.authorize(UNREGISTERED, ask("get", "nodes", "node0")).allowed


# Source: TestNodeAuthorizer's Test_nodeIdentifier, pkg/auth/nodeidentifier/default_test.go
@pytest.mark.parametrize(
    "user",
    [
        User("bob"),
        User("system:node:node0"),
        User("bob", groups=("system:nodes",)),
        User("system:nodes:node0", groups=("system:nodes",)),
    ],
)
def test_it_has_no_opinion_about_others(user: User) -> None:
    decision = authorizer(*sample()).authorize(user, ask("get", "nodes", "node0"))
    assert (decision.allowed, decision.reason) == (False, "")


def test_a_node_without_a_name_may_do_nothing() -> None:
    user = User("system:node:", groups=("system:nodes",))
    decision = authorizer(*sample()).authorize(user, ask("get", "nodes", ""))
    assert not decision.allowed
    assert decision.reason == 'unknown node for user "system:node:"'


def test_a_mirror_pod_gives_its_node_nothing() -> None:
    own, volume, _ = sample()[:3]
    assert isinstance(own, Pod)
    mirror = own.with_metadata(annotations={"kubernetes.io/config.mirror": "x"})
    nodes = authorizer(mirror, volume)
    assert nodes.authorize(NODE0, ALLOWED["get related pod"]).allowed
    for name in ("allowed configmap", "allowed secret via pod", "allowed pvc", "allowed pv",
                 "allowed shared secret via pvc", "allowed svcacct token create"):  # fmt: skip
        assert not nodes.authorize(NODE0, ALLOWED[name]).allowed, name


def test_before_the_caches_are_filled_the_store_is_unavailable() -> None:
    nodes = NodeAuthorizer(GraphFeed(FakeHub(filled=False)))
    with pytest.raises(errors.StoreUnavailable):
        nodes.authorize(NODE0, ALLOWED["allowed secret via pod"])


def test_roles_give_a_node_more_and_the_reason_stays_for_what_they_do_not() -> None:
    meta = ObjectMeta(name="more")
    rule = PolicyRule(verbs=["get"], api_groups=[""], resources=["secrets"], resource_names=["x"])
    reference = RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name="more")
    subject = Subject(kind="Group", name="system:nodes")
    hub = FakeHub(
        *sample(),
        ClusterRole(metadata=meta, rules=[rule]),
        ClusterRoleBinding(metadata=meta, role_ref=reference, subjects=[subject]),
    )
    both = Union([NodeAuthorizer(GraphFeed(hub)), RBAC(hub)])
    assert both.authorize(NODE0, ask("get", "secrets", "x", "ns0")).allowed
    assert both.authorize(NODE0, ask("get", "secrets", "y", "ns0")).reason == UNRELATED
