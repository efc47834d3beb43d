"""Token buckets in memory; the counterpart of kcm/redisio/lua/lib_limiter.lua and limiter_set.lua.

Each has the fields qps, burst, tokens and at (Unix seconds).
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.redisio.commands import Argument
from kcm.store.memory.data import MemoryData


def set_limits(data: MemoryData, now: float, args: Sequence[Argument]) -> list[str]:
    """Sets the rates of buckets: after the fence, each has a name, a rate ("" removes it) and a
    burst.

    A bucket whose rate is unchanged keeps its tokens. One that was empty, or had a rate of 0, is
    empty at its new rate as well; otherwise it starts full.
    """
    texts = [str(arg) for arg in args[3:]]
    for name, rate, burst in zip(texts[::3], texts[1::3], texts[2::3], strict=True):
        key = data.keys.limiter(name)
        if not rate:
            data.hashes.pop(key, None)
            continue
        old = _read(data, key, now)
        if old is not None and old[:2] == (float(rate), float(burst)):
            continue
        drained = old is not None and (old[0] <= 0 or old[2] < 1)
        _save(data, key, now, (float(rate), float(burst), 0.0 if drained else float(burst)))
    return ["OK"]


def take_token(data: MemoryData, now: float, name: str) -> bool:
    """Takes a token, and reports whether there was one."""
    key = data.keys.limiter(name)
    bucket = _read(data, key, now)
    if bucket is None or bucket[0] <= 0 or bucket[2] < 0.999999:  # a sum of fractions
        return False
    _save(data, key, now, (bucket[0], bucket[1], max(0.0, bucket[2] - 1)))
    return True


def _read(data: MemoryData, key: str, now: float) -> tuple[float, float, float] | None:
    """Returns the rate, the burst and the tokens now, or None if there is no such bucket."""
    if key not in data.hashes:
        return None
    rate, burst, tokens, at = (float(data.hashes[key][f]) for f in ("qps", "burst", "tokens", "at"))
    return rate, burst, min(burst, tokens + max(0.0, now - at) * rate)


def _save(data: MemoryData, key: str, now: float, bucket: tuple[float, float, float]) -> None:
    pairs = zip(("qps", "burst", "tokens", "at"), (*bucket, now), strict=True)
    data.hashes[key] = {name: repr(value).encode() for name, value in pairs}
