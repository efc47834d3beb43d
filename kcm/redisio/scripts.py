"""Lua scripts: how they are composed, numbered and called.

Each `lua/<name>.lua` defines `run()`, which returns a flat array of strings whose first element is
a status word. In the loaded text, libraries (`lib_core.lua` and those of its `--! use` lines) come
before it, and a part that all scripts share comes after it. These guarantee for every script:

- it returns `EPOCH` when the caller knows another epoch than the store has, the server was promoted
  since it began, or the store has lost a counter (design 0003);
- a call id that was answered in the last 60 s gets the same answer, and nothing is done again
  (design 0002: the driver repeats a call whose reply was lost);
- `NOW` is the clock of Redis in ms, plus the offset that tests pass in. When that clock is set
  back, `NOW` is not (design 0018), but `WALL` is.

There is no roll-back: a script checks everything before its first write.

Arguments: ARGV[1] prefix, [2] epoch, [3] call id or '', [4] clock offset in ms, from [5] on the
script's own, read with `arg(i)`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

_USE = re.compile(r"^--! use (\S+)$", re.MULTILINE)

_CLOSING = """
if not is_epoch(ARGV[2]) then return '["EPOCH"]' end
local counters = redis.call('MGET', P .. ':rv', P .. ':token')
if not (tonumber(counters[1]) and tonumber(counters[2])) then return '["EPOCH"]' end
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

    Tokens come from one counter, so no two leases share one. When the record is removed or
    replaced, writes of its former holder are refused (design 0001).
    """

    key: str
    field: str
    token: str

    def args(self) -> tuple[str, str, str]:
        """Returns the fence in the form that the scripts read."""
        return (self.key, self.field, self.token)


NO_FENCE = ("", "", "")
_ALONE = "attach"  # the script that is run without the library


@dataclass(frozen=True)
class Script:
    """One script as it is loaded into Redis, with its SHA-1."""

    name: str
    text: str
    sha: str

    @property
    def naming_text(self) -> str:
        """The script in a form that takes longer and names the key in errors about its type."""
        return f"{_read('lib_naming')}\n{self.text}"


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
    """Returns the text of a script that runs without the library: `attach`."""
    return _read(name)


@cache
def names() -> tuple[str, ...]:
    """Returns the names of the scripts that run with the library."""
    entries = resources.files("kcm.redisio").joinpath("lua").iterdir()
    stems = sorted(entry.name.removesuffix(".lua") for entry in entries)
    return tuple(stem for stem in stems if not stem.startswith("lib_") and stem != _ALONE)
