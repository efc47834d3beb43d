"""Reads and writes the state of the simulated cloud, which all processes share.

Guarantees: no two load balancers have the same address, however many are made at the same time. A
process that dies between two writes leaves at most an address that its load balancer gets again.
Every method raises StoreUnavailable.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from itertools import islice

from kcm import errors
from kcm.reconcile.cloudprovider.interface import CloudError
from kcm.reconcile.cloudprovider.sim.records import (
    Balancer,
    Instance,
    MadeCall,
    Record,
    RecordT,
    Script,
    StoredRoute,
    read_record,
)
from kcm.reconcile.cloudprovider.sim.scriptbook import ScriptBook
from kcm.redisio import RedisIO

DEFAULT_POOL = "198.18.0.0/15"  # the range for benchmarks (RFC 2544), which nobody routes
KEPT_CALLS = 500
_ATTEMPTS = 20
_TRIED = 1 << 17  # the most addresses of a pool that are looked at

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class SimState:
    """The state of the simulated cloud. Thread-safe."""

    def __init__(self, io: RedisIO) -> None:
        self._io = io
        self._scripts = ScriptBook(io, self._key)

    def _key(self, part: str) -> str:
        return self._io.keys.cloud("sim", part)

    def _all(self, part: str, kind: type[RecordT]) -> dict[str, RecordT]:
        entries = self._io.execute("HGETALL", self._key(part))
        records = ((name, read_record(kind, text)) for name, text in entries.items())
        records_by_name = {
            name.decode(errors="replace"): record for name, record in records if record is not None
        }
        return dict(sorted(records_by_name.items()))

    def _read(self, part: str, name: str, kind: type[RecordT]) -> RecordT | None:
        text = self._io.execute("HGET", self._key(part), name)
        return read_record(kind, text) if text is not None else None

    def _put(self, part: str, name: str, record: Record) -> None:
        self._io.execute("HSET", self._key(part), name, record.model_dump_json())

    def _remove(self, part: str, *names: str) -> None:
        if names:
            self._io.execute("HDEL", self._key(part), *names)

    # --- instances

    def instances(self) -> dict[str, Instance]:
        """Returns the instances that differ from their nodes, by the node's name."""
        return self._all("instances", Instance)

    def instance(self, node: str) -> Instance:
        """Returns the instance for the node of this name."""
        return self._read("instances", node, Instance) or Instance()

    def put_instance(self, node: str, instance: Instance) -> None:
        """Stores the instance for a node."""
        self._put("instances", node, instance)

    # --- load balancers

    def balancers(self) -> dict[str, Balancer]:
        """Returns the load balancers by name."""
        return self._all("balancers", Balancer)

    def balancer(self, name: str) -> Balancer | None:
        """Returns a load balancer, None if there is none of this name."""
        return self._read("balancers", name, Balancer)

    def put_balancer(self, balancer: Balancer) -> None:
        """Stores a load balancer."""
        self._put("balancers", balancer.name, balancer)

    def remove_balancer(self, name: str) -> None:
        """Removes a load balancer, and frees its address."""
        self._remove("addresses", *(ip for ip, owner in self._addresses().items() if owner == name))
        self._remove("balancers", name)

    def pool(self) -> str:
        """Returns the range of addresses that load balancers get."""
        stored = self._io.execute("HGET", self._key("settings"), "pool")
        try:
            return str(ipaddress.ip_network(stored.decode())) if stored else DEFAULT_POOL
        except ValueError:
            return DEFAULT_POOL

    def set_pool(self, text: str) -> None:
        """Sets the range of addresses. Raises ConfigurationError if it is none."""
        try:
            network = ipaddress.ip_network(text)
        except ValueError as error:
            raise errors.ConfigurationError(
                f"{text} is not a range of addresses such as 192.0.2.0/24: {error}"
            ) from None
        self._io.execute("HSET", self._key("settings"), "pool", str(network))

    def _addresses(self) -> dict[str, str]:
        """Returns the names of the load balancers by their addresses."""
        entries = self._io.execute("HGETALL", self._key("addresses"))
        return {ip.decode(errors="replace"): name.decode(errors="replace")
                for ip, name in entries.items()}  # fmt: skip

    def allocate_address(self, name: str, wanted: str = "") -> str:
        """Returns the address of the load balancer `name`: the one it has, `wanted`, or a free one.

        Raises CloudError if `wanted` is in use or not in the pool, or if the pool is full.
        """
        network = ipaddress.ip_network(self.pool())
        for _ in range(_ATTEMPTS):
            owners = self._addresses()
            held = [ip for ip, owner in owners.items() if owner == name]
            if held and wanted in ("", *held):
                return wanted or held[0]
            ip = _choose(network, owners, wanted)
            if self._io.execute("HSETNX", self._key("addresses"), ip, name):
                self._remove("addresses", *held)
                return ip
        raise CloudError("the addresses of the pool change too fast; try again")

    # --- routes

    def routes(self) -> dict[str, StoredRoute]:
        """Returns the routes by name."""
        return self._all("routes", StoredRoute)

    def put_route(self, route: StoredRoute) -> None:
        """Stores a route."""
        self._put("routes", route.name, route)

    def remove_route(self, name: str) -> None:
        """Removes a route."""
        self._remove("routes", name)

    # --- scripts

    def scripts(self) -> dict[str, tuple[Script, int | None]]:
        """Returns the scripts by id, each with the number of calls that are left, None if that is
        not limited.
        """
        return self._scripts.list()

    def add_script(self, script: Script, times: int | None) -> str:
        """Adds a script for `times` calls, None for all. Returns its id."""
        return self._scripts.add(script, times)

    def clear_scripts(self) -> None:
        """Removes all scripts."""
        self._scripts.clear()

    def take_script(self, call: str, about: str) -> Script | None:
        """Returns the script that applies to a call, None if there is none, and counts the call."""
        return self._scripts.take(call, about)

    # --- calls

    def record_call(self, made: MadeCall) -> None:
        """Adds a call to the latest ones."""
        key = self._key("calls")
        self._io.pipeline(
            [("LPUSH", key, made.model_dump_json()), ("LTRIM", key, 0, KEPT_CALLS - 1)]
        )

    def calls(self, number: int) -> list[MadeCall]:
        """Returns the latest calls, the newest last."""
        texts = self._io.execute("LRANGE", self._key("calls"), 0, number - 1)
        made = [read_record(MadeCall, text) for text in texts]
        return [call for call in reversed(made) if call is not None]


def _choose(network: Network, owners: Mapping[str, str], wanted: str) -> str:
    """Returns the address to allocate. Raises CloudError if there is none."""
    if not wanted:
        for ip in islice(network.hosts(), _TRIED):
            if str(ip) not in owners:
                return str(ip)
        raise CloudError(f"the pool {network} has no free address")
    try:
        inside = ipaddress.ip_address(wanted) in network
    except ValueError:
        inside = False
    if not inside:
        raise CloudError(f"the requested address {wanted} is not in the pool {network}")
    if wanted in owners:
        raise CloudError(f"the requested address {wanted} is in use by {owners[wanted]}")
    return wanted
