"""Evaluates costly rules in a process of its own, where they can be cut.

The library has no limits on cost and cannot be interrupted. The process has limits: seconds of CPU
per rule, and memory. A process that meets a limit ends, and the next rule gets a new one.

Guarantees: an evaluation ends, and costs its own object only. Does not guarantee that rules are
evaluated side by side: each process of kcm has one such process.
"""

from __future__ import annotations

import atexit
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any

from kcm.apiextensions.cel.expressions import EXHAUSTED, ExpressionResult, evaluate

_MAX_MEMORY = 256 * 1024**2  # bytes of address space beyond those at the start
_MAX_RESULT = 10 * 1024  # characters; messages are shorter, and rules are true or false
_Request = tuple[str, Mapping[str, Any], bool, float]


class RuleEvaluator:
    """Evaluates CEL rules in a child process, which the first evaluation starts. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0  # the process that started it: a fork must not share its pipes

    def evaluate(
        self, text: str, variables: Mapping[str, Any], seconds: float, *, optional_old: bool
    ) -> ExpressionResult:
        """Evaluates as `expressions.evaluate` does, within so many seconds of CPU.

        Raises RuntimeError when the process cannot be started.
        """
        request: _Request = (text, variables, optional_old, seconds)
        with self._lock:
            process = self._require_process()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                _send(process.stdin, request)
                outcome: ExpressionResult = _receive(process.stdout)
            except (OSError, EOFError, pickle.UnpicklingError):
                self._end(process)
                return EXHAUSTED
            return outcome

    def _require_process(self) -> subprocess.Popen[bytes]:
        process = self._process
        if process is not None and self._owner == os.getpid():
            if process.poll() is None:
                return process
            self._end(process)  # somebody else ended it, which is not the next rule's fault
        self._process, self._owner = _start(), os.getpid()
        atexit.register(self.close)
        return self._process

    def close(self) -> None:
        """Ends the process. The next evaluation starts another."""
        with self._lock:
            if self._process is not None and self._owner == os.getpid():
                self._end(self._process)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        self._process = None
        atexit.unregister(self.close)
        process.kill()
        with suppress(OSError):  # a request that it did not read
            process.communicate()


def _start() -> subprocess.Popen[bytes]:
    """Starts a process and waits until it is ready. Raises RuntimeError when it does not start."""
    command = [sys.executable, "-m", "kcm.apiextensions.cel.evaluator"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        _receive(process.stdout)
    except (EOFError, pickle.UnpicklingError):
        process.kill()
        process.communicate()
        raise RuntimeError(
            f"the process that evaluates rules ended at its start, with code {process.returncode}"
        ) from None
    return process


def _send(pipe: IO[bytes], value: Any) -> None:
    pipe.write(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))  # all of it, or nothing
    pipe.flush()


def _receive(pipe: IO[bytes]) -> Any:
    return pickle.load(pipe)  # only from kcm's own process


# --- in the process


def main() -> None:
    """Answers until its input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    evaluate("true", {})  # loads the library
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(ValueError):  # macOS has no such limit; there only the CPU is limited
        resource.setrlimit(resource.RLIMIT_AS, (_count_mapped_bytes(used) + _MAX_MEMORY,) * 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the library's last words when it is cut
    _send(answers, "ready")
    while True:
        try:
            request = _receive(requests)
        except EOFError:
            return
        _send(answers, _answer(*request))


def _count_mapped_bytes(otherwise: int) -> int:
    """Returns the size of this process's address space in bytes.

    Returns `otherwise` where /proc does not tell it, as on macOS.
    """
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:  # not Linux
        return otherwise


def _answer(
    text: str, variables: Mapping[str, Any], optional_old: bool, seconds: float
) -> ExpressionResult:
    signal.setitimer(signal.ITIMER_PROF, max(seconds, 0.001))  # ends the process
    outcome = evaluate(text, variables, optional_old=optional_old)
    signal.setitimer(signal.ITIMER_PROF, 0)
    if outcome.exhausted:  # out of memory, which a next one might lack as well
        sys.exit()
    value = outcome.value
    if isinstance(value, bool) or (isinstance(value, str) and len(value) <= _MAX_RESULT):
        return outcome
    return ExpressionResult(error=outcome.error, unchecked=outcome.unchecked, spent=outcome.spent)


if __name__ == "__main__":
    main()
