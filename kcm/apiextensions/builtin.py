"""Names that a definition cannot have, since kinds of the system have them.

Upstream's API server looks among its own kinds before it looks among the defined ones, so
such a definition shadows nothing there either; it is not told so, though.
"""

from __future__ import annotations

from kcm.api import scheme
from kcm.api.apiextensions_v1 import CustomResourceDefinition

# Served without being stored, so the scheme does not know them: plural and kind by group.
_UNSTORED = {
    "authentication.k8s.io": {
        "selfsubjectreviews": "SelfSubjectReview",
        "tokenreviews": "TokenReview",
    },
    "authorization.k8s.io": {
        "localsubjectaccessreviews": "LocalSubjectAccessReview",
        "selfsubjectaccessreviews": "SelfSubjectAccessReview",
        "selfsubjectrulesreviews": "SelfSubjectRulesReview",
        "subjectaccessreviews": "SubjectAccessReview",
    },
    "metrics.k8s.io": {"nodes": "NodeMetrics", "pods": "PodMetrics"},
}


def words(group: str) -> frozenset[str]:
    """Plurals, singulars and short names of the system's kinds of a group."""
    found = set(_UNSTORED.get(group, ()))
    for kind in _built_in(group):
        found |= {kind.plural, kind.singular, *kind.short_names}
    return frozenset(found)


def kinds(group: str) -> frozenset[str]:
    """Kinds and list kinds of the system in a group."""
    found = set(_UNSTORED.get(group, {}).values())
    found |= {kind.kind for kind in _built_in(group)}
    return frozenset(found | {f"{kind}List" for kind in found})


def _built_in(group: str) -> list[scheme.Resource]:
    return [kind for kind in scheme.served() if kind.group == group and kind.custom is None]


def shadows(definition: CustomResourceDefinition) -> bool:
    """Whether a kind of the system would be hidden, if the definition's were served."""
    spec = definition.spec
    return spec.names.plural in words(spec.group) or spec.names.kind in kinds(spec.group)
