"""Which pods a node may create: mirrors of its static pods that refer to no other object.

Source: admitPodCreate in plugin/pkg/admission/noderestriction/admission.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable

from kcm.api.core_v1 import Node, Pod
from kcm.apiserver.auth.node.graph import MIRROR_ANNOTATION
from kcm.helpers.pod_references import config_map_names, secret_names


def find_fault(pod: Pod, node: str, get_node: Callable[[], Node]) -> str:
    """Returns why a node may not create a pod, "" if it may.

    `get_node` returns the Node; it raises NotFound.
    """
    if MIRROR_ANNOTATION not in pod.annotations:
        return (
            f'pod does not have "{MIRROR_ANNOTATION}" annotation, node "{node}" can only create '
            "mirror pods"
        )
    if pod.spec.node_name != node:
        return f'node "{node}" can only create pods with spec.nodeName set to itself'
    return _owner_fault(pod, node, get_node) or _reference_fault(pod, node)


def _owner_fault(pod: Pod, node: str, get_node: Callable[[], Node]) -> str:
    owners = pod.metadata.owner_references or []
    if len(owners) > 1:
        return f'node "{node}" can only create pods with a single owner reference set to itself'
    if not owners or (owners[0].api_version, owners[0].kind, owners[0].name) != (
        "v1",
        "Node",
        node,
    ):
        return f'node "{node}" can only create pods with an owner reference set to itself'
    owner = owners[0]
    if not owner.controller:
        return f'node "{node}" can only create pods with a controller owner reference set to itself'
    if owner.block_owner_deletion:
        return f'node "{node}" must not set blockOwnerDeletion on an owner reference'
    uid = get_node().uid
    if owner.uid != uid:
        return f"node {node} UID mismatch: expected {owner.uid} got {uid}"
    return ""


def _reference_fault(pod: Pod, node: str) -> str:
    volumes = pod.spec.volumes or ()
    projected = [part for v in volumes if v.projected for part in v.projected.sources]
    # The older field is copied into the newer one later, by the pod's defaults.
    account = pod.spec.service_account_name or pod.spec.service_account
    references = (
        ("a service account", bool(account)),
        ("secrets", bool(secret_names(pod))),
        ("configmaps", bool(config_map_names(pod))),
        ("clustertrustbundles", any(part.cluster_trust_bundle for part in projected)),
        ("persistentvolumeclaims", any(volume.persistent_volume_claim for volume in volumes)),
        ("resourceclaims", bool(pod.spec.resource_claims)),
    )
    for what, referred in references:
        if referred:
            return f'node "{node}" can not create pods that reference {what}'
    return ""
