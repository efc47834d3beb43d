"""Notices that the program is gone that started this one. Imports the standard library only.

envtest starts its programs in process groups of their own and stops them by a signal. A suite that
is killed sends none, so they look for its end themselves.
"""

from __future__ import annotations

import os

LOOK_EVERY = 0.2  # seconds


class Parent:
    """The program that started this process."""

    def __init__(self) -> None:
        self._pid = os.getppid()

    @property
    def is_gone(self) -> bool:
        """Reports whether it has ended: the system gives this process another parent then."""
        return os.getppid() != self._pid
