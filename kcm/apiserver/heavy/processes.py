"""The child processes of an API server that make heavy writes."""

from __future__ import annotations

from queue import SimpleQueue

from kcm.apimachinery.child_process import ChildEndedError, ChildProcess
from kcm.apiserver.heavy.requests import HeavyWrite
from kcm.apiserver.http.responses import Response
from kcm.apiserver.http_errors import RequestTimeout
from kcm.settings import Settings


class HeavyProcesses:
    """Makes heavy writes, each in a child process that has limits on its time and memory.

    As many are made at a time as there are processes. A process starts with the first write, and
    ends when none has come for minutes.
    """

    def __init__(self, settings: Settings, count: int) -> None:
        self._all = [ChildProcess("kcm.apiserver.heavy.child", settings) for _ in range(count)]
        self._free: SimpleQueue[ChildProcess] = SimpleQueue()
        for child in self._all:
            self._free.put(child)

    def write(self, write: HeavyWrite) -> Response:
        """Returns the response of a write, and waits for a free process.

        Raises RequestTimeout for a write that takes more time or memory than it may; whether it
        was made is not known then.
        """
        child = self._free.get()
        try:
            response: Response = child.ask(write)
        except ChildEndedError:
            raise RequestTimeout from None
        finally:
            self._free.put(child)
        return response

    def close(self) -> None:
        """Ends the processes."""
        for child in self._all:
            child.close()
