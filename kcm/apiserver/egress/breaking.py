"""Calls of other servers that fail because a test wants them to.

They fail as the network or the server would make them: in the same place and in the same words.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Sequence
from typing import Literal, Protocol

from kcm.http import faults

# refused: nobody listens; timeout: nobody answers; a number: the status of the answer
CallBreak = Literal["refused", "timeout"] | int
TimedOut = Literal["timed-out"]  # the same as a timeout, without the time


class BreaksCalls(Protocol):
    """Decides which calls fail. It is called in the event loop, and must not block."""

    def find_break(self, names: Sequence[str]) -> CallBreak | TimedOut | None:
        """Returns how a call fails, None if it does not. `names` are what the called server is
        known by, such as those of a webhook and its configuration.
        """
        ...


async def break_call(how: CallBreak | TimedOut, where: str) -> None:
    """Fails as a call of the server at `where`, a host and a port, would.

    Raises CallFailed, and TimeoutError for a call that has timed out; one that is to time out ends
    only by its caller's timeout.
    """
    if how == "timed-out":
        raise TimeoutError
    if how == "timeout":
        await asyncio.Event().wait()
    if isinstance(how, int):
        raise faults.status_fault(how, b"")
    refused = OSError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
    raise faults.connection_fault(refused, where)
