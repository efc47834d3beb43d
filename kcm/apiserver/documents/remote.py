"""What the documents of this server say about versions of API groups that other servers serve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
    """All versions that other servers serve. It does not change; a change makes a new one.

    `openapi` are the versions for OpenAPI: those of `before` if nothing has changed for it, so that
    its large documents are not made again when a server stops answering.
    """

    def __init__(
        self, versions: Iterable[RemoteVersion] = (), before: RemoteVersions | None = None
    ) -> None:
        self.by_name = {(one.group, one.version): one for one in versions}
        former = before.openapi if before is not None else None
        self.openapi: RemoteVersions = former if former and former.describes(self) else self

    def __contains__(self, name: object) -> bool:
        return name in self.by_name

    def describes(self, other: RemoteVersions) -> bool:
        """Reports whether OpenAPI says the same about both."""
        mine, others = list(self.by_name.values()), list(other.by_name.values())
        return len(mine) == len(others) and all(
            one.place == two.place
            and one.openapi_v2 is two.openapi_v2
            and one.openapi_v3 is two.openapi_v3
            and one.openapi_v3_hash == two.openapi_v3_hash
            for one, two in zip(mine, others, strict=True)
        )


NO_REMOTE = RemoteVersions()
