"""Whether the server of an API can be reached, as the condition Available says.

Source:
staging/src/k8s.io/kube-aggregator/pkg/controllers/status/remote/remote_available_controller.go,
Kubernetes 1.33. Departure: upstream asks five times at once; here up to five different endpoints
are asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kcm import errors
from kcm.api.apiregistration_v1 import AVAILABLE, FALSE, TRUE, APIServiceCondition
from kcm.api.core_v1 import Endpoints, Service
from kcm.apiserver.aggregation import fetching
from kcm.apiserver.aggregation.fetching import Wanted
from kcm.apiserver.aggregation.identity import AGGREGATOR
from kcm.apiserver.aggregation.index import RemoteApi
from kcm.apiserver.egress.services import Address, ServiceResolver
from kcm.http.faults import CallFailed
from kcm.http.trust import Trust

ATTEMPTS = 5
TIMEOUT = 5.0  # seconds for one attempt
_LONGEST = 2000  # characters of a message
_CLUSTER_IP = "ClusterIP"
_FAILED = "FailedDiscoveryCheck"


@dataclass(frozen=True)
class Outcome:
    """The result of a check."""

    status: str
    reason: str
    message: str

    @property
    def passed(self) -> bool:
        """Whether the server can be reached."""
        return self.status == TRUE

    @property
    def retried(self) -> bool:
        """Whether the check is repeated soon, as nothing but the server's answer was wrong."""
        return self.reason == _FAILED

    def equals(self, condition: APIServiceCondition) -> bool:
        """Reports whether a condition says the same."""
        said = (condition.status, condition.reason, condition.message)
        return said == (self.status, self.reason, self.message[:_LONGEST])

    def condition(self, now: datetime) -> APIServiceCondition:
        """Returns the condition that says so."""
        return APIServiceCondition(
            type=AVAILABLE,
            status=self.status,
            last_transition_time=now.replace(microsecond=0),
            reason=self.reason,
            message=self.message[:_LONGEST],
        )


PASSED = Outcome(TRUE, "Passed", "all checks passed")


def check_service(
    api: RemoteApi, service: Service | None, endpoints: Endpoints | None
) -> Outcome | None:
    """Returns why a Service leads to no server, None if it may lead to one."""
    wanted = api.service
    where = f'service/{wanted.name} in "{wanted.namespace}"'
    if service is None:
        return Outcome(FALSE, "ServiceNotFound", f"{where} is not present")
    if (service.spec.type or _CLUSTER_IP) != _CLUSTER_IP:
        return None
    port = next((port for port in service.spec.ports or () if port.port == wanted.port), None)
    if port is None:
        return Outcome(FALSE, "ServicePortError", f"{where} is not listening on port {wanted.port}")
    if endpoints is None:
        return Outcome(FALSE, "EndpointsNotFound", f"cannot find endpoints for {where}")
    name = port.name or ""
    active = any(
        subset.addresses and any((one.name or "") == name for one in subset.ports or ())
        for subset in endpoints.subsets or ()
    )
    if not active:
        message = f'endpoints for {where} have no addresses with port name "{name}"'
        return Outcome(FALSE, "MissingEndpoints", message)
    return None


class Prober:
    """Asks servers for their discovery document."""

    def __init__(
        self, certificate: bytes, resolver: ServiceResolver, rng: random.Random | None = None
    ) -> None:
        """`certificate` is the client's, with its key, in PEM."""
        # Their certificates are not checked here: whether they answer is all that is asked.
        self._trust = Trust(certificate=certificate, insecure=True)
        self._resolver = resolver
        self._rng = rng or random.Random()

    async def probe(self, api: RemoteApi) -> Outcome:
        """Returns whether one of the servers answers, which takes `TIMEOUT` at most."""
        try:
            addresses = self._choose(api)
        except errors.ApiError as error:
            return _failed(error.message)
        tasks = [asyncio.ensure_future(self._ask(api, address)) for address in addresses]
        last = ""
        try:
            for asked in asyncio.as_completed(tasks):
                last = await asked
                if not last:
                    return PASSED
        finally:
            for task in tasks:
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*tasks, return_exceptions=True)
        return _failed(last)

    def _choose(self, api: RemoteApi) -> Sequence[Address]:
        service = api.service
        addresses = self._resolver.resolve_all(service.namespace, service.name, service.port)
        return self._rng.sample(addresses, min(ATTEMPTS, len(addresses)))

    async def _ask(self, api: RemoteApi, address: Address) -> str:
        """Returns what is wrong with an address, "" if nothing is."""
        url = f"https://{address.netloc}{api.path}"
        wanted = Wanted(api.path, AGGREGATOR, TIMEOUT, 0)
        try:
            status = await fetching.get_status(api, address, self._trust, wanted)
        except CallFailed as error:
            return f'failing or missing response from {url}: Get "{url}": {error.message}'
        if 200 <= status < 300:
            return ""
        return f"failing or missing response from {url}: bad status from {url}: {status}"


def _failed(why: str) -> Outcome:
    return Outcome(FALSE, _FAILED, why)
