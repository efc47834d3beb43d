"""Evaluates costly rules in a child process, which can be killed.

The library has no limits on cost and cannot be interrupted. The child process has limits on its
memory and on the CPU seconds of each rule. It ends when it exceeds one, and the next rule starts
another. So every evaluation ends, and a costly rule affects its own object only. Each process of
kcm has one such child process, which evaluates one rule at a time.
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

from kcm.apiextensions.cel import budget
from kcm.apiextensions.cel.expressions import (
    EXHAUSTED,
    ExpressionResult,
    evaluate,
    evaluate_program,
)
from kcm.apiextensions.cel.policy_programs import Scope, compile_expression

_MAX_MEMORY = 256 * 1024**2  # bytes of address space beyond those at the start
_MAX_RESULT = 10 * 1024  # characters; messages are shorter, and rules are true or false
_MAX_VALUE = 100 * 1024  # bytes of the value of a policy's variable
_Request = tuple[str, Mapping[str, Any], bool, float, Scope | None]


class RuleEvaluator:
    """Evaluates CEL rules in a child process, which the first evaluation starts. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0  # the pid that started it; a forked process must not use its pipes

    def evaluate(
        self,
        text: str,
        variables: Mapping[str, Any],
        seconds: float,
        *,
        optional_old: bool = False,
        scope: Scope | None = None,
    ) -> ExpressionResult:
        """Evaluates as `expressions.evaluate` does, with at most `seconds` of CPU time.

        With a `scope`, the text is an expression of a policy. Returns EXHAUSTED if the time was
        not enough. Raises RuntimeError if the child process cannot be started.
        """
        request: _Request = (text, variables, optional_old, seconds, scope)
        with self._lock:
            process = self._require_process()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                _send(process.stdin, request)
                outcome: ExpressionResult = _receive(process.stdout)
            except (OSError, EOFError, pickle.UnpicklingError):
                self._kill(process)
                return EXHAUSTED
            return outcome

    def _require_process(self) -> subprocess.Popen[bytes]:
        process = self._process
        if process is not None and self._owner == os.getpid():
            if process.poll() is None:
                return process
            self._kill(process)  # it was killed from outside; start another for this rule
        self._process, self._owner = _start(), os.getpid()
        atexit.register(self.close)
        return self._process

    def close(self) -> None:
        """Kills the child process. The next evaluation starts another."""
        with self._lock:
            if self._process is not None and self._owner == os.getpid():
                self._kill(self._process)

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        self._process = None
        atexit.unregister(self.close)
        process.kill()
        with suppress(OSError):  # the process had not read all of the request
            process.communicate()


def _start() -> subprocess.Popen[bytes]:
    """Starts a child process, and waits until it is ready. Raises RuntimeError if it ends first."""
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
    # pickled as a whole first: an error sends nothing
    pipe.write(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    pipe.flush()


def _receive(pipe: IO[bytes]) -> Any:
    return pickle.load(pipe)  # only from kcm's own process


# --- in the process


def main() -> None:
    """Runs the child process: evaluates one request after the other until its input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process stops this one
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    evaluate("true", {})  # loads the library
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(ValueError):  # macOS has no such limit; there only the CPU is limited
        resource.setrlimit(resource.RLIMIT_AS, (_count_mapped_bytes(used) + _MAX_MEMORY,) * 2)
    # hides what the library prints when the process is killed
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    _send(answers, "ready")
    while True:
        try:
            request = _receive(requests)
        except EOFError:
            return
        _send(answers, _answer(*request))


def _count_mapped_bytes(otherwise: int) -> int:
    """Returns the size of this process's address space in bytes.

    Returns `otherwise` if /proc does not have it, as on macOS.
    """
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:  # not Linux
        return otherwise


def _answer(
    text: str,
    variables: Mapping[str, Any],
    optional_old: bool,
    seconds: float,
    scope: Scope | None,
) -> ExpressionResult:
    signal.setitimer(signal.ITIMER_PROF, max(seconds, 0.001))  # SIGPROF kills the process
    if scope is None:
        outcome = evaluate(text, variables, optional_old=optional_old)
    else:
        outcome = evaluate_program(compile_expression(text, scope).program, data=dict(variables))
    signal.setitimer(signal.ITIMER_PROF, 0)
    if outcome.exhausted:  # out of memory; a new process starts with all of it
        sys.exit()
    value = outcome.value
    if isinstance(value, bool) or (isinstance(value, str) and len(value) <= _MAX_RESULT):
        return outcome
    if scope is not None and not outcome.error:
        if budget.size(value)[0] > _MAX_VALUE:
            return EXHAUSTED
        return outcome
    return ExpressionResult(error=outcome.error, unchecked=outcome.unchecked, spent=outcome.spent)


if __name__ == "__main__":
    main()
