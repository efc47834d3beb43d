"""authentication.k8s.io/v1: TokenReview and SelfSubjectReview, which are never stored.

Source: staging/src/k8s.io/api/authentication/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from pydantic import Field

from kcm.apimachinery.base import Bool, Model
from kcm.apimachinery.meta_v1 import KubeObject

GROUP = "authentication.k8s.io"


class UserInfo(Model):
    """A user's name, uid, groups and further attributes (`extra`)."""

    username: str | None = None
    uid: str | None = None
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class TokenReviewSpec(Model):
    """The bearer token to check, and the audiences for one of which it must have been issued."""

    token: str | None = None
    audiences: list[str] | None = None


class TokenReviewStatus(Model):
    """The result of a TokenReview: whether the token is valid, and whom it authenticates."""

    authenticated: Bool | None = None
    user: UserInfo | None = None
    audiences: list[str] | None = None
    error: str | None = None


class TokenReview(KubeObject):
    """Asks the API server whether a bearer token is valid, and which user it authenticates."""

    api_version: str = "authentication.k8s.io/v1"
    kind: str = "TokenReview"
    spec: TokenReviewSpec = Field(default_factory=TokenReviewSpec)
    status: TokenReviewStatus = Field(default_factory=TokenReviewStatus)


class SelfSubjectReviewStatus(Model):
    """The user who sent the request."""

    user_info: UserInfo | None = None


class SelfSubjectReview(KubeObject):
    """Asks the API server which user has sent this request."""

    api_version: str = "authentication.k8s.io/v1"
    kind: str = "SelfSubjectReview"
    status: SelfSubjectReviewStatus = Field(default_factory=SelfSubjectReviewStatus)


class SelfSubjectReviewV1Beta1(KubeObject):
    """The SelfSubjectReview of v1beta1, for `kubectl auth whoami` before 1.28."""

    api_version: str = "authentication.k8s.io/v1beta1"
    kind: str = "SelfSubjectReview"
    status: SelfSubjectReviewStatus = Field(default_factory=SelfSubjectReviewStatus)
