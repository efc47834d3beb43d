"""The API servers of one store, which must accept each other's tokens and certificates.

Each server keeps a record in Redis of the fingerprints of its public keys, and reads those of the
others before it serves. One whose tokens or client certificates another one would refuse, or the
other way round, does not start. Keys can still be changed, since a server may accept several: see
design 0071.

A record is forgotten DEAD_AFTER seconds after the last heartbeat of its server. Records
that kcm did not write are left out, and forgotten as well.
"""

from __future__ import annotations

import json
import os
import re
import socket
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import structlog

from kcm import errors
from kcm.apiserver.auth.service_accounts import TokenOptions
from kcm.coordination.presence import DEAD_AFTER, HEARTBEAT_EVERY
from kcm.helpers.serviceaccount.tokens import compute_key_id
from kcm.loops import Loop, Turn, contain
from kcm.redisio import RedisIO

log = structlog.get_logger("kcm.apiserver")

_FINGERPRINT = re.compile(r"[A-Za-z0-9_-]{43}")  # as `compute_key_id` returns
_CERTIFICATE = re.compile(
    rb"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----",
)
_LONGEST = 253  # characters of a host's name, as the names in DNS


@dataclass(frozen=True)
class ServerKeys:
    """The public keys of an API server, by their fingerprints.

    `signing` signs service account tokens, and those in `verifying` are accepted. `authority` is
    that of client certificates, "" for none, and those of all in `trusted` are accepted. `serving`
    is that of the server's own certificate, "" without TLS.
    """

    signing: str
    verifying: Sequence[str]
    authority: str
    trusted: Sequence[str]
    serving: str
    host: str
    pid: int = field(default_factory=os.getpid)

    @classmethod
    def read(
        cls,
        tokens: TokenOptions,
        authorities: Path | None,
        certificate: Path | None,
        host: str = "",
    ) -> ServerKeys:
        """Returns the keys of the server that has these. `authorities` is the file of those that
        sign client certificates, of which the first is the server's own; `host` is by default this
        machine's name. Raises ConfigurationError.
        """
        trusted = _read_fingerprints(authorities)
        return cls(
            signing=tokens.signing_key.verification.id,
            verifying=[key.id for key in tokens.keys],
            authority=next(iter(trusted), ""),
            trusted=trusted,
            serving=next(iter(_read_fingerprints(certificate)), ""),
            host=host or socket.gethostname(),
        )


def _read_fingerprints(path: Path | None) -> list[str]:
    """Returns the fingerprints of the public keys of a file's certificates, in their order.

    Certificates that OpenSSL may use, and the library cannot read, are left out.
    """
    if path is None:
        return []
    from cryptography import x509  # noqa: PLC0415 - it takes 20 ms
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415

    try:
        text = path.read_bytes()
    except OSError as error:
        raise errors.ConfigurationError(f"the certificates in {path}: {error}") from None
    fingerprints = []
    for block in _CERTIFICATE.findall(text):
        with suppress(ValueError, UnsupportedAlgorithm):
            key = x509.load_pem_x509_certificate(block).public_key()
            fingerprints.append(compute_key_id(key))
    return fingerprints


def explain_conflict(own: ServerKeys, other: ServerKeys) -> str:
    """Returns why two servers cannot serve one store, "" if they can."""
    where = f"the API server on {other.host} (process {other.pid})"
    if own.signing not in other.verifying or other.signing not in own.verifying:
        return (
            f"{where} signs service account tokens with the key {other.signing}, this one with "
            f"{own.signing}, and they do not accept each other's: give both the same sa.key, or, "
            "to change it, have all servers accept both keys first, by --service-account-key-file"
        )
    has_authorities = own.authority and other.authority
    if has_authorities and not (own.authority in other.trusted and other.authority in own.trusted):
        return (
            f"{where} has the authority {other.authority} for client certificates, this one has "
            f"{own.authority}, and they do not accept each other's: give both the same ca.crt and "
            "ca.key, or, to change them, have all servers accept both first, by --client-ca-file"
        )
    return ""


class Peers(Loop):
    """Keeps the record of this server, and compares it with those of the others."""

    def __init__(self, io: RedisIO, keys: ServerKeys, *, name: str = "") -> None:
        """`name` is that of the record, drawn by default."""
        super().__init__("kcm-apiserver-peers")
        self._io = io
        self._own = keys
        self._name = name or uuid.uuid4().hex
        self._told = ""  # what was logged last

    def join(self) -> None:
        """Adds the record of this server.

        Raises ConfigurationError if the keys of another server are no match, and StoreUnavailable.
        Where the key of the records has a wrong type, nothing is compared; the loop says so again.
        """
        try:
            self._require_match()  # before it adds a record by which another server is refused
            self._beat()
            self._require_match()  # servers that join at once see each other here
        except errors.ConfigurationError:
            contain(self.name, self.end)
            raise
        except errors.WrongTypeOfKey as error:
            log.error("The keys of the API servers are not compared", error=error.message)

    def turn(self, patience: float) -> Turn:
        """Sends a heartbeat, and logs what does not match. Raises Temporary."""
        self._beat()
        conflicts = (explain_conflict(self._own, other) for other in self._read_others())
        why = next(filter(None, conflicts), "")
        if why and why != self._told:
            log.error("Another API server has other keys", why=why)
        self._told = why
        return Turn(upkeep_in=HEARTBEAT_EVERY)

    def end(self) -> None:
        """Removes the record of this server. Raises Temporary."""
        self._io.execute("HDEL", self._io.keys.apiservers(), self._name)

    def _require_match(self) -> None:
        for other in self._read_others():
            if conflict := explain_conflict(self._own, other):
                raise errors.ConfigurationError(
                    f"{conflict}. A server that has ended without a word is forgotten after "
                    f"{DEAD_AFTER:.0f} seconds"
                )
            if self._own.serving and other.serving not in ("", self._own.serving):
                log.warning(
                    "Another API server has another certificate, so clients that trust one do not "
                    "trust the other, unless one authority has signed both: give both the same "
                    "apiserver.crt and apiserver.key",
                    host=other.host,
                )

    def _beat(self) -> None:
        opened = json.dumps(asdict(self._own), separators=(",", ":")).removesuffix("}")
        key, limit = self._io.keys.apiservers(), round(DEAD_AFTER * 1000)
        self._io.call("worker_seen", key, self._name, opened, limit, call_id="")

    def _read_others(self) -> Iterator[ServerKeys]:
        """Yields the keys of the other servers that are alive. Raises Temporary."""
        now = self._io.now() * 1000
        reply = self._io.execute("HGETALL", self._io.keys.apiservers())
        for name, raw in dict(reply).items():
            if name != self._name.encode() and (keys := parse_record(raw, now)) is not None:
                yield keys


def parse_record(raw: bytes, now: float) -> ServerKeys | None:
    """Returns the keys in a record, None if it is no valid one of a server that is alive at `now`,
    in milliseconds.
    """
    try:
        read = json.loads(raw)
        seen = read["last_seen"]
        given: dict[str, Any] = {each.name: read[each.name] for each in fields(ServerKeys)}
        keys = ServerKeys(**given)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    is_alive = isinstance(seen, int) and abs(now - seen) <= DEAD_AFTER * 1000
    return keys if is_alive and _is_valid(keys) else None


def _is_valid(keys: ServerKeys) -> bool:
    """Reports whether all fields have the types and forms that kcm writes."""
    if not (isinstance(keys.verifying, list) and isinstance(keys.trusted, list)):
        return False
    given = [each for each in (keys.authority, keys.serving) if each != ""]
    fingerprints = [keys.signing, *keys.verifying, *keys.trusted, *given]
    return (
        all(isinstance(each, str) and _FINGERPRINT.fullmatch(each) for each in fingerprints)
        and isinstance(keys.host, str)
        and len(keys.host) <= _LONGEST
        and keys.host.isprintable()
        and isinstance(keys.pid, int)
    )
