"""What the documents of this server say about versions of API groups that other servers serve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kcm.apiserver.documents.priorities import Priority

Json = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class RemoteVersion:
    """A version of an API group that another server serves, as its documents describe it.

    `resources` are entries of aggregated discovery. They are the last known ones while `fresh` is
    false: the server could not be asked.
    """

    group: str
    version: str
    priority: Priority
    resources: Sequence[Json] = ()
    fresh: bool = False
    openapi_v2: Json | None = field(default=None, repr=False)  # paths and definitions
    openapi_v3: bytes | None = field(default=None, repr=False)  # for servers that have none
    openapi_v3_hash: str = ""  # of the document of version 3, "" if there is none

    @property
    def place(self) -> str:
        """Its place in the documents of OpenAPI, such as `apis/apps/v1`."""
        return f"apis/{self.group}/{self.version}"


class RemoteVersions:
    """All versions that other servers serve. It does not change; a change makes a new one."""

    def __init__(self, versions: Iterable[RemoteVersion] = ()) -> None:
        self.by_name = {(one.group, one.version): one for one in versions}

    def __contains__(self, name: object) -> bool:
        return name in self.by_name

    @cached_property
    def by_group(self) -> Mapping[str, Sequence[RemoteVersion]]:
        """The versions by their group."""
        groups: dict[str, list[RemoteVersion]] = {}
        for one in self.by_name.values():
            groups.setdefault(one.group, []).append(one)
        return groups


NO_REMOTE = RemoteVersions()
