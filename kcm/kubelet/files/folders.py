"""Deletes folders that containers could write to, without following links."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any


def remove_tree(folder: Path) -> None:
    """Removes a folder and everything below it. Links are removed and not followed.

    Folders that their owner has made unreadable (mode 000) get all rights first. What others remove
    meanwhile is no error. Raises OSError if something cannot be removed.
    """
    if folder.is_symlink():
        folder.unlink(missing_ok=True)
    elif folder.exists():
        # Root needs no rights, and must not change the mode of a path in which others may have put
        # a link. Any other user can only change the modes of their own files, also by a link.
        handle_failure = _raise_unless_gone if os.geteuid() == 0 else _retry_opened
        try:
            shutil.rmtree(folder, onerror=handle_failure)
        except RecursionError:
            _remove_deep(folder)
        except OSError as error:
            if error.errno != errno.EMFILE:
                raise
            _remove_deep(folder)


def _remove_deep(folder: Path) -> None:
    """Removes folders that are nested too deep for Python's recursion or open files, with `rm`."""
    ran = subprocess.run(
        ["rm", "-rf", "--", str(folder)], capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise OSError(f"rm: {ran.stderr.strip()[:500]}")


def _raise_unless_gone(function: Callable[..., object], path: str, error: Any) -> None:
    if not isinstance(error[1], FileNotFoundError):
        raise error[1]


def _retry_opened(function: Callable[..., object], path: str, _: object) -> None:
    """Tries the function again, after giving the owner all rights to the folder and its parent."""
    with suppress(FileNotFoundError):
        for folder in (os.path.dirname(path), path):
            status = os.lstat(folder)
            if stat.S_ISDIR(status.st_mode):
                os.chmod(folder, 0o700)
        if function in (os.unlink, os.rmdir):
            function(path)
        elif stat.S_ISDIR(os.lstat(path).st_mode):
            _remove_opened(path)


def _remove_opened(folder: str) -> None:
    def handle_failure(function: Callable[..., object], path: str, error: Any) -> None:
        if path != folder:
            _retry_opened(function, path, error)
        elif not isinstance(error[1], FileNotFoundError):
            raise error[1]  # opening it has not helped

    shutil.rmtree(folder, onerror=handle_failure)


def remove_logs(path: str) -> None:
    """Removes a log file and the files rotated from it.

    Their folder stays, since the next container of the name may be about to write there.
    """
    if not path:
        return
    log = Path(path)
    with suppress(FileNotFoundError):
        for file in [*log.parent.iterdir()]:
            if file.name == log.name or file.name.startswith(f"{log.name}.2"):
                file.unlink(missing_ok=True)


def remove_empty(folder: Path) -> None:
    """Removes the empty folders in a folder, and then itself if nothing is left in it."""
    with suppress(OSError):  # something is in it, or it is not there
        for below in [*folder.iterdir()]:
            with suppress(OSError):
                below.rmdir()
        folder.rmdir()
