"""Servers are promoted, cut off and given up in any order, while clients write and watch.

Whatever happens, no resourceVersion is given twice, no cache shows what is not stored, and no token
of one term opens anything in another (design 0003). Clients that were not led to the new master yet
are late writers, and read from the former one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kcm import errors
from kcm.testing.waiting import until
from tests.integration.redisio.clients import Client, stored_versions
from tests.integration.redisio.replicas import Replicas, Server, running_replicas

CLIENTS = st.integers(0, 1)
SERVERS = st.integers(0, 2)


class Promotions(RuleBasedStateMachine):
    """The model knows which server is in which of its terms, and what was acknowledged."""

    replicas: Replicas  # set by the test

    def __init__(self) -> None:
        super().__init__()
        self.replicas.begin()
        self.clients = [Client(self.replicas, name) for name in ("one", "two")]
        self.terms = dict.fromkeys(self.replicas.servers, 0)
        self.given: dict[int, str] = {}  # the pods by their resourceVersions
        self.acquired: dict[str, tuple[Server, int]] = {}  # where and when each token was drawn
        self.names = (f"p{number}" for number in range(10_000))

    @property
    def masters(self) -> list[Server]:
        """The master, and others that do not know yet that they are none any more."""
        return [s for s in self.replicas.servers if s.replication["role"] == "master"]

    # --- what clients do

    @rule(client=CLIENTS)
    def create(self, client: int) -> None:
        with may_fail():
            name = next(self.names)
            self.record(name, self.clients[client].create(name))

    def record(self, name: str, version: int) -> None:
        assert version not in self.given, f"{version} is {self.given[version]} and {name}"
        self.given[version] = name

    @rule(client=CLIENTS)
    def acquire(self, client: int) -> None:
        with may_fail():
            token = self.clients[client].acquire()
            lease = f"kcm:lease:{self.clients[client].name}"
            (server,) = [s for s in self.masters if s.client.hget(lease, "token") == token.encode()]
            self.acquired[token] = (server, self.terms[server])

    @precondition(lambda self: any(client.fence for client in self.clients))
    @rule(client=CLIENTS)
    def create_under_the_lease(self, client: int) -> None:
        fence = self.clients[client].fence
        if fence is None:
            return
        with may_fail():
            name = next(self.names)
            self.record(name, self.clients[client].create(name, fence))
            (server,) = [s for s in self.masters if name in stored_versions(s)]
            assert self.acquired[fence.token] == (server, self.terms[server]), "an old fence held"

    @rule(client=CLIENTS)
    def read(self, client: int) -> None:
        self.clients[client].read()

    # --- what happens to servers

    @rule(server=SERVERS, complete=st.booleans())
    def promote(self, server: int, complete: bool) -> None:
        """Promotes a replica. The former master goes on until it is told."""
        promoted = self.replicas.servers[server]
        if promoted in self.masters:
            return
        if complete:
            until(lambda: promoted.has_all_of(self.leader_of(promoted)), "all is replicated")
        promoted.promote()
        self.replicas.master = promoted
        self.terms[promoted] += 1

    def leader_of(self, replica: Server) -> Server:
        port = replica.replication["master_port"]
        return next(s for s in self.replicas.servers if s.port == port)

    @rule(client=CLIENTS)
    def lead(self, client: int) -> None:
        self.clients[client].lead()

    @rule()
    def demote_the_others(self) -> None:
        for server in self.masters:
            if server is not self.replicas.master:
                self.terms[server] += 1
        self.replicas.follow()

    @rule(server=SERVERS, late=st.integers(0, 3))
    def fail_over(self, server: int, late: int) -> None:
        """Promotes a replica while somebody still writes to the former master, then demotes that
        and leads everybody to the new one.
        """
        self.promote(server, complete=True)
        for _ in range(late):
            self.create(0)
        self.demote_the_others()
        for client in self.clients:
            client.lead()

    @rule()
    def give_the_master_up(self) -> None:
        """The master and what it has is lost, and another goes on that was never told of it."""
        others = [server for server in self.masters if server is not self.replicas.master]
        if others:
            self.terms[self.replicas.master] += 1
            self.replicas.master = others[0]
            for client in self.clients:
                client.lead()
            self.demote_the_others()

    # --- what must hold

    @rule()
    def nothing_is_listed_that_is_not_stored(self) -> None:
        for client in self.clients:
            client.lead()
        self.demote_the_others()
        for client in self.clients:
            client.catch_up()
        stored = stored_versions(self.replicas.master)
        for client in self.clients:
            assert client.cache.versions == stored

    @invariant()
    def resource_versions_are_told_apart(self) -> None:
        """Checks, on all servers that take writes, the versions of objects that have one."""
        for server in self.masters:
            for name, version in stored_versions(server).items():
                assert self.given.get(version, name) == name

    def teardown(self) -> None:
        try:
            self.nothing_is_listed_that_is_not_stored()
        finally:
            for client in self.clients:
                client.io.close()


@contextmanager
def may_fail() -> Iterator[None]:
    """Lets a call fail, as calls do while servers change places."""
    with suppress(errors.Temporary, errors.Fenced):
        yield


def check(folder: Path, examples: int, steps: int) -> None:
    with running_replicas(folder) as replicas:
        machine = type("Machine", (Promotions,), {"replicas": replicas})
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                phases=[Phase.generate],  # a shorter example would take minutes to find
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )


def test_terms_are_told_apart(tmp_path: Path) -> None:
    check(tmp_path, examples=6, steps=20)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_terms_are_told_apart_for_long(tmp_path: Path) -> None:
    check(tmp_path, examples=200, steps=40)
