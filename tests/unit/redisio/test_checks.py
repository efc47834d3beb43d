"""Tests which servers kcm refuses, and about which it warns."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kcm import errors
from kcm.redisio import RedisIO
from kcm.redisio.checks import check_server, server_version
from kcm.settings import Settings

GOOD: dict[str, dict[str, Any]] = {
    "server": {"redis_version": "7.0.15", "redis_mode": "standalone"},
    "memory": {"maxmemory_policy": "noeviction"},
    "persistence": {"aof_enabled": 1},
}


class Server:
    def __init__(self, **changes: dict[str, Any]) -> None:
        self.settings = Settings()
        self._sections = {name: GOOD[name] | changes.get(name, {}) for name in GOOD}

    def info(self, section: str) -> dict[str, Any]:
        return self._sections[section]


def server(**changes: dict[str, Any]) -> RedisIO:
    return cast("RedisIO", Server(**changes))


def test_a_good_server_passes_without_a_warning() -> None:
    assert check_server(server()) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"server": {"redis_version": "6.2.14"}}, "Redis 6.2.14: kcm needs 7.0"),
        ({"server": {"redis_mode": "cluster"}}, "cluster-enabled"),
        ({"server": {"redis_mode": "sentinel"}}, "sentinel://HOST"),
        ({"memory": {"maxmemory_policy": "allkeys-lru"}}, "maxmemory-policy is allkeys-lru"),
    ],
)
def test_a_server_that_would_lose_data_is_refused_by_the_settings_name(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(errors.ConfigurationError, match=message):
        check_server(server(**changes))


def test_a_server_without_an_append_only_file_is_warned_about() -> None:
    assert "appendonly no" in check_server(server(persistence={"aof_enabled": 0}))[0]


def test_valkey_is_named_with_what_it_speaks() -> None:
    valkey = {"server_name": "valkey", "valkey_version": "9.1.0", "redis_version": "7.2.4"}
    assert server_version(server(server=valkey)) == "Valkey 9.1.0 (speaks Redis 7.2.4)"
    assert server_version(server()) == "Redis 7.0.15"
