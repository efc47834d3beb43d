"""What can befall hosts. A fault takes place, lasts, and is over when its function returns."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress

import psutil
import redis

from kcm.testing.waiting import let_time_pass
from tests.chaos.hosts.network import CLIENTS
from tests.chaos.hosts.rig import KINDS, Program, Rig

Fault = Callable[[Rig, random.Random], str]  # returns what it did

END_WITHIN = 30.0  # seconds after SIGTERM, before a program is killed
NEVER = "more than 30 s"
HOUR = 3600


def _choose(rig: Rig, rng: random.Random, kind: str) -> Program:
    return rng.choice([p for p in rig.programs if p.kind == kind])


def _killing(kind: str) -> Fault:
    def kill(rig: Rig, rng: random.Random) -> str:
        program = _choose(rig, rng, kind)
        away = rng.uniform(0, 6)
        program.held = True
        program.signal(signal.SIGKILL)
        let_time_pass(away, "its supervisor takes a moment")
        program.held = False
        return f"{program.name} killed, away for {away:.1f} s"

    return kill


def _stopping(kind: str) -> Fault:
    def stop(rig: Rig, rng: random.Random) -> str:
        program = _choose(rig, rng, kind)
        seconds = rng.uniform(1, 12)
        family = program.family()
        _send(family, signal.SIGSTOP)
        let_time_pass(seconds, "it stands still")
        _send(family, signal.SIGCONT)
        return f"{program.name} stood still for {seconds:.1f} s"

    return stop


def _ending(kind: str) -> Fault:
    def end(rig: Rig, rng: random.Random) -> str:
        program = _choose(rig, rng, kind)
        process, took = program.process, "no time"
        program.held = True
        if process is not None:
            began = time.monotonic()
            _send([process], signal.SIGTERM)
            try:
                process.wait(END_WITHIN)
                took = f"{time.monotonic() - began:.1f} s"
            except psutil.TimeoutExpired:
                took = NEVER
                program.signal(signal.SIGKILL)
        program.held = False
        return f"{program.name} ended in {took}"

    return end


def _send(family: list[psutil.Process], number: int) -> None:
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def kill_a_child(rig: Rig, rng: random.Random) -> str:
    """Kills a process of a worker's pool in the middle of whatever it syncs."""
    program = _choose(rig, rng, "worker")
    children = program.family()[1:]
    if children:
        _send([rng.choice(children)], signal.SIGKILL)
    return f"a child of {program.name} killed"


def cut_a_host(rig: Rig, rng: random.Random) -> str:
    """Loses all frames from and to a host."""
    host, seconds = rng.choice(rig.hosts), rng.uniform(2, 15)
    with rig.rules((host.name, "*", 1, 0, 0), ("*", host.name, 1, 0, 0)):
        let_time_pass(seconds, "the host is cut off")
    return f"{host.name} cut off for {seconds:.1f} s"


def cut_one_direction(rig: Rig, rng: random.Random) -> str:
    """Loses all frames from a host, or all frames to it."""
    host, seconds = rng.choice(rig.hosts), rng.uniform(2, 12)
    ends = rng.choice([(host.name, "*"), ("*", host.name)])
    with rig.rules((*ends, 1, 0, 0)):
        let_time_pass(seconds, "one direction is cut off")
    return f"nothing from {ends[0]} to {ends[1]} for {seconds:.1f} s"


def part_two_hosts(rig: Rig, rng: random.Random) -> str:
    """Loses all frames from one host to another, or to the clients."""
    hosts = [*(host.name for host in rig.hosts), CLIENTS]
    source, destination = rng.sample(hosts, 2)
    seconds = rng.uniform(2, 12)
    with rig.rules((source, destination, 1, 0, 0)):
        let_time_pass(seconds, "two hosts are parted")
    return f"nothing from {source} to {destination} for {seconds:.1f} s"


def delay_a_host(rig: Rig, rng: random.Random) -> str:
    """Makes all that a host sends late, each frame by another time."""
    host, seconds, late = rng.choice(rig.hosts), rng.uniform(3, 10), rng.uniform(0.01, 0.4)
    with rig.rules((host.name, "*", 0, late, late)):
        let_time_pass(seconds, "the network is slow")
    return f"{host.name} late by {late:.2f} to {2 * late:.2f} s for {seconds:.1f} s"


def lose_some(rig: Rig, rng: random.Random) -> str:
    """Loses a part of the frames from and to a host."""
    host, seconds, share = rng.choice(rig.hosts), rng.uniform(3, 10), rng.uniform(0.02, 0.4)
    with rig.rules((host.name, "*", share, 0, 0), ("*", host.name, share, 0, 0)):
        let_time_pass(seconds, "the network loses frames")
    return f"{host.name} loses {share:.0%} for {seconds:.1f} s"


def fill_a_disk(rig: Rig, rng: random.Random) -> str:
    """Fills the disk of a Redis."""
    host, seconds = rng.choice(rig.hosts), rng.uniform(2, 10)
    ballast = host.folder / "disk" / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as out:
        while True:
            out.write(b"x" * 65536)
    let_time_pass(seconds, "the disk is full")
    ballast.unlink()
    return f"the disk of {host.name} full for {seconds:.1f} s"


def set_a_clock(rig: Rig, rng: random.Random) -> str:
    """Sets the clock of a host, and back."""
    host, seconds, step = rng.choice(rig.hosts), rng.uniform(2, 8), rng.randint(-HOUR, HOUR)
    host.set_clock(step)
    let_time_pass(seconds, "the clock is wrong")
    host.set_clock(0)
    return f"the clock of {host.name} {step} s off for {seconds:.1f} s"


def fail_over(rig: Rig, rng: random.Random) -> str:
    """Tells a sentinel to make another master; it refuses within 20 s of the last time."""
    host = rng.choice(rig.hosts)
    try:
        rig.ask_sentinel(host, "FAILOVER", "kcm")
    except redis.RedisError as error:
        return f"a failover was refused: {error}"
    let_time_pass(3, "another master is made")
    return "a planned failover"


def cut_every_connection(rig: Rig, rng: random.Random) -> str:
    """Closes every connection to a Redis, those of replicas and sentinels, too."""
    host = rng.choice(rig.hosts)
    with suppress(redis.RedisError):
        for kind in ("normal", "pubsub", "replica", "master"):
            rig.ask(host, "CLIENT", "KILL", "TYPE", kind)
    return f"every connection to {host.name} closed"


# Those that may cost a Redis: one of them at a time, as design 0066 promises no more.
OF_REDIS: dict[str, Fault] = {
    "cut": cut_a_host, "one-way": cut_one_direction, "parted": part_two_hosts,
    "late": delay_a_host, "lossy": lose_some, "disk": fill_a_disk, "clock": set_a_clock,
    "failover": fail_over, "connections": cut_every_connection,
    "kill-redis": _killing("redis"), "stop-redis": _stopping("redis"),
    "end-redis": _ending("redis"),
}  # fmt: skip
OTHERS: dict[str, Fault] = {
    "kill-child": kill_a_child,
    **{
        f"{verb}-{kind}": make(kind)
        for verb, make in (("kill", _killing), ("stop", _stopping), ("end", _ending))
        for kind in KINDS
        if kind != "redis"
    },
}


def draw(rng: random.Random) -> list[tuple[str, Fault]]:
    """Draws what happens at a time: one fault of any kind, and up to two that cost no Redis."""
    pool = OF_REDIS if rng.random() < 0.6 else OTHERS
    names = [rng.choice(sorted(pool)), *rng.sample(sorted(OTHERS), rng.randrange(3))]
    return [(name, (OF_REDIS | OTHERS)[name]) for name in names]
