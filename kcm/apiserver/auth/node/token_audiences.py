"""For which audiences a node may request tokens: those that the pod's volumes ask for.

A node may request others if its user has the verb `request-serviceaccounts-token-audience` on the
audience.

Source: validateNodeServiceAccountAudience in plugin/pkg/admission/noderestriction/admission.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim, Pod
from kcm.api.storage_v1 import CSIDriver, claim_keys
from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.auth.authorizer import Caller
from kcm.apiserver.auth.service_accounts import Find
from kcm.helpers.pod_references import token_audiences

_VERB = "request-serviceaccounts-token-audience"


def check_audience(
    find: Find, caller: Caller, pod: Pod, account: str, audiences: Sequence[str]
) -> str:
    """Returns why a node may not request a token for these audiences, "" if it may.

    `find` finds objects in the watch caches. Raises StoreUnavailable.
    """
    if len(audiences) > 1:
        return "node may only request 0 or 1 audiences"
    audience = audiences[0] if audiences else ""
    if audience in token_audiences(pod) or audience in _driver_audiences(find, pod):
        return ""
    asked = Attributes(_VERB, "", "v1", audience, namespace=pod.namespace, name=account)
    if caller.may(asked):
        return ""
    return (
        f'audience "{audience}" not found in pod spec volume, {caller.user.name} is not '
        "authorized to request tokens for this audience"
    )


def _driver_audiences(find: Find, pod: Pod) -> set[str]:
    """Returns the audiences that the CSI drivers of a pod's volumes ask for."""
    objects = (find(CSIDriver, name) for name in set(_drivers(find, pod)))
    drivers = [driver for driver in objects if isinstance(driver, CSIDriver)]
    return {asked.audience for driver in drivers for asked in driver.spec.token_requests or ()}


def _drivers(find: Find, pod: Pod) -> Iterator[str]:
    for volume in pod.spec.volumes or ():
        if volume.csi is not None:
            yield volume.csi.driver
    for key in claim_keys(pod):
        claim = find(PersistentVolumeClaim, key)
        if not isinstance(claim, PersistentVolumeClaim) or not claim.spec.volume_name:
            continue
        bound = find(PersistentVolume, claim.spec.volume_name)
        if isinstance(bound, PersistentVolume) and bound.spec.csi is not None:
            yield bound.spec.csi.driver
