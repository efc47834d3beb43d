from __future__ import annotations

import itertools
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from kcm.apiserver import credentials
from kcm.apiserver.auth.token_options import TokenFlags
from kcm.apiserver.bootstrap.peers import ServerKeys, explain_conflict, parse_record

OLD, NEW, OTHER = ("o" * 43, "n" * 43, "x" * 43)
WRONG: tuple[Any, ...] = (None, {}, [1], ["a"], [[OLD]], "short", OLD + OLD, "\x1b[2J", 1.5)
NOW = 1_000_000.0


def keys(signing: str = OLD, *more: str, trusted: tuple[str, ...] = (OLD,)) -> ServerKeys:
    """Returns keys with this signing key and authority, which accept more."""
    authority = next(iter(trusted), "")
    return ServerKeys(signing, [signing, *more], authority, list(trusted), OLD, "h", 7)


ROTATED = [  # by steps, of which neighbours run beside each other
    keys(OLD),
    keys(OLD, NEW),
    keys(NEW, OLD),
    keys(NEW),
]


@pytest.mark.parametrize(("before", "after"), [*itertools.pairwise(ROTATED)])
def test_a_key_is_changed_in_steps(before: ServerKeys, after: ServerKeys) -> None:
    assert explain_conflict(before, after) == explain_conflict(after, before) == ""


@pytest.mark.parametrize(
    "other",
    [
        keys(NEW),
        keys(NEW, OLD),  # its tokens are refused
        keys(OTHER),
    ],
)
def test_servers_that_refuse_each_others_tokens_do_not_match(other: ServerKeys) -> None:
    for one, two in ((keys(OLD), other), (other, keys(OLD))):
        why = explain_conflict(one, two)
        assert OLD in why
        assert other.signing in why
        assert "sa.key" in why


@pytest.mark.parametrize(
    ("trusted", "matches"),
    [
        ((OLD,), True),
        ((OLD, NEW), True),
        ((), True),  # it knows no client certificates
        ((NEW,), False),
        ((NEW, OLD), False),
    ],
)
def test_authorities_match_as_keys_do(trusted: tuple[str, ...], matches: bool) -> None:
    for pair in ((keys(), keys(trusted=trusted)), (keys(trusted=trusted), keys())):
        why = explain_conflict(*pair)
        assert bool(why) is not matches
        assert matches or (OLD in why and NEW in why and "ca.crt" in why)


def record(**changed: Any) -> bytes:
    return json.dumps({**asdict(keys()), "last_seen": NOW - 30_000, **changed}).encode()


def test_a_record_is_read_as_it_was_written() -> None:
    assert parse_record(record(last_seen=int(NOW)), NOW) == keys()
    assert parse_record(record(last_seen=int(NOW), later="field"), NOW) == keys()


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"\xff", b"1", b"[]", b"{}", b"[" * 100_000,
        record(),  # a fraction
        record(last_seen=int(NOW) - 30_001), record(last_seen=int(NOW) + 30_001),
        record(last_seen="1"), record(last_seen=None),
        *(record(last_seen=int(NOW), **{name: value})
          for name in asdict(keys())
          for value in WRONG
          if not (name == "host" and value in ("short", OLD + OLD))),
    ],
)  # fmt: skip
def test_what_kcm_did_not_write_is_no_server(raw: bytes) -> None:
    assert parse_record(raw, NOW) is None


def test_only_fingerprints_of_public_keys_are_told(tmp_path: Path) -> None:
    authority = credentials.load_authority(tmp_path)
    served = credentials.certificate(tmp_path).certificate
    bundle = tmp_path / "bundle"
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    bundle.write_bytes(authority.certificate.read_bytes() + broken + served.read_bytes())
    read = ServerKeys.read(TokenFlags().load(tmp_path, "https://h"), bundle, served)
    assert read.verifying == [read.signing]
    assert read.trusted == [read.authority, read.serving]
    assert len({read.signing, read.authority, read.serving}) == 3
    assert parse_record(json.dumps({**asdict(read), "last_seen": 1}).encode(), 1.0) == read
    alone = ServerKeys.read(TokenFlags().load(tmp_path, "https://h"), None, None)
    assert alone == replace(read, authority="", trusted=[], serving="")
