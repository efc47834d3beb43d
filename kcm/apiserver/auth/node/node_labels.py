"""The labels that a kubelet may set on its Node.

Source: plugin/pkg/admission/noderestriction/admission.go and
staging/src/k8s.io/kubelet/pkg/apis/well_known_labels.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping

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
