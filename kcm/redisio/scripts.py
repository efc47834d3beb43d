"""Lua scripts: how they are put together, numbered and called.

Each `lua/<name>.lua` defines `run()` and returns a flat array of strings whose
first element is a status word. Between the library (`lib_core.lua` and those
named in a `--! use` line) and a closing part that every script shares, the
loaded text guarantees for all of them:

- refused with `EPOCH` when the caller has seen another epoch than the store has,
  or the store has lost a counter (design 0003);
- a call id that was answered before gets the same answer, and nothing is done
  again, for 60 s (design 0002: the driver repeats a call whose reply was lost);
- `NOW` is Redis' own clock in ms, plus the offset that tests pass in. It does not
  follow when that clock is set back (design 0018), `WALL` does.

Not guaranteed: roll-back. A script checks everything before its first write.

Arguments: ARGV[1] prefix, [2] epoch, [3] call id or '', [4] clock offset in
ms, from [5] on the script's own, read with `arg(i)`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

_USE = re.compile(r"^--! use (\S+)$", re.MULTILINE)

_CLOSING = """
if META[1] ~= ARGV[2] then return '["EPOCH"]' end
for _, counter in ipairs({P .. ':rv', P .. ':token'}) do
  if not tonumber(redis.pcall('GET', counter)) then return '["EPOCH"]' end
end
if CALL ~= '' then
  local prior = redis.call('GET', P .. ':call:' .. CALL)
  if prior then return prior end
end
local reply = cjson.encode(run())
-- Without memory nothing above was written either: then there is nothing to repeat.
if CALL ~= '' then redis.pcall('SET', P .. ':call:' .. CALL, reply, 'EX', 60) end
return reply
"""


@dataclass(frozen=True)
class Fence:
    """The proof that a write needs: `field` of the hash `key` must hold `token`, or it is refused.

    Tokens come from one counter, so no two leases share one. Whoever removes or replaces the record
    locks out its former holder (design 0001).
    """

    key: str
    field: str
    token: str

    def args(self) -> tuple[str, str, str]:
        """Returns the fence as the scripts read it."""
        return (self.key, self.field, self.token)


NO_FENCE = ("", "", "")
_ALONE = ("attach", "mend_key")  # run before, or without, what the library needs


@dataclass(frozen=True)
class Script:
    """One script as Redis gets it, with its SHA-1."""

    name: str
    text: str
    sha: str


def _read(name: str) -> str:
    return resources.files("kcm.redisio").joinpath(f"lua/{name}.lua").read_text("utf-8")


@cache
def load(name: str) -> Script:
    """Returns the script `name` with its libraries. Raises: FileNotFoundError."""
    body = _read(name)
    libraries = ["lib_core", *_USE.findall(body)]
    text = "\n".join([*(_read(library) for library in libraries), body, _CLOSING])
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def load_alone(name: str) -> str:
    """Returns the text of a script that does without the library: `attach` or `mend_key`."""
    return _read(name)


@cache
def names() -> tuple[str, ...]:
    """Returns the names of the scripts that are called with the library."""
    entries = resources.files("kcm.redisio").joinpath("lua").iterdir()
    stems = sorted(entry.name.removesuffix(".lua") for entry in entries)
    return tuple(stem for stem in stems if not stem.startswith("lib_") and stem not in _ALONE)
