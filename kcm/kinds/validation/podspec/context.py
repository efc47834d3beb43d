"""`PodContext`: the fields of a pod's spec on which the validation of its containers depends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from kcm.api.core_v1 import PodSpec, Volume


@dataclass(frozen=True)
class PodContext:
    """The fields of a pod's spec that the validation of its containers needs."""

    volumes: Mapping[str, Volume]
    grace_period: int | None  # terminationGracePeriodSeconds
    restart_policy: str
    host_users: bool
    claim_names: frozenset[str]  # of resourceClaims

    @classmethod
    def of(cls, spec: PodSpec) -> Self:
        return cls(
            volumes={volume.name: volume for volume in spec.volumes or ()},
            grace_period=spec.termination_grace_period_seconds,
            restart_policy=spec.restart_policy or "",
            host_users=spec.host_users is not False,
            claim_names=frozenset(claim.name for claim in spec.resource_claims or () if claim.name),
        )
