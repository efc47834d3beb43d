"""authentication.k8s.io/v1: questions about who somebody is; never stored.

Source: staging/src/k8s.io/api/authentication/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from pydantic import Field

from kcm.apimachinery.base import Bool, Model
from kcm.apimachinery.meta_v1 import KubeObject

GROUP = "authentication.k8s.io"


class UserInfo(Model):
    """The name, uid and groups of a user, as a token or a certificate says."""

    username: str | None = None
    uid: str | None = None
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class TokenReviewSpec(Model):
    """A token, and for whom it must be meant."""

    token: str | None = None
    audiences: list[str] | None = None


class TokenReviewStatus(Model):
    """Whose token it is."""

    authenticated: Bool | None = None
    user: UserInfo | None = None
    audiences: list[str] | None = None
    error: str | None = None


class TokenReview(KubeObject):
    """A question to the API server: which user has this token, and is it valid?"""

    api_version: str = "authentication.k8s.io/v1"
    kind: str = "TokenReview"
    spec: TokenReviewSpec = Field(default_factory=TokenReviewSpec)
    status: TokenReviewStatus = Field(default_factory=TokenReviewStatus)


class SelfSubjectReviewStatus(Model):
    """The user who sent the review."""

    user_info: UserInfo | None = None


class SelfSubjectReview(KubeObject):
    """A question to the API server: who am I?"""

    api_version: str = "authentication.k8s.io/v1"
    kind: str = "SelfSubjectReview"
    status: SelfSubjectReviewStatus = Field(default_factory=SelfSubjectReviewStatus)


class SelfSubjectReviewV1Beta1(KubeObject):
    """Who am I? As kubectl before 1.28 asks."""

    api_version: str = "authentication.k8s.io/v1beta1"
    kind: str = "SelfSubjectReview"
    status: SelfSubjectReviewStatus = Field(default_factory=SelfSubjectReviewStatus)
