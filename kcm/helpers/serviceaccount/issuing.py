"""Issues bound tokens. The API server and kubelets that work on Redis do it alike.

Source: pkg/registry/core/serviceaccount/storage/token.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kcm.api.core_v1 import ServiceAccount
from kcm.helpers.serviceaccount.claims import (
    EXTENDED_SECONDS,
    WARN_ONLY_SECONDS,
    BoundObjects,
    bound_claims,
)
from kcm.helpers.serviceaccount.tokens import SigningKey, sign

DEFAULT_ISSUER = "https://kubernetes.default.svc.cluster.local"


@dataclass(frozen=True)
class Issuer:
    """A key, the name that goes into tokens, and the audiences that the API server has."""

    key: SigningKey = field(repr=False)
    name: str
    audiences: tuple[str, ...]
    extends: bool = True  # whether tokens that admission mounts are valid for a year

    def issue(
        self,
        account: ServiceAccount,
        bound: BoundObjects,
        now: datetime,
        *,
        audiences: Sequence[str],
        seconds: int,
    ) -> str:
        """Returns a token for `seconds` seconds.

        One that admission mounts into a pod is valid for a year, but counts as stale after the
        time that was requested.
        """
        extended = (
            self.extends
            and bound.pod is not None
            and seconds == WARN_ONLY_SECONDS
            and set(audiences) <= set(self.audiences)
        )
        claims = bound_claims(
            account,
            bound,
            audiences,
            now,
            seconds=EXTENDED_SECONDS if extended else seconds,
            warn_after=seconds if extended else 0,
        )
        return sign(self.key, self.name, claims)
