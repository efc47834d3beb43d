"""Makes the calls of a plan. An error of a call becomes its answer."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from kcm.reconcile.cloudprovider.calls import Answer, CloudCall
from kcm.reconcile.cloudprovider.interface import CloudProvider

MAX_CONCURRENT = 20  # calls of one plan at a time


class CloudCaller:
    """Makes calls to one cloud for the cluster of the name `cluster`. Thread-safe."""

    def __init__(self, cloud: CloudProvider, cluster: str) -> None:
        self.cloud = cloud
        self.cluster = cluster

    def make(self, calls: Sequence[CloudCall]) -> list[Answer]:
        """Makes calls that do not depend on each other, several at a time.

        Returns the answers in the order of the calls.
        """
        if len(calls) <= 1:
            return [self._make_one(call) for call in calls]
        with ThreadPoolExecutor(min(len(calls), MAX_CONCURRENT), "kcm-cloud-call") as pool:
            return list(pool.map(self._make_one, calls))

    def _make_one(self, call: CloudCall) -> Answer:
        try:
            return Answer(call, value=call.make(self.cloud, self.cluster))
        except Exception as error:  # noqa: BLE001 - a provider may raise anything
            return Answer(call, error=error)
