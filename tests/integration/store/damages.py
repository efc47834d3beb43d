"""Ways in which an object's data in Redis can be damaged, for tests."""

from __future__ import annotations

from collections.abc import Callable

from kcm.redisio import RedisIO

Damage = Callable[[RedisIO, str], None]  # of an object's key in Redis


def _json(change: Callable[[bytes], bytes]) -> Damage:
    def damage(io: RedisIO, key: str) -> None:
        io.execute("HSET", key, "json", change(io.execute("HGET", key, "json")))

    return damage


def _other_type(*command: str) -> Damage:
    def damage(io: RedisIO, key: str) -> None:
        io.execute("DEL", key)
        io.execute(command[0], key, *command[1:])

    return damage


def _delete(io: RedisIO, key: str) -> None:
    io.execute("DEL", key)


def _no_json(io: RedisIO, key: str) -> None:
    io.execute("HDEL", key, "json")


_META = b'"metadata":{'
_DEEP = b',"x":' + b"[" * 300 + b"]" * 300 + b"}"

DAMAGES: dict[str, Damage] = {
    "not JSON": _json(lambda raw: b"rubbish"),
    "empty": _json(lambda raw: b""),
    "cut short": _json(lambda raw: raw[: len(raw) // 2]),
    "no UTF-8": _json(lambda raw: b"\xff\xfe" + raw),
    "too deep": _json(lambda raw: raw[:-1] + _DEEP),
    "a list": _json(lambda raw: b"[]"),
    "null": _json(lambda raw: b"null"),
    "an empty object": _json(lambda raw: b"{}"),
    "another kind": _json(lambda raw: raw.replace(b'"kind":"', b'"kind":"Not')),
    "metadata of another type": _json(
        lambda raw: raw.replace(b'"metadata":{', b'"metadata":7,"m":{')
    ),
    "no name": _json(lambda raw: raw.replace(b'"name":', b'"nome":', 1)),
    "another name": _json(lambda raw: raw.replace(b'"name":"', b'"name":"not-', 1)),
    "no version": _json(lambda raw: raw.replace(b'"resourceVersion":', b'"version":', 1)),
    "version of words": _json(
        lambda raw: raw.replace(b'"resourceVersion":"', b'"resourceVersion":"x')
    ),
    "labels of numbers": _json(
        lambda raw: raw.replace(b'"metadata":{', b'"metadata":{"labels":{"a":1},')
    ),
    "no JSON": _no_json,
    "no hash": _delete,
    "a string": _other_type("SET", "x"),
    "a list of Redis": _other_type("RPUSH", "x"),
    "a set of Redis": _other_type("SADD", "x"),
}
