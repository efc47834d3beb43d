"""ResourceClaim: makes claims from templates for pods, and frees the claims that pods need no more.

A claim that was made for a pod has a generated name, which the pod's status notes. Of a claim that
pods reserved, those that are gone or done are taken off; after the last one the claim is not
allocated any more, and it may be deleted. A claim made for a pod is deleted as soon as that pod is
done.

Schedulers allocate claims. A pod that was bound to a node by somebody else gets its reservation
here.

Source: pkg/controller/resourceclaim/controller.go, Kubernetes 1.36. Departures: claims of
PodGroups, a kind behind a gate that is off, are left alone. A pod that is done gets neither claims
nor reservations, which would be taken from it at once, over and over (kubernetes#141274).
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from kcm.api.core_v1 import Pod
from kcm.api.resource_v1 import ResourceClaim, ResourceClaimTemplate
from kcm.controllers.resourceclaim import claims, keys, pods
from kcm.sdk import Controller, Options, Plan, View, Watch


class ResourceClaimOptions(Options):
    """The options of the ResourceClaim controller."""

    concurrent_resourceclaim_syncs: int = Field(
        default=50,
        ge=1,
        description="The number of operations (creating or deleting ResourceClaims) allowed to run "
        "concurrently. Larger number = more responsive, but more CPU (and network) load",
    )


class ResourceClaimController(Controller):
    """Syncs claims, and pods that have some. A key says which: `claim:` or `pod:` and its key."""

    name = "resourceclaim-controller"
    short_name = "resourceclaim"
    metrics = (pods.CREATES,)
    options_type = ResourceClaimOptions
    options: ResourceClaimOptions

    def watches(self) -> tuple[Watch[Any], ...]:
        return (
            Watch(Pod, keys.of_pod),
            Watch(ResourceClaim, keys.of_claim),
            Watch(ResourceClaimTemplate, keys.of_template),
        )

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_resourceclaim_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        kind, _, name = key.partition(":")
        if kind == keys.POD:
            pod = view.lister(Pod).find(name)
            return Plan() if pod is None else pods.sync(pod, view)
        claim = view.lister(ResourceClaim).find(name)
        return Plan() if claim is None else claims.sync(claim, view)
