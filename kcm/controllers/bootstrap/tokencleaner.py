"""Token cleaner: deletes bootstrap tokens that have expired.

Source: pkg/controller/bootstrap/tokencleaner.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kcm.api.core_v1 import Secret
from kcm.helpers.bootstrap_tokens import is_bootstrap_token, seconds_left
from kcm.sdk import Change, Controller, Delete, DeleteOptions, Plan, View, Watch


class TokenCleanerController(Controller):
    """Deletes Secrets of bootstrap tokens when they expire. A key is a Secret."""

    name = "token-cleaner-controller"
    short_name = "tokencleaner"
    disabled_by_default = True

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(Secret, key_of_token),)

    def concurrent_syncs(self) -> int:
        return 1

    def reconcile(self, key: str, view: View) -> Plan:
        secret = view.lister(Secret).find(key)
        if secret is None or secret.deleting or not is_bootstrap_token(secret):
            return Plan()
        left = seconds_left(secret, view.now)
        if left is None:
            return Plan()
        if left > 0:
            return Plan(requeue_after=left)
        return Plan().then(Delete(secret, DeleteOptions(uid=secret.uid)))


def key_of_token(change: Change, view: View) -> Iterable[str]:
    """Yields the key of a changed Secret if it holds a bootstrap token."""
    secret = change.new
    if isinstance(secret, Secret) and is_bootstrap_token(secret):
        yield secret.key
