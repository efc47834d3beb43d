"""Names that a definition cannot have, because built-in kinds have them.

Upstream's API server looks up its own kinds before custom ones, so such a definition does not hide
them there either. But upstream does not tell the definition's author.
"""

from __future__ import annotations

from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.scheme import BUILT_IN, Resource

# Kinds that are served and not stored, so that the scheme does not have them: kind by plural, by
# group.
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
    """Returns the plurals, singulars and short names of the built-in kinds of a group."""
    names = set(_UNSTORED.get(group, ()))
    for kind in _built_in(group):
        names |= {kind.plural, kind.singular, *kind.short_names}
    return frozenset(names)


def kinds(group: str) -> frozenset[str]:
    """Returns the kinds and list kinds of the built-in kinds of a group."""
    names = set(_UNSTORED.get(group, {}).values())
    names |= {kind.kind for kind in _built_in(group)}
    return frozenset(names | {f"{kind}List" for kind in names})


def _built_in(group: str) -> list[Resource]:
    return [kind for kind in BUILT_IN.served() if kind.group == group]


def shadows(definition: CustomResourceDefinition) -> bool:
    """Reports whether the definition has the plural or the kind of a built-in kind."""
    spec = definition.spec
    return spec.names.plural in words(spec.group) or spec.names.kind in kinds(spec.group)
