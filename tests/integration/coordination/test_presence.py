from __future__ import annotations

from kcm.coordination.presence import Member, Presence, members
from kcm.loops import ThreadHost
from kcm.redisio import RedisIO
from kcm.testing.waiting import until
from tests.server_clock import step


def test_a_process_that_gave_a_sign_is_alive(io: RedisIO) -> None:
    member = Member("a", "worker", "celery@host", ("core", "ticks"))
    Presence(io, member).once()
    (seen,) = members(io)
    assert seen.silent < 5
    assert (seen.identity, seen.kind, seen.queues, seen.pid) == (
        "a",
        "worker",
        member.queues,
        member.pid,
    )


def test_a_silent_process_is_not_shown_and_is_cleared_away(io: RedisIO) -> None:
    Presence(io, Member("dead", "worker")).once()
    step(io, 31)
    assert members(io) == []
    assert Presence(io, Member("b", "manager"), forgets=True).once() == ["dead"]
    assert [member.identity for member in members(io)] == ["b"]


def test_a_sign_from_the_future_is_none_once_the_clock_was_set_back(io: RedisIO) -> None:
    io.clock_offset_ms = 3_600_000
    Presence(io, Member("dead", "worker")).once()
    io.clock_offset_ms = 0
    assert members(io) == []
    assert Presence(io, Member("b", "manager"), forgets=True).once() == ["dead"]


def test_who_ends_cleanly_disappears_at_once(io: RedisIO) -> None:
    host = ThreadHost()
    host.run(Presence(io, Member("a", "worker")))
    until(lambda: members(io), "its first sign")
    host.stop()
    assert members(io) == []


def test_foreign_entries_are_not_shown(io: RedisIO) -> None:
    io.execute("HSET", io.keys.workers(), "x", "rubbish", "y", '{"last_seen":1}')
    assert members(io) == []


def test_processes_stay_alive_when_the_servers_clock_was_set_back(io: RedisIO) -> None:
    io.execute("HSET", io.keys.meta(), "set_back", "3600000")  # as leases note it
    Presence(io, Member("a", "worker")).once()
    assert [member.identity for member in members(io)] == ["a"]
    assert Presence(io, Member("b", "worker"), forgets=True).once() == []
