"""Review kinds: questions that are created and answered, and never stored."""

from __future__ import annotations

from kcm.api import authentication_v1 as authentication
from kcm.api import authorization_v1 as authorization
from kcm.api.scheme import Resource, kind

VERBS = ("create",)

RESOURCES: tuple[Resource, ...] = (
    kind(authentication.SelfSubjectReview, "selfsubjectreviews", cluster=True, has_status=False),
    kind(authentication.TokenReview, "tokenreviews", cluster=True, has_status=False),
    kind(authorization.LocalSubjectAccessReview, "localsubjectaccessreviews", has_status=False),
    kind(
        authorization.SelfSubjectAccessReview,
        "selfsubjectaccessreviews",
        cluster=True,
        has_status=False,
    ),
    kind(
        authorization.SelfSubjectRulesReview,
        "selfsubjectrulesreviews",
        cluster=True,
        has_status=False,
    ),
    kind(authorization.SubjectAccessReview, "subjectaccessreviews", cluster=True, has_status=False),
)
# Served and not shown in discovery: kubectl 1.27 asks for it all the same.
UNLISTED: tuple[Resource, ...] = (
    kind(
        authentication.SelfSubjectReviewV1Beta1, "selfsubjectreviews", cluster=True,
        has_status=False,
    ),
)  # fmt: skip

_ALL = frozenset((*RESOURCES, *UNLISTED))


def is_review(resource: Resource) -> bool:
    """Reports whether the kind is a review."""
    return resource in _ALL


def find(group: str, version: str, plural: str) -> Resource | None:
    """Returns the review kind of a path, or None."""
    for resource in _ALL:
        if (resource.plural, resource.group, resource.version) == (plural, group, version):
            return resource
    return None
