"""What NodeRestriction lets a node write, after upstream's admission_test.go."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kcm import errors
from kcm.api import scheme
from kcm.api.certificates_v1 import (
    API_SERVER_CLIENT,
    API_SERVER_CLIENT_KUBELET,
    KUBELET_SERVING,
    CertificateSigningRequest,
)
from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import (
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    ServiceAccount,
    Taint,
)
from kcm.api.core_v1.nodes import ConfigMapNodeConfigSource, NodeConfigSource
from kcm.api.storage_v1 import CSIDriver, CSINode
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.apimachinery.quantity import Quantity
from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.auth.authorizer import AlwaysAllow, AlwaysDeny, AuthorizerDecision, Caller
from kcm.apiserver.auth.node.restriction import (
    NodeRestriction,
    Operation,
    WantedToken,
    Write,
)
from kcm.apiserver.auth.users import User
from kcm.testing.builders import node as build_node
from tests.signing_requests import build_pem_request, signing_request
from tests.unit.apiserver.auth.caches import FakeHub

MY_NODE = User("system:node:mynode", groups=("system:nodes",))
NODE = build_node("mynode").with_metadata(uid="mynode-uid", labels=None)
UNEXPECTED = "unexpected operation"
ITSELF = "spec.nodeName set to itself"


def a_pod(name: str, node: str | None, **spec: object) -> Pod:
    """Returns upstream's makeTestPod without the mirror's metadata."""
    body = {"metadata": {"namespace": "ns", "name": name, "uid": "pod-uid"}}
    return Pod.model_validate({**body, "spec": {"nodeName": node, "containers": [], **spec}})


def mirror(name: str, node: str | None, **spec: object) -> Pod:
    owner = {"apiVersion": "v1", "kind": "Node", "name": node or "", "uid": f"{node}-uid",
             "controller": True}  # fmt: skip
    made = a_pod(name, node, **spec)
    return Pod.model_validate(
        made.model_dump(by_alias=True, exclude_none=True)
        | {
            "metadata": {
                "namespace": "ns",
                "name": name,
                "uid": "pod-uid",
                "annotations": {"kubernetes.io/config.mirror": "true"},
                "ownerReferences": [owner],
            }
        }
    )


PODS = {
    "mirror pod bound to self": mirror("mymirrorpod", "mynode"),
    "mirror pod bound to another": mirror("othermirrorpod", "othernode"),
    "mirror pod unbound": mirror("unboundmirrorpod", None),
    "normal pod bound to self": a_pod("mypod", "mynode"),
    "normal pod bound to another": a_pod("otherpod", "othernode"),
    "normal pod unbound": a_pod("unboundpod", None),
}


def check(
    operation: Operation,
    new: KubeObject | None,
    old: KubeObject | None = None,
    *,
    subresource: str = "",
    token: WantedToken | None = None,
    name: str | None = None,
    user: User = MY_NODE,
    there: tuple[KubeObject, ...] = (),
    caller: Caller | None = None,
) -> str:
    """Returns the message of the refusal, "" for a write that is allowed."""
    about = new or old
    assert about is not None
    hub = FakeHub(NODE, *PODS.values(), *there)

    def find(model: type[KubeObject], key: str) -> KubeObject | None:
        entry = hub.cache(scheme.resource_of(model)).get(key)
        return None if entry is None else entry.obj

    gone = None if operation == "DELETE" else new
    write = Write(
        operation,
        scheme.resource_of(about),
        about.namespace,
        about.name if name is None else name,
        subresource,
        gone,
        old,
        token,
    )
    try:
        NodeRestriction(find).check(caller or Caller(user, AlwaysDeny()), write)
    except (errors.Forbidden, errors.NotFound) as error:
        return error.message
    return ""


# --- pods; the names of the cases are upstream's


@pytest.mark.parametrize(
    ("which", "why"),
    [
        ("mirror pod bound to self", ""),
        ("mirror pod bound to another", ITSELF),
        ("mirror pod unbound", ITSELF),
        ("normal pod bound to self", "can only create mirror pods"),
        ("normal pod bound to another", "can only create mirror pods"),
        ("normal pod unbound", "can only create mirror pods"),
    ],
)
def test_create_of_a(which: str, why: str) -> None:
    found = check("CREATE", PODS[which])
    assert (why in found) if why else not found


@pytest.mark.parametrize("which", PODS)
def test_delete_eviction_and_status_of_a(which: str) -> None:
    pod, own = PODS[which], which.endswith("bound to self")
    for found in (
        check("DELETE", pod),
        check("UPDATE", pod, pod, subresource="status"),
        check("CREATE", pod, subresource="eviction"),
    ):
        assert found == "" if own else ITSELF in found


@pytest.mark.parametrize("which", PODS)
def test_no_other_operation_is_expected_of_a(which: str) -> None:
    pod = PODS[which]
    for operation, subresource in (
        ("UPDATE", ""),
        ("CREATE", "status"),
        ("DELETE", "status"),
        ("UPDATE", "eviction"),
        ("DELETE", "eviction"),
    ):
        assert UNEXPECTED in check(operation, pod, pod, subresource=subresource)  # type: ignore[arg-type]
    assert "unexpected pod subresource" in check("UPDATE", pod, pod, subresource="binding")


def test_an_unknown_pod_is_not_found() -> None:
    unknown = a_pod("nopod", "mynode")
    assert check("DELETE", unknown) == 'pods "nopod" not found'
    assert "not found" in check("CREATE", unknown, subresource="eviction")
    nameless = check("CREATE", unknown, subresource="eviction", name="")
    assert "could not determine pod from request data" in nameless


def test_labels_do_not_change_through_a_pod_status() -> None:
    pod = PODS["normal pod bound to self"]
    labelled = pod.with_metadata(labels={"label-a": "value-a"})
    for new, old in ((labelled, pod), (pod, labelled)):
        found = check("UPDATE", new, old, subresource="status")
        assert "cannot update labels through pod status" in found


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({"serviceAccountName": "foo"}, "a service account"),
        ({"serviceAccount": "foo"}, "a service account"),
        ({"volumes": [{"name": "v", "secret": {"secretName": "foo"}}]}, "secrets"),
        ({"volumes": [{"name": "v", "configMap": {"name": "foo"}}]}, "configmaps"),
        (
            {"volumes": [
                {"name": "v", "projected": {"sources": [{"clusterTrustBundle": {"path": "p"}}]}}
            ]},
            "clustertrustbundles",
        ),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "foo"}}]},
            "persistentvolumeclaims",
        ),
        ({"resourceClaims": [{"name": "c", "resourceClaimName": "x"}]}, "resourceclaims"),
    ],
)  # fmt: skip
def test_forbid_create_of_pod_referencing(spec: Mapping[str, object], what: str) -> None:
    found = check("CREATE", mirror("mypod", "mynode", **spec))
    assert found.endswith(f'node "mynode" can not create pods that reference {what}')


# Source: Test_nodePlugin_Admit_OwnerReference
@pytest.mark.parametrize(
    ("owners", "why"),
    [
        ([{}], ""),
        (
            [{}, {}],
            'node "mynode" can only create pods with a single owner reference set to itself',
        ),
        ([], 'node "mynode" can only create pods with an owner reference set to itself'),
        ([{"kind": "Foo"}], "can only create pods with an owner reference set to itself"),
        ([{"apiVersion": "v2"}], "can only create pods with an owner reference set to itself"),
        ([{"name": "other"}], "can only create pods with an owner reference set to itself"),
        ([{"uid": "wrong"}], "node mynode UID mismatch: expected wrong got mynode-uid"),
        ([{"controller": None}], "can only create pods with a controller owner reference set to"),
        ([{"controller": False}], "can only create pods with a controller owner reference set to"),
        ([{"blockOwnerDeletion": True}], "must not set blockOwnerDeletion on an owner reference"),
        ([{"blockOwnerDeletion": False}], ""),
    ],
)
def test_the_owner_of_a_mirror_pod_is_its_node(owners: list[dict[str, object]], why: str) -> None:
    usual = {"apiVersion": "v1", "kind": "Node", "name": "mynode", "uid": "mynode-uid",
             "controller": True}  # fmt: skip
    body = {
        "metadata": {
            "namespace": "ns",
            "name": "test",
            "annotations": {"kubernetes.io/config.mirror": "true"},
            "ownerReferences": [usual | changes for changes in owners],
        },
        "spec": {"nodeName": "mynode", "containers": []},
    }
    found = check("CREATE", Pod.model_validate(body))
    assert (why in found) if why else not found


# --- nodes

ALLOWED_LABELS = (
    "foo", "example.com/foo", "kubernetes.io/hostname", "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region", "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type", "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
    "kubernetes.io/os", "kubernetes.io/arch", "kubelet.kubernetes.io/foo",
    "foo.kubelet.kubernetes.io/foo", "node.kubernetes.io/foo", "foo.node.kubernetes.io/foo",
)  # fmt: skip
FORBIDDEN_LABELS = (
    "foo.node-restriction.kubernetes.io/foo", "node-restriction.kubernetes.io/foo",
    "other.k8s.io/foo", "other.kubernetes.io/foo",
)  # fmt: skip
LISTED = ", ".join(FORBIDDEN_LABELS)


def labelled(*labels: str, value: str = "value") -> Node:
    return NODE.with_metadata(labels=dict.fromkeys(labels, value))


def tainted(value: str) -> Node:
    return NODE.with_spec(NODE.spec.replace(taints=[Taint(key="mykey", value=value)]))


def configured(name: str) -> Node:
    source = NodeConfigSource(config_map=ConfigMapNodeConfigSource(name=name, namespace="bar"))
    return NODE.with_spec(NODE.spec.replace(config_source=source))


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (NODE, ""),
        (tainted("A"), ""),
        (labelled(*ALLOWED_LABELS), ""),
        (
            labelled(*FORBIDDEN_LABELS),
            f'node "mynode" is not allowed to set the following labels: {LISTED}',
        ),
        (configured("foo"), "is not allowed to create pods with a non-nil configSource"),
        (
            build_node("othernode"),
            'nodes "othernode" is forbidden: node "mynode" is not allowed to modify node '
            '"othernode"',
        ),
    ],
    ids=["my node", "with taints", "with labels", "with forbidden labels", "configSource", "other"],
)
def test_create_of_a_node(new: Node, why: str) -> None:
    found = check("CREATE", new)
    assert (why in found) if why else not found


MODIFY = f"is not allowed to modify labels: {LISTED}"
CONFIG = "update configSource to a new non-nil configSource"


@pytest.mark.parametrize(
    ("new", "old", "why"),
    [
        (NODE, NODE, ""),
        (configured("foo"), NODE, CONFIG),
        (configured("qux"), configured("foo"), CONFIG),
        (configured("foo"), configured("foo"), ""),
        (NODE, configured("foo"), ""),
        (tainted("A"), tainted("A"), ""),
        (labelled(*ALLOWED_LABELS), NODE, ""),
        (NODE, labelled(*ALLOWED_LABELS), ""),
        (labelled(*ALLOWED_LABELS, value="b"), labelled(*ALLOWED_LABELS, value="a"), ""),
        (labelled(*ALLOWED_LABELS, *FORBIDDEN_LABELS), labelled(*FORBIDDEN_LABELS), ""),
        (tainted("A"), NODE, "is not allowed to modify taints"),
        (NODE, tainted("A"), "is not allowed to modify taints"),
        (tainted("A"), tainted("B"), "is not allowed to modify taints"),
        (labelled(*FORBIDDEN_LABELS), NODE, MODIFY),
        (NODE, labelled(*FORBIDDEN_LABELS), MODIFY),
        (labelled(*FORBIDDEN_LABELS, value="n"), labelled(*FORBIDDEN_LABELS, value="o"), MODIFY),
        (build_node("othernode"), build_node("othernode"), "is not allowed to modify node"),
    ],
)
def test_update_of_a_node(new: Node, old: Node, why: str) -> None:
    for subresource in ("", "status"):
        found = check("UPDATE", new, old, subresource=subresource)
        assert (why in found) if why else not found


def test_delete_of_a_node() -> None:
    assert not check("DELETE", NODE)
    assert "is not allowed to modify node" in check("DELETE", build_node("othernode"))


# --- tokens


def token_request(pod: Pod | None, uid: str = "pod-uid", *audiences: str) -> WantedToken:
    if pod is None:
        return WantedToken(audiences=audiences)
    return WantedToken("v1", "Pod", pod.name, uid, audiences)


ACCOUNT = ServiceAccount(metadata=ObjectMeta(name="mysa", namespace="ns"))


def ask_token(body: WantedToken, *there: KubeObject, caller: Caller | None = None) -> str:
    return check("CREATE", ACCOUNT, subresource="token", token=body, there=there, caller=caller)


def projecting(audience: str) -> Pod:
    source = {"serviceAccountToken": {"path": "token", "audience": audience}}
    volume = {"name": "token", "projected": {"sources": [source]}}
    return a_pod("projecting", "mynode", volumes=[volume])


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (token_request(None), "node requested token not bound to a pod"),
        (token_request(a_pod("nopod", None)), 'pods "nopod" not found'),
        (
            token_request(PODS["normal pod bound to self"], ""),
            "node requested token with a pod binding without a uid",
        ),
        (
            token_request(PODS["normal pod bound to self"], "other"),
            "the UID in the bound object reference (other) does not match the UID in record",
        ),
        (
            token_request(PODS["normal pod bound to another"]),
            "node requested token bound to a pod scheduled on a different node",
        ),
    ],
    ids=["unbound", "nonexistant pod", "without uid", "wrong uid", "another node"],
)
def test_forbid_create_of_token(body: WantedToken, why: str) -> None:
    assert why in ask_token(body)


def test_allow_create_of_token_when_audience_in_psat_volume() -> None:
    own, foo = projecting(""), projecting("foo")
    assert not ask_token(token_request(own), own)
    assert not ask_token(token_request(foo, "pod-uid", "foo"), foo)


def test_forbid_create_of_token_with_multiple_audiences() -> None:
    pod = projecting("foo")
    body = token_request(pod, "pod-uid", "foo", "bar")
    assert "node may only request 0 or 1 audiences" in ask_token(body, pod)


class _Asks(AlwaysAllow):
    """Allows everything, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Attributes] = []

    def authorize(self, user: User, asked: Attributes) -> AuthorizerDecision:
        self.asked.append(asked)
        return super().authorize(user, asked)


def test_an_audience_that_is_not_in_the_pod_needs_a_right() -> None:
    body = token_request(PODS["normal pod bound to self"], "pod-uid", "foo")
    assert ask_token(body) == (
        'serviceaccounts "mysa" is forbidden: audience "foo" not found in pod spec volume, '
        "system:node:mynode is not authorized to request tokens for this audience"
    )
    asks = _Asks()
    assert not ask_token(body, caller=Caller(MY_NODE, asks))
    verb = "request-serviceaccounts-token-audience"
    assert asks.asked == [Attributes(verb, "", "v1", "foo", namespace="ns", name="mysa")]


def test_audiences_of_csi_drivers_count_inline_and_behind_claims() -> None:
    driver = CSIDriver.model_validate(
        {"metadata": {"name": "d"}, "spec": {"tokenRequests": [{"audience": "foo"}]}}
    )
    claim = PersistentVolumeClaim.model_validate(
        {"metadata": {"name": "c", "namespace": "ns"}, "spec": {"volumeName": "pv"}}
    )
    volume = PersistentVolume.model_validate(
        {"metadata": {"name": "pv"}, "spec": {"csi": {"driver": "d", "volumeHandle": "h"}}}
    )
    inline = a_pod("inline", "mynode", volumes=[{"name": "v", "csi": {"driver": "d"}}])
    claimed = a_pod(
        "claimed", "mynode", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    )
    for pod in (inline, claimed):
        body = token_request(pod, "pod-uid", "foo")
        assert not ask_token(body, pod, driver, claim, volume)
        assert "not found in pod spec volume" in ask_token(body, pod, claim, volume)


# --- other kinds


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
def test_a_lease_is_that_of_the_node(operation: Operation) -> None:
    def lease(name: str, namespace: str) -> Lease:
        return Lease(metadata=ObjectMeta(name=name, namespace=namespace))

    own = lease("mynode", "kube-node-lease")
    assert not check(operation, own, own)
    assert "can only access leases in the" in check(operation, lease("mynode", "foo"))
    foreign = check(operation, lease("foo", "kube-node-lease"))
    assert "can only access node lease with the same name as the requesting node" in foreign


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
def test_a_csi_node_is_that_of_the_node(operation: Operation) -> None:
    assert not check(operation, CSINode(metadata=ObjectMeta(name="mynode")))
    foreign = check(operation, CSINode(metadata=ObjectMeta(name="foo")))
    assert "can only access CSINode with the same name as the requesting node" in foreign


def test_of_a_claim_a_node_changes_the_capacity_and_the_conditions() -> None:
    old = PersistentVolumeClaim.model_validate({"metadata": {"name": "c", "namespace": "ns"}})
    grown = old.with_status(old.status.replace(capacity={"storage": Quantity("2Gi")}))
    labelled_claim = grown.with_metadata(labels={"a": "b"})
    assert not check("UPDATE", grown, old, subresource="status")
    refused = check("UPDATE", labelled_claim, old, subresource="status")
    assert "is not allowed to update fields other than status.capacity and" in refused
    assert "may only update PVC status" in check("UPDATE", grown, old)
    assert UNEXPECTED in check("DELETE", old, old, subresource="status")


@pytest.mark.parametrize(
    ("name", "signer", "why"),
    [
        ("system:node:mynode", KUBELET_SERVING, ""),
        ("system:node:mynode", API_SERVER_CLIENT_KUBELET, ""),
        ("some-other-identity", API_SERVER_CLIENT, ""),
        (
            "system:node:othernode",
            KUBELET_SERVING,
            "is forbidden: can only create a node CSR with CN=system:node:mynode",
        ),
        (
            "system:node:othernode",
            API_SERVER_CLIENT_KUBELET,
            "is forbidden: can only create a node CSR with CN=system:node:mynode",
        ),
    ],
)
def test_csr_create(name: str, signer: str, why: str) -> None:
    made = signing_request(build_pem_request(name), [], signer)
    found = check("CREATE", made)
    assert (why in found) if why else not found


def test_deny_csr_create_invalid() -> None:
    request = CertificateSigningRequest.model_validate(
        {"metadata": {"name": "x"}, "spec": {"request": "eA==", "signerName": KUBELET_SERVING}}
    )
    assert "unable to parse csr: " in check("CREATE", request)


def test_others_are_not_restricted() -> None:
    bob = User("bob")
    other = PODS["normal pod bound to another"]
    assert not check("CREATE", other, user=bob)
    assert not check("UPDATE", tainted("A"), NODE, user=bob)
    assert "could not determine node" in check(
        "DELETE", other, user=User("system:node:", groups=("system:nodes",))
    )
