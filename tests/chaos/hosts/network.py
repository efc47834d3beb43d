"""Hosts with names, addresses and clocks of their own, and the network between them.

Each host is a network namespace and a host name. All of it is made within namespaces of the whole
run (`enter_namespaces`), so nothing of the machine is touched, and it ends with its first process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kcm.testing.waiting import until
from tests.chaos.hosts.switch import Rule

_PROGRAMS = ("unshare", "nsenter", "ip", "mount", "hostname", "redis-server", "redis-cli", "cc")
_INSIDE = "KCM_CHAOS_INSIDE"  # is set within the namespaces
CLIENTS = "clients"
_NAMESPACES = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


def find_missing() -> str:
    """Returns what the hosts need and this machine lacks, "" for nothing."""
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "/dev/net/tun is not there, or not for this user"
    tried = subprocess.run(["unshare", *_NAMESPACES, "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "namespaces are not allowed here"


def enter_namespaces(command: Sequence[str]) -> int | None:
    """Runs a command within namespaces of its own, and returns its exit status.

    Returns None if this process is within them.
    """
    if _INSIDE in os.environ:
        return None
    run = subprocess.Popen(["unshare", *_NAMESPACES, *command], env={**os.environ, _INSIDE: "yes"})
    try:
        return run.wait()
    finally:
        run.kill()
        run.wait()


class Host:
    """One host: where its programs run, and how far off its clock is."""

    def __init__(self, number: int, folder: Path, library: Path) -> None:
        self.name = f"h{number}"
        self.address = f"10.98.0.{number}"
        self.folder = folder / self.name
        self.folder.mkdir()
        self._library = library
        self._clock = self.folder / "clock"
        self.set_clock(0)
        self._holder = subprocess.Popen(
            ["unshare", "--net", "--uts", "sh", "-c", f"hostname {self.name}; exec sleep infinity"]
        )

    def set_clock(self, offset: int) -> None:
        """Puts the wall clock of all its programs so many seconds off."""
        self._clock.touch()
        with self._clock.open("r+b") as out:  # in place: it is mapped by those who read it
            out.write(offset.to_bytes(8, sys.byteorder, signed=True))

    def command(self, command: Sequence[str]) -> list[str]:
        """Returns a command line that becomes this one on the host."""
        return ["nsenter", f"--target={self._holder.pid}", "--net", "--uts", "--", *command]

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """The environment of programs of the host."""
        clock = {"LD_PRELOAD": str(self._library), "KCM_CLOCK": str(self._clock)}
        return {**os.environ, **clock, **more}

    def attach(self) -> None:
        """Gives the host its interface."""
        host = f"/proc/{self._holder.pid}"
        until(lambda: os.readlink(f"{host}/ns/net") != os.readlink("/proc/self/ns/net"))
        _ip("link", "set", self.name, "netns", str(self._holder.pid))
        _ip("link", "set", "lo", "up", within=self)
        _bring_up(self.name, self.address, self)


class Network:
    """The switch, and the place of the clients at it."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        names = [host.name for host in hosts]
        self._switch = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.hosts.switch", *names, CLIENTS],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._hear("up")
        _ip("link", "set", "lo", "up")
        _bring_up(CLIENTS, "10.98.0.100", None)
        for host in hosts:
            host.attach()

    def _hear(self, word: str) -> None:
        assert self._switch.stdout is not None
        assert self._switch.stdout.readline().strip() == word, "the switch has ended"

    def set_rules(self, *rules: Rule) -> None:
        """Makes these rules hold, and no others."""
        assert self._switch.stdin is not None
        self._switch.stdin.write(json.dumps(rules) + "\n")
        self._switch.stdin.flush()
        self._hear("ok")


def _ip(*arguments: str, within: Host | None = None) -> None:
    command = ["ip", *arguments]
    subprocess.run(within.command(command) if within else command, check=True)


def _bring_up(name: str, address: str, within: Host | None) -> None:
    _ip("address", "add", f"{address}/24", "dev", name, within=within)
    _ip("link", "set", name, "mtu", "9000", "up", within=within)


def build_clock_library(folder: Path) -> Path:
    """Compiles the library that sets the clocks of programs, and returns it."""
    source = Path(__file__).parents[1] / "set_clock.c"
    library = folder / "set_clock.so"
    command = ["cc", "-shared", "-fPIC", "-O", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return library
