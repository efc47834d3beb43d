"""Runs Python programs as forks of `kcm up`, which has their modules loaded (design 0033).

A fork runs as `python -m MODULE ARGUMENTS` would: in a session of its own, with its own arguments,
environment, log and title, default signal handlers, and none of the open files of `kcm up`. It
never returns into the code of `kcm up`. A process with threads is not forked, since the child would
inherit the locks that they hold: then `can_fork` returns False, and the program is run in a new
process.
"""

from __future__ import annotations

import atexit
import importlib
import os
import runpy
import signal
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import NoReturn

import setproctitle

from kcm.api.scheme import build_schemas
from kcm.interpreter import pause_collector
from kcm.registry import controller_types

# By name, since commands do not import the processes that they start. Left out are `workers.app`,
# which reads the environment, as that differs between the processes, and what only the API server
# needs: its fork loads that while the others start.
_SHARED_MODULES = (
    "kcm.manager.command",
    "workers.beat",
    "workers.bootsteps",
    "workers.config",
    "workers.remotecontrol",
    "workers.signals",
    "workers.transport",
    "celery.app.control",
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.bin.celery",
    "celery.concurrency.prefork",
    "celery.worker.components",
    "celery.worker.consumer",
)
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ForkedProgram:
    """A running program, with the methods of `subprocess.Popen` that a supervisor needs."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], output: int) -> None:
        """Starts `[python, "-m", module, *arguments]`, which writes to the descriptor `output`.

        Its environment is that of `kcm up` with the variables `env` added.
        """
        sys.stdout.flush()  # otherwise the child would write the same text again
        # The handlers of `kcm up` must not run in the child.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            self.pid = os.fork()
            if self.pid == 0:
                _run_to_the_end(command, env, output)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._exit_code: int | None = None

    def poll(self) -> int | None:
        """Returns the exit code, negative for a signal, or None while the program runs."""
        if self._exit_code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._exit_code = os.waitstatus_to_exitcode(status) if pid else None
        return self._exit_code


def can_fork(command: Sequence[str]) -> bool:
    """Reports whether this process can run the command as a fork of itself.

    It cannot on macOS, whose libraries do not work in a fork.
    """
    is_module = list(command[:2]) == [sys.executable, "-m"]
    return is_module and sys.platform == "linux" and threading.active_count() == 1


@cache
def load_shared_modules() -> None:
    """Imports the modules of the programs once, and exempts them from garbage collection."""
    with pause_collector(freezes=True):
        for name in _SHARED_MODULES:
            importlib.import_module(name)
        controller_types()
        build_schemas()


def _run_to_the_end(command: Sequence[str], env: Mapping[str, str], output: int) -> NoReturn:
    """Runs a program in this process, and exits as the interpreter would."""
    code = 1
    try:
        _leave_parent(output)
        code = _run(command, env)
        threading._shutdown()  # type: ignore[attr-defined] # waits for threads, as at every exit
        atexit._run_exitfuncs()
    except BaseException:  # noqa: BLE001 - nothing may return into the code of `kcm up`
        traceback.print_exc()
    finally:
        os._exit(code)


def _leave_parent(output: int) -> None:
    """Leaves the session of `kcm up`, resets its signal handlers and closes its files.

    The file objects are not used again and not collected, since the stack below refers to them.
    """
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for number in map(int, os.listdir("/proc/self/fd")):  # the limit may be unknown, or huge
        if number > 2:
            with suppress(OSError):  # the one of the listing is closed already
                os.close(number)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)


def _run(command: Sequence[str], env: Mapping[str, str]) -> int:
    """Runs a command as `python -m` would, and returns its exit code."""
    os.environ.update(env)
    python, _, module, *sys.argv[1:] = command
    setproctitle.setproctitle(" ".join([os.path.basename(python), *command[1:]]))
    sys.path.insert(0, os.getcwd())
    sys.modules.pop(module, None)  # it has to be run, not taken from the imported modules
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        sys.stderr.write(f"{end.code}\n")
        return 1
    return 0
