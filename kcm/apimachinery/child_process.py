"""A child process that answers requests, one at a time, and can be killed.

It is for work that may take long or much memory, and must affect nothing else. The program of the
child calls `answer_requests`; it may end itself at any time, or be killed by its own limits.
"""

from __future__ import annotations

import atexit
import os
import pickle
import resource
import select
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from kcm import errors


class ChildEndedError(errors.KcmError):
    """The child process ended before it answered."""


class ChildProcess:
    """A child process, which the first request starts. Thread-safe."""

    def __init__(self, module: str, greeting: Any = None) -> None:
        """`module` is the module that the child runs. It gets the greeting when it has started."""
        self._module = module
        self._greeting = greeting
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0  # the pid that started it; a forked process must not use its pipes

    def ask(self, request: Any) -> Any:
        """Returns the child's answer.

        Raises ChildEndedError, and RuntimeError if the child cannot be started.
        """
        with self._lock:
            while True:
                process = self._require_process()
                assert process.stdin is not None
                assert process.stdout is not None
                try:
                    _send(process.stdin, request)
                    return _receive(process.stdout)
                except (OSError, EOFError, pickle.UnpicklingError):
                    self._kill(process)
                    if process.returncode != _IDLE:
                        raise ChildEndedError from None

    def _require_process(self) -> subprocess.Popen[bytes]:
        process = self._process
        if process is not None and self._owner == os.getpid():
            if process.poll() is None:
                return process
            self._kill(process)  # it has ended; start another for this request
        self._process, self._owner = _start(self._module, self._greeting), os.getpid()
        atexit.register(self.close)
        return self._process

    def close(self) -> None:
        """Kills the child process. The next request starts another."""
        process = self._process
        if process is not None and self._owner == os.getpid():
            process.kill()  # a request that waits for it ends, and gives up the lock
        with self._lock:
            if self._process is not None and self._owner == os.getpid():
                self._kill(self._process)

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        self._process = None
        atexit.unregister(self.close)
        process.kill()
        with suppress(OSError):  # the process had not read all of the request
            process.communicate()


def _start(module: str, greeting: Any) -> subprocess.Popen[bytes]:
    """Starts a child process, and waits until it is ready. Raises RuntimeError if it ends first."""
    command = [sys.executable, "-m", module]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        _send(process.stdin, greeting)
        _receive(process.stdout)
    except (OSError, EOFError, pickle.UnpicklingError):
        process.kill()
        process.communicate()
        raise RuntimeError(
            f"the process of {module} ended at its start, with code {process.returncode}"
        ) from None
    return process


def _send(pipe: IO[bytes], value: Any) -> None:
    # pickled as a whole first: an error sends nothing
    pipe.write(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    pipe.flush()


def _receive(pipe: IO[bytes]) -> Any:
    return pickle.load(pipe)  # only from kcm's own process


# --- in the child process

_IDLE = 75  # the exit code of a child that ended because no request came


def answer_requests(
    prepare: Callable[[Any], Callable[[Any], Any]], idle: float | None = None
) -> None:
    """Runs the child: answers one request after the other until its input ends, or none came for
    `idle` seconds.

    `prepare` gets the greeting, and returns the function that answers a request. What the child
    prints goes to standard error, since its standard output has the answers.
    """
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    answer = prepare(_receive(requests))
    _send(answers, "ready")
    while True:
        if idle is not None and not select.select([requests], [], [], idle)[0]:
            os._exit(_IDLE)
        try:
            request = _receive(requests)
        except EOFError:
            return
        _send(answers, answer(request))


def limit_memory(most: int) -> None:
    """Limits the memory of this process to `most` bytes beyond what it has now."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(ValueError):  # macOS has no such limit; there only the CPU is limited
        resource.setrlimit(resource.RLIMIT_AS, (_count_mapped_bytes(used) + most,) * 2)


def _count_mapped_bytes(otherwise: int) -> int:
    """Returns the size of this process's address space in bytes.

    Returns `otherwise` if /proc does not have it, as on macOS.
    """
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:  # not Linux
        return otherwise
