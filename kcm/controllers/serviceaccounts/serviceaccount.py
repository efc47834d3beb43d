"""ServiceAccount: creates the service account `default` in every namespace.

Source: pkg/controller/serviceaccount/serviceaccounts_controller.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kcm.api.core_v1 import Namespace, ServiceAccount
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.sdk import Change, Controller, Create, Plan, View, Watch, own_key

DEFAULT = "default"


class ServiceAccountController(Controller):
    """Creates the service account `default` where it is missing. A key is a namespace."""

    name = "serviceaccount-controller"
    short_name = "serviceaccount"

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(Namespace, own_key), Watch(ServiceAccount, namespace_of_lost_account))

    def reconcile(self, key: str, view: View) -> Plan:
        namespace = view.lister(Namespace).find(key)
        if namespace is None or namespace.deleting:
            return Plan()
        if view.lister(ServiceAccount).find(f"{key}/{DEFAULT}") is not None:
            return Plan()
        return Plan().then(Create(ServiceAccount(metadata=ObjectMeta(name=DEFAULT, namespace=key))))


def namespace_of_lost_account(change: Change, view: View) -> Iterable[str]:
    """Yields the namespace whose service account `default` was deleted."""
    if change.new is None and change.object.name == DEFAULT:
        yield change.object.namespace or ""
