"""Names that a definition cannot have, since built-in kinds have them.

Upstream's API server looks among its own kinds before the defined ones, so that such a definition
shadows nothing there either. Upstream does not tell its author so, though.
"""

from __future__ import annotations

from kcm.api import scheme
from kcm.api.apiextensions_v1 import CustomResourceDefinition

# Served without being stored, so that the scheme does not know them: plural and kind by group.
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
    """Returns plurals, singulars and short names of the built-in kinds of a group."""
    names = set(_UNSTORED.get(group, ()))
    for kind in _built_in(group):
        names |= {kind.plural, kind.singular, *kind.short_names}
    return frozenset(names)


def kinds(group: str) -> frozenset[str]:
    """Returns kinds and list kinds of the built-in kinds of a group."""
    names = set(_UNSTORED.get(group, {}).values())
    names |= {kind.kind for kind in _built_in(group)}
    return frozenset(names | {f"{kind}List" for kind in names})


def _built_in(group: str) -> list[scheme.Resource]:
    return [kind for kind in scheme.served() if kind.group == group and kind.custom is None]


def shadows(definition: CustomResourceDefinition) -> bool:
    """Reports whether a built-in kind would be hidden if the definition's kind were served."""
    spec = definition.spec
    return spec.names.plural in words(spec.group) or spec.names.kind in kinds(spec.group)
