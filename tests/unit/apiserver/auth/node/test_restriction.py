"""What NodeRestriction lets a node write, after upstream's admission_test.go."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kcm.api.certificates_v1 import (
    API_SERVER_CLIENT,
    API_SERVER_CLIENT_KUBELET,
    KUBELET_SERVING,
    CertificateSigningRequest,
)
from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import (
    PersistentVolumeClaim,
    Pod,
)
from kcm.api.core_v1.pods import PodExtendedResourceClaimStatus
from kcm.api.resource_v1 import ResourceSlice
from kcm.api.resource_v1.slices import ResourceSliceSpec
from kcm.api.storage_v1 import CSINode
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apimachinery.quantity import Quantity
from kcm.apiserver.auth.attributes import User
from tests.signing_requests import build_pem_request, signing_request
from tests.unit.apiserver.auth.node.node_writes import (
    ITSELF,
    NODE,
    PODS,
    UNEXPECTED,
    a_pod,
    check,
    mirror,
    tainted,
)


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
        assert UNEXPECTED in check(operation, pod, pod, subresource=subresource)
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


# --- other kinds


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
def test_a_lease_is_that_of_the_node(operation: str) -> None:
    def lease(name: str, namespace: str) -> Lease:
        return Lease(metadata=ObjectMeta(name=name, namespace=namespace))

    own = lease("mynode", "kube-node-lease")
    assert not check(operation, own, own)
    assert "can only access leases in the" in check(operation, lease("mynode", "foo"))
    foreign = check(operation, lease("foo", "kube-node-lease"))
    assert "can only access node lease with the same name as the requesting node" in foreign


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
def test_a_csi_node_is_that_of_the_node(operation: str) -> None:
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


@pytest.mark.parametrize("node", ["mynode", "othernode", None])
def test_slices_are_those_of_the_node(node: str | None) -> None:
    slice_ = ResourceSlice(
        metadata=ObjectMeta(name="foo"), spec=ResourceSliceSpec(driver="a", node_name=node)
    )
    for operation in ("CREATE", "DELETE"):
        refusal = check(operation, slice_, slice_ if operation == "DELETE" else None)
        why = f"can only {operation.lower()} ResourceSlice with the same NodeName as"
        assert (why in refusal) == (node != "mynode")
    assert check("UPDATE", slice_, slice_) == ""  # the authorizer has checked it


def test_the_claim_for_extended_resources_is_not_the_nodes_to_change() -> None:
    old = PODS["normal pod bound to self"]
    extended = PodExtendedResourceClaimStatus(resource_claim_name="foo")
    new = old.with_status(old.status.replace(extended_resource_claim_status=extended))
    assert "cannot update extended resource claim status" in check(
        "UPDATE", new, old, subresource="status"
    )
