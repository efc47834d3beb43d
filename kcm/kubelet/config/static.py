"""Static pods: what a file or a URL says, made into a pod of this node.

Source: pkg/kubelet/config/common.go applyDefaults and generatePodName, Kubernetes 1.33.
"""

from __future__ import annotations

import hashlib

from kcm import defaults, errors, validation
from kcm.api import codec, scheme
from kcm.api.core_v1 import Pod, Toleration
from kcm.apimachinery.yaml_documents import load_yaml_documents
from kcm.kubelet.types import HASH_ANNOTATION

PODS = scheme.by_name("pods")


def pods_of(text: bytes, place: str, source: str, node: str) -> list[Pod]:
    """The pods of a text in YAML or JSON: pods, or lists of them.

    `place` is named in errors and makes uids differ. Raises an ApiError with words for people.
    """
    found: list[Pod] = []
    for document in load_yaml_documents(text.decode("utf-8", "replace"), place):
        found.append(static_pod({"apiVersion": "v1", "kind": "Pod", **document}, place, node))
    if not found:
        raise errors.BadRequest(f"{place}: there is no pod in {source}")
    return found


def static_pod(item: dict[str, object], place: str, node: str) -> Pod:
    """The pod as this node runs it: named after it, with a uid that stays while its text does."""
    pod = codec.decode(item, PODS)
    if not isinstance(pod, Pod):
        raise errors.BadRequest(f"{place}: not a pod")
    if not pod.name:
        raise errors.BadRequest(f"{place}: metadata.name: Required value")
    uid = pod.uid or _uid(pod, place, node)
    meta = pod.metadata
    pod = pod.with_metadata(
        name=f"{meta.name}-{node}".lower(),
        namespace=meta.namespace or "default",
        uid=uid,
        annotations={**pod.annotations, HASH_ANNOTATION: uid},
        resource_version=None,
        deletion_timestamp=None,
    )
    tolerations = [*(pod.spec.tolerations or ()), _EVERYTHING]
    pod = pod.with_spec(pod.spec.replace(node_name=node, tolerations=tolerations))
    pod = defaults.apply(pod.with_status(pod.status.replace(phase="Pending")))
    if found := validation.validate_create(pod):
        raise errors.Invalid(found, kind="Pod", name=pod.name or "", resource="pods")
    return pod


_EVERYTHING = Toleration(operator="Exists", effect="NoExecute")


def _uid(pod: Pod, place: str, node: str) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    for part in (place.encode(), node.encode(), codec.encode(pod)):
        digest.update(part + b"\0")
    return digest.hexdigest()
