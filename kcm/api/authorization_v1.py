"""authorization.k8s.io/v1: reviews of what users may do, which are never stored.

Source: staging/src/k8s.io/api/authorization/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from pydantic import Field

from kcm.apimachinery.base import Bool, Model
from kcm.apimachinery.meta_v1 import (
    FieldSelectorRequirement,
    KubeObject,
    LabelSelectorRequirement,
)

GROUP = "authorization.k8s.io"


class FieldSelectorAttributes(Model):
    """The field selector of a request, as text or as requirements."""

    raw_selector: str | None = None
    requirements: list[FieldSelectorRequirement] | None = None


class LabelSelectorAttributes(Model):
    """The label selector of a request, as text or as requirements."""

    raw_selector: str | None = None
    requirements: list[LabelSelectorRequirement] | None = None


class ResourceAttributes(Model):
    """A verb on a resource, in one namespace or in all, and perhaps on one object of it."""

    namespace: str | None = None
    verb: str | None = None
    group: str | None = None
    version: str | None = None
    resource: str | None = None
    subresource: str | None = None
    name: str | None = None
    field_selector: FieldSelectorAttributes | None = None
    label_selector: LabelSelectorAttributes | None = None


class NonResourceAttributes(Model):
    """A verb and an HTTP path that belongs to no resource, such as `/healthz`."""

    path: str | None = None
    verb: str | None = None


class SubjectAccessReviewStatus(Model):
    """The decision whether the request is allowed, and the reason."""

    allowed: Bool = False
    denied: Bool | None = None
    reason: str | None = None
    evaluation_error: str | None = None


class SelfSubjectAccessReviewSpec(Model):
    """The request whose permission a user asks about: exactly one of the two fields is set."""

    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None


class SubjectAccessReviewSpec(SelfSubjectAccessReviewSpec):
    """A user, and the request for which the review asks."""

    user: str | None = None
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None
    uid: str | None = None


class SelfSubjectAccessReview(KubeObject):
    """Asks the API server whether the sender may send a certain request."""

    api_version: str = "authorization.k8s.io/v1"
    kind: str = "SelfSubjectAccessReview"
    spec: SelfSubjectAccessReviewSpec = Field(default_factory=SelfSubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = Field(default_factory=SubjectAccessReviewStatus)


class SubjectAccessReview(KubeObject):
    """Asks the API server whether a given user may send a certain request."""

    api_version: str = "authorization.k8s.io/v1"
    kind: str = "SubjectAccessReview"
    spec: SubjectAccessReviewSpec = Field(default_factory=SubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = Field(default_factory=SubjectAccessReviewStatus)


class LocalSubjectAccessReview(KubeObject):
    """Asks the API server whether a given user may send a certain request in one namespace."""

    api_version: str = "authorization.k8s.io/v1"
    kind: str = "LocalSubjectAccessReview"
    spec: SubjectAccessReviewSpec = Field(default_factory=SubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = Field(default_factory=SubjectAccessReviewStatus)


class SelfSubjectRulesReviewSpec(Model):
    """The namespace whose rules are listed."""

    namespace: str | None = None


class ResourceRule(Model):
    """Verbs that a user may use on certain resources, or on objects of certain names."""

    verbs: list[str] = Field(default_factory=list)
    api_groups: list[str] | None = None
    resources: list[str] | None = None
    resource_names: list[str] | None = None


class NonResourceRule(Model):
    """Verbs that a user may use on HTTP paths that belong to no resource, such as `/healthz`."""

    verbs: list[str] = Field(default_factory=list)
    non_resource_urls: list[str] | None = None


class SubjectRulesReviewStatus(Model):
    """The rules that apply to the user in the namespace. `incomplete` if some are missing."""

    resource_rules: list[ResourceRule] = Field(default_factory=list)
    non_resource_rules: list[NonResourceRule] = Field(default_factory=list)
    incomplete: Bool = False
    evaluation_error: str | None = None


class SelfSubjectRulesReview(KubeObject):
    """Asks the API server for everything that the sender may do in a namespace."""

    api_version: str = "authorization.k8s.io/v1"
    kind: str = "SelfSubjectRulesReview"
    spec: SelfSubjectRulesReviewSpec = Field(default_factory=SelfSubjectRulesReviewSpec)
    status: SubjectRulesReviewStatus = Field(default_factory=SubjectRulesReviewStatus)
