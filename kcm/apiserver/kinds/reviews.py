"""The review kinds, whose objects are created to ask for something, and never stored."""

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
# Served, but not in discovery: kubectl 1.27 requests it anyway.
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
    """Returns the review kind at a group, version and plural, or None."""
    for resource in _ALL:
        if (resource.plural, resource.group, resource.version) == (plural, group, version):
            return resource
    return None
