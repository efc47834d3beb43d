"""Bootstrap signer: signs the ConfigMap cluster-info with each bootstrap token.

A machine that has a token can tell by the signature that the cluster's address and authority, which
it reads without credentials, are genuine.
Source: pkg/controller/bootstrap/bootstrapsigner.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kcm.api.core_v1 import ConfigMap, Secret
from kcm.helpers.bootstrap_tokens import (
    NAMESPACE,
    is_bootstrap_token,
    read_signing_token,
    seconds_left,
    sign_detached,
)
from kcm.sdk import Change, Controller, Plan, Update, View, Watch

CLUSTER_INFO = "kube-public/cluster-info"
_SIGNATURE = "jws-kubeconfig-"
_CONTENT = "kubeconfig"


class BootstrapSignerController(Controller):
    """Keeps the signatures of cluster-info. The only key is that of the ConfigMap."""

    name = "bootstrap-signer-controller"
    short_name = "bootstrapsigner"
    disabled_by_default = True

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(ConfigMap, key_of_cluster_info), Watch(Secret, key_of_cluster_info))

    def concurrent_syncs(self) -> int:
        return 1

    def reconcile(self, key: str, view: View) -> Plan:
        info = view.lister(ConfigMap).find(key)
        if info is None or info.deleting or _CONTENT not in (info.data or {}):
            return Plan()
        data = dict(info.data or {})
        secrets = [s for s in view.lister(Secret).list(NAMESPACE) if is_bootstrap_token(s)]
        signatures = {
            f"{_SIGNATURE}{token[0]}": sign_detached(data[_CONTENT], *token)
            for secret in secrets
            if (token := read_signing_token(secret, view.now)) is not None
        }
        kept = {name: text for name, text in data.items() if not name.startswith(_SIGNATURE)}
        plan = Plan(requeue_after=_next_expiry(secrets, view))
        if data != {**kept, **signatures}:
            plan.then(Update(info.replace(data={**kept, **signatures}), info))
        return plan


def _next_expiry(secrets: Iterable[Secret], view: View) -> float | None:
    """Returns the seconds until the next token expires, None if none does.

    Upstream removes the signature of an expired token only with the next change of a token.
    """
    every = (seconds_left(secret, view.now) for secret in secrets)
    return min((left for left in every if left is not None and left > 0), default=None)


def key_of_cluster_info(change: Change, view: View) -> Iterable[str]:
    """Yields the key of cluster-info if that or a bootstrap token was changed."""
    obj = change.object
    if isinstance(obj, Secret) and is_bootstrap_token(obj):
        yield CLUSTER_INFO
    if isinstance(obj, ConfigMap) and obj.key == CLUSTER_INFO:
        yield CLUSTER_INFO
