"""A controller whose syncs do nothing but write a stamp."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from bench.stamps import StampWriter
from kcm.api.core_v1 import Namespace
from kcm.reconcile.contract import Change, Controller, View, Watch
from kcm.reconcile.plan import Plan

stamp = StampWriter()


class NoopController(Controller):
    """Writes a stamp in each sync. Measurements add its keys.

    It watches a kind only to have a cache, as other controllers do.
    """

    name: ClassVar[str] = "bench-noop-controller"
    short_name: ClassVar[str] = "benchnoop"
    group: ClassVar[str] = "bench"

    def watches(self) -> tuple[Watch, ...]:
        return (Watch(Namespace, _no_keys),)

    def concurrent_syncs(self) -> int:
        return 64

    def reconcile(self, key: str, view: View) -> Plan:
        stamp()
        return Plan()


def _no_keys(change: Change, view: View) -> Iterable[str]:
    return ()
