"""Checks at every start that the Redis server meets kcm's requirements (design 0027)."""

from __future__ import annotations

from typing import Any

from kcm import errors
from kcm.redisio.connection import RedisIO

OLDEST = (7, 0)  # the oldest supported version


def check_server(io: RedisIO) -> list[str]:
    """Raises an error for a server that would lose data or lacks commands. Returns warnings.

    Raises: ConfigurationError, which names the setting; StoreUnavailable.
    """
    server = io.info("server")
    _require_version(server)
    _require_single(server)
    _require_no_eviction(io.info("memory"))
    if io.settings.redis_durability == "replicated":
        _require_replicas(io.info("replication"), io.settings.redis_replicas)
    return _warnings(io.info("persistence"))


def server_version(io: RedisIO) -> str:
    """Returns the server's version, such as `Redis 7.0.15` or `Valkey 9.1.0 (speaks Redis 7.2.4)`.

    Raises: StoreUnavailable.
    """
    server = io.info("server")
    if server.get("server_name") == "valkey":
        own, spoken = server.get("valkey_version", "?"), server["redis_version"]
        return f"Valkey {own} (speaks Redis {spoken})"
    return f"Redis {server['redis_version']}"


def _require_version(server: dict[str, Any]) -> None:
    text = str(server.get("redis_version", "0"))
    numbers = tuple(int(part) for part in text.split(".")[:2] if part.isdigit())
    if numbers < OLDEST:
        raise errors.ConfigurationError(
            f"the server is Redis {text}: kcm needs 7.0 or later, or Valkey. Upgrade it, or "
            "unset KCM_REDIS_URL to use the embedded server"
        )


def _require_single(server: dict[str, Any]) -> None:
    mode = server.get("redis_mode", "standalone")
    if mode == "cluster":
        raise errors.ConfigurationError(
            "the server runs in cluster mode (cluster-enabled yes): kcm's scripts touch many "
            "keys at once. Use a single server, with Sentinel for failover"
        )
    if mode == "sentinel":
        raise errors.ConfigurationError(
            "KCM_REDIS_URL is the address of a Sentinel, not of a server: write "
            "sentinel://HOST:26379/SERVICE"
        )


def _require_no_eviction(memory: dict[str, Any]) -> None:
    policy = memory.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise errors.ConfigurationError(
            f"the server's maxmemory-policy is {policy}: under memory pressure it would drop "
            "objects and queues. Run CONFIG SET maxmemory-policy noeviction, and set it in "
            "redis.conf"
        )


def _require_replicas(replication: dict[str, Any], wanted: int) -> None:
    # The server tells the number of replicas in step only if it asks for any.
    if "min_slaves_good_slaves" not in replication:
        raise errors.ConfigurationError(
            "KCM_REDIS_DURABILITY is replicated, and the server takes writes without a replica: "
            f"run CONFIG SET min-replicas-to-write {wanted} and CONFIG SET min-replicas-max-lag 2 "
            "on each server, and set them in redis.conf"
        )


def _warnings(persistence: dict[str, Any]) -> list[str]:
    if int(persistence.get("aof_enabled", 0)):
        return []
    return [
        "the server keeps no append-only file (appendonly no): a restart of it loses what was "
        "written since its last snapshot"
    ]
