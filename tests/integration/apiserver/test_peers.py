"""Several API servers on one store, which have to have the same keys."""

from __future__ import annotations

import base64
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog
import yaml

from kcm import errors
from kcm.apiserver import credentials
from kcm.apiserver.auth.token_options import TokenFlags
from kcm.apiserver.bootstrap.kubernetes_service import list_names
from kcm.apiserver.bootstrap.peers import Peers, ServerKeys
from kcm.apiserver.running import Host, run
from kcm.apiserver.serving import Address
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.testing.control_plane.options import serve_anywhere
from tests.ports import free_port
from tests.server_clock import step

A, B = "a" * 43, "b" * 43
IN_CLUSTER = list_names(Settings().service_cluster_ip_range)
FOREIGN = {"last_seen": 0, "signing": B}


def build_peers(io: RedisIO, name: str, signing: str, *more: str) -> Peers:
    return Peers(io, ServerKeys(signing, [signing, *more], "", [], "", name), name=name)


def join(io: RedisIO, name: str, signing: str = A, *more: str) -> Peers:
    peers = build_peers(io, name, signing, *more)
    peers.join()
    return peers


def names(io: RedisIO) -> set[bytes]:
    return set(io.execute("HKEYS", io.keys.apiservers()))


def test_a_server_with_another_key_is_refused_until_the_first_has_ended(io: RedisIO) -> None:
    first = join(io, "first")
    join(io, "second").end()
    with pytest.raises(errors.ConfigurationError) as raised:
        join(io, "third", B)
    assert "first" in raised.value.message
    assert names(io) == {b"first"}
    first.end()
    join(io, "third", B)


def test_a_server_that_was_killed_is_forgotten(io: RedisIO) -> None:
    join(io, "first")
    step(io, 31)
    join(io, "second", B)
    assert names(io) == {b"second"}


def test_the_key_is_changed_one_server_after_the_other(io: RedisIO) -> None:
    servers = {name: join(io, name) for name in ("first", "second")}
    for keys in ((A, B), (B, A), (B,)):
        for name, before in servers.items():
            before.end()
            servers[name] = join(io, name, *keys)
    assert names(io) == {b"first", b"second"}


def test_what_a_stranger_has_written_stops_nobody_for_good(io: RedisIO) -> None:
    key = io.keys.apiservers()
    fields: list[Any] = ["x", "rubbish", "y", json.dumps(FOREIGN), "z", b"\xff\x00"]
    io.execute("HSET", key, *fields)
    join(io, "first")
    assert names(io) == {b"first"}
    io.execute("SET", key, "rubbish")
    peers = build_peers(io, "second", B)
    with structlog.testing.capture_logs() as logs:
        peers.join()
    assert [line["log_level"] for line in logs] == ["error"]
    with pytest.raises(errors.WrongTypeOfKey):
        peers.turn(0)
    io.execute("DEL", key)
    peers.turn(0)
    assert names(io) == {b"second"}


def test_a_server_that_comes_back_with_other_keys_is_reported_once(io: RedisIO) -> None:
    first = join(io, "first")
    step(io, 31)
    second = join(io, "second", B)
    with structlog.testing.capture_logs() as logs:
        for peers in (first, second, first, second):  # it stood still for long
            peers.turn(0)
    assert [line["event"] for line in logs] == ["Another API server has other keys"] * 2


def test_a_second_server_needs_the_files_of_the_first(io: RedisIO, tmp_path: Path) -> None:
    one, two, port = tmp_path / "one", tmp_path / "two", free_port()
    authority = credentials.load_authority(one).certificate
    served = credentials.certificate(one, ["kcm.example", *IN_CLUSTER]).certificate
    tokens = TokenFlags().load(one, "https://kcm.example")
    Peers(io, ServerKeys.read(tokens, authority, served, host="first")).join()
    options = replace(serve_anywhere(), endpoint=Address("kcm.example", port))
    settings = io.settings.model_copy(update={"state_dir": two})
    with pytest.raises(errors.ConfigurationError, match=r"first.*give both the same sa\.key"):
        run(settings, options)
    assert not (two / "kubeconfig").exists()
    shutil.copytree(one, two, dirs_exist_ok=True)
    run(settings, options, Host(on_serve=lambda server, url: server.ask_to_stop()))
    cluster = yaml.safe_load((two / "kubeconfig").read_text())["clusters"][0]["cluster"]
    assert cluster["server"] == f"https://kcm.example:{port}"
    assert base64.b64decode(cluster["certificate-authority-data"]) == served.read_bytes()
    assert len(names(io)) == 1
