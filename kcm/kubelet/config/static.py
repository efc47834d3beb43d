"""Parses the text of a file or a URL into static pods of this node.

Source: applyDefaults and generatePodName in pkg/kubelet/config/common.go, Kubernetes 1.33.
"""

from __future__ import annotations

import hashlib

from kcm import errors
from kcm.api import codec
from kcm.api.core_v1 import Pod, Toleration
from kcm.apimachinery.yaml_documents import load_yaml_documents
from kcm.kinds import defaults, validation
from kcm.kubelet.types import HASH_ANNOTATION

PODS = Pod.resource


def parse_pods(text: bytes, origin: str, source: str, node_name: str) -> list[Pod]:
    """Returns the pods of a text in YAML or JSON, which may contain several documents.

    `origin` is the path of the file or the URL: errors name it, and uids depend on it. `source` is
    FILE or HTTP. Raises ApiError.
    """
    pods: list[Pod] = []
    for document in load_yaml_documents(text.decode("utf-8", "replace"), origin):
        pods.append(
            build_static_pod({"apiVersion": "v1", "kind": "Pod", **document}, origin, node_name)
        )
    if not pods:
        raise errors.BadRequest(f"{origin}: there is no pod in {source}")
    return pods


def build_static_pod(document: dict[str, object], origin: str, node_name: str) -> Pod:
    """Returns a static pod of this node, with defaults.

    The node's name is appended to its name, and its uid stays the same while the document does.
    Raises ApiError if the document is not a valid pod.
    """
    pod = codec.decode(document, PODS)
    if not isinstance(pod, Pod):
        raise errors.BadRequest(f"{origin}: not a pod")
    if not pod.name:
        raise errors.BadRequest(f"{origin}: metadata.name: Required value")
    uid = pod.uid or _compute_uid(pod, origin, node_name)
    meta = pod.metadata
    pod = pod.with_metadata(
        name=f"{meta.name}-{node_name}".lower(),
        namespace=meta.namespace or "default",
        uid=uid,
        annotations={**pod.annotations, HASH_ANNOTATION: uid},
        resource_version=None,
        deletion_timestamp=None,
    )
    tolerations = [*(pod.spec.tolerations or ()), _TOLERATE_NO_EXECUTE]
    pod = pod.with_spec(pod.spec.replace(node_name=node_name, tolerations=tolerations))
    pod = defaults.apply(pod.with_status(pod.status.replace(phase="Pending")))
    if faults := validation.validate_create(pod):
        raise errors.Invalid(faults, kind="Pod", name=pod.name or "", resource="pods")
    return pod


_TOLERATE_NO_EXECUTE = Toleration(operator="Exists", effect="NoExecute")


def _compute_uid(pod: Pod, origin: str, node_name: str) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    for part in (origin.encode(), node_name.encode(), codec.encode(pod)):
        digest.update(part + b"\0")
    return digest.hexdigest()
