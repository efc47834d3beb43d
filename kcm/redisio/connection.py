"""Connections to Redis, script calls, and the driver's errors as kcm's own.

Guarantees: a call either returns the script's reply or raises one of `kcm.errors`. Each script
compares the epoch, and the server's term as master, so on a server that was promoted, restarted or
emptied a call of a stale process never succeeds silently. Does not guarantee that a call that
raised `StoreUnavailable` was not carried out: call ids make it safe to repeat.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import redis
import structlog

from kcm import errors
from kcm.redisio import scripts
from kcm.redisio.commands import Argument, Command, Reply, encode, pack
from kcm.redisio.driver import RETRIES, connect
from kcm.redisio.keys import Keys
from kcm.redisio.links import Links
from kcm.redisio.quick import LinkError, QuickPool
from kcm.redisio.replication import ReplicationWait
from kcm.redisio.translation import translate_errors
from kcm.settings import Settings

log = structlog.get_logger("kcm.redis")

FORMAT_VERSION = 1
_TIME_DIGITS = 15  # of a time in milliseconds, as in lib_core.lua
# The scripts that store objects, whose writes are promised to clients.
_PROMISED = frozenset({"store_write", "store_purge"})


def new_call_id() -> str:
    """Returns a new call id, under which the first answer to a call is kept."""
    return uuid.uuid4().hex


class RedisIO:
    """The connections of one process to Redis. Thread-safe; it does not survive a fork.

    `name` is the client name in CLIENT LIST. If `patient` is false, a call is sent only once: for
    callers that can do without a reply and must not wait long for it. `links` are those of the
    process's other clients of the same server.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        clock_offset_ms: int = 0,
        name: str = "",
        patient: bool = True,
        links: Links | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.name = name
        self.keys = Keys(self.settings.prefix)
        self.clock_offset_ms = clock_offset_ms
        self.links = links or Links()
        self._replication: ReplicationWait | None = None
        if self.settings.redis_durability == "replicated":
            self._replication = self.links.share_replication_wait(self._build_replication_wait)
        self._client = connect(self.settings, name, RETRIES if patient else 0, self.links)
        self._is_patient = patient
        self._callbacks: dict[Argument, Callable[[Reply], Reply]] = dict(
            self._client.response_callbacks
        )
        self.epoch = ""  # as this process knows it; "" before the first attach
        self.term = ""  # the replication id of the server in this epoch
        self.data_id = ""  # the data id, which changes when the store was emptied
        self._attach_lock = threading.Lock()

    def call(self, name: str, *args: Argument, call_id: str | None = None) -> list[str]:
        """Calls a script, and returns its reply: a flat array of strings, the status word first.

        With `call_id` None a new one is drawn; '' is for scripts that only read, or that may run
        twice. Raises: StoreUnavailable, OutOfMemory, StorageFull, WrongTypeOfKey,
        ConfigurationError, EpochChanged; NotReplicated for objects that were written, and may be
        lost with the server.
        """
        call_id = new_call_id() if call_id is None else call_id
        script = scripts.load(name)
        for _ in range(3):
            term = self.term
            reply = self._evalsha(script, call_id, args)
            if reply is not None and reply[0] != "EPOCH":
                if name in _PROMISED and reply[0] == "OK":
                    self.confirm(term)
                return reply
            self._attach_again()
        raise errors.EpochChanged

    def confirm(self, term: str) -> None:
        """Waits until the replicas have what was written in this term, if they must. Raises:
        NotReplicated.
        """
        if self._replication is not None:
            self._replication.confirm(term)

    def observe_replicas(self) -> None:
        """Notes how many replicas the master has, if writes wait for them. Raises:
        StoreUnavailable.
        """
        if self._replication is not None:
            self._replication.observe()

    def _build_replication_wait(self) -> ReplicationWait:
        settings = self.settings
        client = connect(settings, "kcm/replication", 0, self.links)
        seconds = settings.socket_timeout * 2 / 3
        return ReplicationWait(client, self.keys, settings.redis_replicas, seconds)

    def restore_last_versions(self) -> None:
        """Restores the records of each kind's last write and of trimming, if the first was lost.

        The watch logs have both. Raises: StoreUnavailable.
        """
        prefix, kinds = f"{self.keys.prefix}:", set()
        for name in self.scan(f"{prefix}*"):
            start, _, kind = name.removeprefix(prefix).partition(":")
            if start in ("keys", "watch") and ":" not in kind:
                kinds.add(kind)
        self.call("store_restore", *sorted(kinds), call_id="")

    def _evalsha(
        self, script: scripts.Script, call_id: str, args: Sequence[Argument]
    ) -> list[str] | None:
        own = (self.keys.prefix, self.epoch, call_id, self.clock_offset_ms)
        with translate_errors(self.links):
            try:
                raw = self._execute("EVALSHA", script.sha, 0, *own, *args)
            except redis.exceptions.NoScriptError:
                return None
            except redis.exceptions.ResponseError as error:
                if not errors.is_about_type(str(error)):
                    raise
                # Again, as a caller would, in a form that names the key in its error.
                raw = self._execute("EVAL", script.naming_text, 0, *own, *args)
        reply: list[str] = json.loads(raw)
        return reply

    def attach(self) -> None:
        """Reads the store's epoch or begins one, then loads all scripts (design 0003).

        Raises: StoreUnavailable, ConfigurationError for data of a newer kcm.
        """
        with self._attach_lock, translate_errors(self.links):
            status, *facts = self._ask_epoch()
            if status == "FORMAT":
                raise errors.ConfigurationError(
                    f"the data under prefix {self.keys.prefix!r} has format {facts[0]}, newer than "
                    f"format {FORMAT_VERSION} of this kcm: upgrade kcm, or set KCM_PREFIX"
                )
            self._load_scripts()
            self.epoch, self.data_id, self.term = facts
            self.links.enter_epoch(self.epoch)
        if status == "EMPTIED" and self.links.is_told_first(self.data_id):
            log.error(
                "The store was emptied: all of its objects are gone. The objects that the system "
                "needs are created again; apply the others again, or restore a backup",
                epoch=self.epoch,
            )

    def _attach_again(self) -> None:
        """Attaches over a new connection, unless it is the first time: the name, or the sentinel,
        may lead to another server by now.
        """
        if self.epoch:
            self.drop()
        self.attach()

    def _load_scripts(self) -> None:
        """Loads the scripts that the server does not have.

        A process has a client for each controller, and the first one loads them for all.
        """
        wanted = [scripts.load(name) for name in scripts.names()]
        loaded = self._execute("SCRIPT EXISTS", *(script.sha for script in wanted))
        missing = [script.text for script, there in zip(wanted, loaded, strict=True) if not there]
        if missing:
            self.pipeline([("SCRIPT LOAD", text) for text in missing])

    def _ask_epoch(self) -> list[str]:
        own = (self.keys.prefix, FORMAT_VERSION, self.data_id, self.epoch)
        reply: list[str] = json.loads(self._execute("EVAL", scripts.load_alone("attach"), 0, *own))
        return reply

    def epoch_reads(self) -> list[Sequence[Argument]]:
        """Returns the commands whose replies `in_epoch` takes."""
        return [
            ("HMGET", self.keys.meta(), "epoch", "epoch_start", "replid"),
            ("INFO replication",),  # in one string: the driver leaves the reply as it is
        ]

    def in_epoch(self, record: Sequence[bytes | None], replication: bytes) -> int | None:
        """Returns the first resourceVersion of the epoch that this process knows, if what was read
        together with these replies is of it. Otherwise reads or begins the epoch, and returns None:
        positions are void.

        Raises: StoreUnavailable.
        """
        epoch, start, term = record
        is_of_term = not term or b"master_replid:" + term in replication
        if not is_of_term or not self._is_epoch(epoch):
            self._attach_again()
        if not is_of_term or not self._is_epoch(epoch):  # it is the first attach otherwise
            return None
        return int(start or 0)

    def _is_epoch(self, stored: bytes | None) -> bool:
        """Reports whether this is the epoch that the process knows."""
        return stored == self.epoch.encode()

    def require_epoch(self, epoch: bytes | None) -> None:
        """Raises EpochChanged if this is not the epoch that the process knows, which is read then.
        `epoch` was read together with what has to be of it.
        """
        if self.epoch and not self._is_epoch(epoch):
            self._attach_again()
            raise errors.EpochChanged

    def execute(self, *command: Argument) -> Any:
        """Sends one plain command, and returns its reply as the driver parses it (bytes stay
        bytes).
        """
        with translate_errors(self.links, command):
            return self._execute(*command)

    def counter(self) -> int:
        """Returns the counter that is the source of every resourceVersion. It is of the epoch that
        this process knows from then on, so that a list can begin with it.

        Raises: StoreUnavailable, EpochChanged.
        """
        reads = [("GET", self.keys.resource_version()), ("HGET", self.keys.meta(), "epoch")]
        for _ in range(2):
            counter, epoch = self.pipeline_each(reads)
            if not self.epoch or self._is_epoch(epoch):
                with suppress(TypeError, ValueError):
                    return int(counter)
            self._attach_again()  # sets a counter again that is lost or has another type
        raise errors.EpochChanged

    def now(self) -> float:
        """Returns the time in seconds on the clock by which leases end and keys become due.

        Raises: StoreUnavailable.
        """
        (seconds, micros), (set_back, time_set) = self.pipeline(
            [("TIME",), ("HMGET", self.keys.meta(), "set_back", "time")]
        )
        ahead = int(set_back) if set_back and set_back.isdigit() else 0
        wall = int(seconds) + int(micros) / 1e6 + self.clock_offset_ms / 1000
        return _apply_set_time(wall, time_set) + ahead / 1000

    def set_time(self, moment: float | None = None, *, ahead: float = 0.0) -> None:
        """Sets the time of all scripts of this prefix, for tests.

        It stands still at `moment`, in seconds since 1970, or goes on `ahead` seconds ahead of the
        server's. Raises: StoreUnavailable.
        """
        value = f"+{round(ahead * 1000)}" if moment is None else f"{round(moment * 1000)}"
        self.execute("HSET", self.keys.meta(), "time", value)

    def pipeline(self, commands: Sequence[Command]) -> list[Reply]:
        """Sends several plain commands in one round trip, without a transaction. Returns the
        replies.
        """
        replies = self.pipeline_each(commands)
        for command, reply in zip(commands, replies, strict=True):
            if isinstance(reply, Exception):
                with translate_errors(self.links, command):
                    raise reply
        return replies

    def pipeline_each(self, commands: Sequence[Command], *, at_once: bool = False) -> list[Reply]:
        """Sends several plain commands, and returns the replies, of which some may be exceptions.

        With `at_once`, they are one transaction. Raises: StoreUnavailable.
        """
        with translate_errors(self.links):
            if at_once:
                return self._drive_all(commands, at_once=True)
            try:
                replies = self._exchange(commands)
            except LinkError:
                return self._drive_all(commands)
        return [
            reply if isinstance(reply, Exception) else self._parse(command, reply)
            for command, reply in zip(commands, replies, strict=True)
        ]

    def scan(self, pattern: str) -> Iterator[str]:
        """Yields every key that matches a glob, without blocking the server as KEYS would."""
        with translate_errors(self.links):
            for key in self._client.scan_iter(match=pattern, count=1000):
                yield key.decode()

    def end_blocking_reads(self) -> None:
        """Ends all reads of the server that wait for changes, those of other processes as well.

        Each returns as after its timeout. It is for a server whose clients are about to stop.
        """
        with translate_errors(self.links):
            for client in self._client.client_list():
                if "b" in client["flags"]:
                    self._client.client_unblock(int(client["id"]))

    def info(self, section: str) -> dict[str, Any]:
        """Returns a section of INFO, parsed."""
        with translate_errors(self.links):
            return dict(self._client.info(section))

    def _execute(self, *command: Argument) -> Reply:
        try:
            (reply,) = self._exchange([command])
        except LinkError:
            return self._drive(*command)
        if isinstance(reply, Exception):
            raise reply
        return self._parse(command, reply)

    def _exchange(self, commands: Sequence[Command]) -> list[Reply]:
        """Sends commands once, and returns the replies, of which some may be exceptions.

        Raises: LinkError, after which the driver has to send them.
        """
        pool = self._client.connection_pool
        if not self._is_patient or not isinstance(pool, QuickPool):
            raise LinkError("Sentinel, and what is sent only once, are left to the driver")
        try:
            return pool.exchange(b"".join(map(pack, commands)), len(commands))
        except LinkError as error:
            self.links.note_failure(error.__cause__)
            raise

    def _parse(self, command: Command, reply: Reply) -> Reply:
        """Returns a reply as the driver would."""
        callback = self._callbacks.get(command[0])
        return reply if callback is None else callback(reply)

    def _drive(self, *command: Argument) -> Reply:
        """Sends a command with the driver, and its retries."""
        return self._client.execute_command(*map(encode, command))  # type: ignore[no-untyped-call] # the driver's gap

    def _drive_all(self, commands: Sequence[Command], *, at_once: bool = False) -> list[Reply]:
        with self._client.pipeline(transaction=at_once) as pipe:
            for command in commands:
                pipe.execute_command(*map(encode, command))  # type: ignore[no-untyped-call] # the driver's gap
            return list(pipe.execute(raise_on_error=False))

    def drop(self) -> None:
        """Closes the idle connections, such as those to a server that is no longer the master."""
        self._client.connection_pool.disconnect(inuse_connections=False)

    def close(self) -> None:
        """Closes all connections. The next call opens new ones."""
        self._client.connection_pool.disconnect()

    @property
    def driver(self) -> redis.Redis:
        """The driver's own client, for tests and for pass-through commands."""
        return self._client


def _apply_set_time(wall: float, time_set: bytes | None) -> float:
    """Returns the time of the scripts, in seconds, if a test has set one; else that of the
    server.
    """
    ahead, digits = (time_set or b"").startswith(b"+"), (time_set or b"").removeprefix(b"+")
    if not digits.isdigit() or len(digits) > _TIME_DIGITS:
        return wall
    return (wall if ahead else 0.0) + int(digits) / 1000
