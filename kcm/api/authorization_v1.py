"""authorization.k8s.io/v1: questions about what users may do; never stored.

Source: staging/src/k8s.io/api/authorization/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from pydantic import Field

from kcm.apimachinery.base import Bool, Model
from kcm.apimachinery.meta_v1 import KubeObject

GROUP = "authorization.k8s.io"


class ResourceAttributes(Model):
    """A verb on a resource."""

    namespace: str | None = None
    verb: str | None = None
    group: str | None = None
    version: str | None = None
    resource: str | None = None
    subresource: str | None = None
    name: str | None = None


class NonResourceAttributes(Model):
    """A verb and an HTTP path that belongs to no resource, such as `/healthz`."""

    path: str | None = None
    verb: str | None = None


class SubjectAccessReviewStatus(Model):
    """Whether the user may, and why."""

    allowed: Bool = False
    denied: Bool | None = None
    reason: str | None = None
    evaluation_error: str | None = None


class SelfSubjectAccessReviewSpec(Model):
    """The request whose permission a user asks about: exactly one of the two fields is set."""

    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None


class SubjectAccessReviewSpec(SelfSubjectAccessReviewSpec):
    """What which user wants to do."""

    user: str | None = None
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None
    uid: str | None = None


class SelfSubjectAccessReview(KubeObject):
    """A question to the API server: may I do this?"""

    api_version: str = "authorization.k8s.io/v1"
    kind: str = "SelfSubjectAccessReview"
    spec: SelfSubjectAccessReviewSpec = Field(default_factory=SelfSubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = Field(default_factory=SubjectAccessReviewStatus)


class SubjectAccessReview(KubeObject):
    """A question to the API server: may this user do this?"""

    api_version: str = "authorization.k8s.io/v1"
    kind: str = "SubjectAccessReview"
    spec: SubjectAccessReviewSpec = Field(default_factory=SubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = Field(default_factory=SubjectAccessReviewStatus)


class LocalSubjectAccessReview(KubeObject):
    """A question to the API server: may this user do this in the review's namespace?"""

    api_version: str = "authorization.k8s.io/v1"
    kind: str = "LocalSubjectAccessReview"
    spec: SubjectAccessReviewSpec = Field(default_factory=SubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = Field(default_factory=SubjectAccessReviewStatus)


class SelfSubjectRulesReviewSpec(Model):
    """The namespace that the question is about."""

    namespace: str | None = None


class ResourceRule(Model):
    """Verbs that a user may use on resources."""

    verbs: list[str] = Field(default_factory=list)
    api_groups: list[str] | None = None
    resources: list[str] | None = None
    resource_names: list[str] | None = None


class NonResourceRule(Model):
    """Verbs that a user may use on paths that are no resources."""

    verbs: list[str] = Field(default_factory=list)
    non_resource_urls: list[str] | None = None


class SubjectRulesReviewStatus(Model):
    """All that the user may do there."""

    resource_rules: list[ResourceRule] = Field(default_factory=list)
    non_resource_rules: list[NonResourceRule] = Field(default_factory=list)
    incomplete: Bool = False
    evaluation_error: str | None = None


class SelfSubjectRulesReview(KubeObject):
    """A question to the API server: what may I do?"""

    api_version: str = "authorization.k8s.io/v1"
    kind: str = "SelfSubjectRulesReview"
    spec: SelfSubjectRulesReviewSpec = Field(default_factory=SelfSubjectRulesReviewSpec)
    status: SubjectRulesReviewStatus = Field(default_factory=SubjectRulesReviewStatus)
