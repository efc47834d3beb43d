"""Measures what admission policies add to the creation of an object over the REST API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from bench.harness import Bench, progress
from bench.rest.system import CORE, RestSystem, difference, rest_system
from bench.table import Row, Sample

_GROUP = "/apis/admissionregistration.k8s.io/v1"
_POLICIES = f"{_GROUP}/validatingadmissionpolicies"
_BINDINGS = f"{_GROUP}/validatingadmissionpolicybindings"
_CONFIG_MAPS = f"{CORE}/configmaps"
_SERVER = "apiserver"  # the title of the process that checks
_MOST = 2.0  # ms of CPU that all policies may add to one create
_FORBIDDEN = "forbidden"


def rows(bench: Bench) -> Iterator[Row]:
    """Measures creates of ConfigMaps with many policies about them, and in turns with none.

    Without bindings, policies are about nothing.
    """
    sizes = bench.sizes
    with rest_system(bench) as system:
        rounds = _Rounds(system, sizes.policies, sizes.rest_writes)
        progress(f"rest: {rounds.creates} creates with {rounds.policies} policies, and with none")
        rounds.write_policies()
        system.settle()
        pairs = [rounds.measure_both(number) for number in range(sizes.rest_rounds)]
    baseline = Sample.of([without for without, _ in pairs])
    yield Row(
        name="rest.policies",
        what=f"CPU of the API server for a create that {sizes.policies} policies check",
        unit="ms",
        measured=Sample.of([with_them for _, with_them in pairs]),
        baseline=baseline,
        baseline_what="ms, of one that no policy checks",
        bound=baseline.median + _MOST,
        target=f"{_MOST:g} ms more",
    )


class _Rounds:
    """Creates of ConfigMaps in one system, with and without bindings of its policies."""

    def __init__(self, system: RestSystem, policies: int, creates: int) -> None:
        self._system = system
        self.policies = policies
        self.creates = creates

    def write_policies(self) -> None:
        """Creates policies of one expression each, none of which is bound."""
        creates = []
        for number in range(self.policies):
            rule = {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["configmaps"],
            }
            expression = f"object.data.mode != '{_FORBIDDEN}' && size(object.data) < {100 + number}"
            spec = {
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [{"expression": expression}],
            }
            creates.append(self._create(_POLICIES, f"policy-{number}", {"spec": spec}))
        self._system.client.ask_all(creates)

    def measure_both(self, number: int) -> tuple[float, float]:
        """Returns the milliseconds of CPU for a create without and with policies."""
        without = self._measure(f"without-{number}")
        self._bind()
        self._check_held()
        with_them = self._measure(f"with-{number}")
        self._unbind()
        return without, with_them

    def _bind(self) -> None:
        creates = []
        for number in range(self.policies):
            spec = {"policyName": f"policy-{number}", "validationActions": ["Deny"]}
            creates.append(self._create(_BINDINGS, f"policy-{number}", {"spec": spec}))
        self._system.client.ask_all(creates)

    def _check_held(self) -> None:
        """Raises an error unless policies hold.

        The list waits until the server's cache has every binding. The first check compiles the
        expressions, which is not measured.
        """
        self._ask("GET", _BINDINGS)
        self._system.client.ask(self._create_config_map("allowed", "production"))
        try:
            self._system.client.ask(self._create_config_map("refused", _FORBIDDEN))
        except RuntimeError:
            self._ask("DELETE", f"{_CONFIG_MAPS}/allowed")
            return
        raise AssertionError("the policies do not hold")

    def _unbind(self) -> None:
        self._ask("DELETE", _BINDINGS)
        self._ask("GET", _BINDINGS)

    def _measure(self, prefix: str) -> float:
        names = [f"{prefix}-{n}" for n in range(self.creates)]
        requests = [self._create_config_map(name, "production") for name in names]
        before = self._system.cpu()
        self._system.client.ask_all(requests)
        used = difference(before, self._system.cpu())
        self._ask("DELETE", _CONFIG_MAPS)
        self._system.settle()
        return used[_SERVER] * 1e3 / self.creates

    def _create_config_map(self, name: str, mode: str) -> bytes:
        data = {"mode": mode, "config": "key: value\n" * 20}
        return self._create(_CONFIG_MAPS, name, {"data": data})

    def _create(self, path: str, name: str, fields: Mapping[str, Any]) -> bytes:
        body = json.dumps({"metadata": {"name": name}, **fields}).encode()
        return self._system.servers.api.request("POST", path, body)

    def _ask(self, method: str, path: str) -> bytes:
        return self._system.client.ask(self._system.servers.api.request(method, path))
