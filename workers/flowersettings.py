"""The login for Flower's configuration file, and the format in which Flower shows tasks."""

from __future__ import annotations

import ast
import os
import secrets
import time
import weakref
from types import SimpleNamespace
from typing import Any

from celery import current_app

from kcm import errors
from kcm.coordination.failovers import failover_loops
from kcm.loops import ThreadHost
from kcm.redisio import RedisIO
from kcm.settings import Settings
from workers.failovers import LINKS
from workers.transport import ScriptRights

PASSWORD_FILE = "flower-password"
_RETRY = 1.0  # seconds


def load_password() -> str:
    """Returns KCM_FLOWER_PASSWORD, or the password in a file of the state folder.

    The first call generates the file.
    """
    given = os.environ.get("KCM_FLOWER_PASSWORD")
    if given:
        return given
    path = Settings().state_dir / PASSWORD_FILE
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        # Created with its mode, so that no other user can read it in between.
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    with os.fdopen(file, "w") as out:
        generated = secrets.token_urlsafe(18)
        out.write(generated + "\n")
    return generated


def require_read_only() -> None:
    """Raises ConfigurationError for a version of Flower without a read-only mode."""
    from flower.options import options  # noqa: PLC0415 - only Flower's own process imports it

    if "read_only" not in options:
        raise errors.ConfigurationError(
            "this Flower has no read-only mode: upgrade it to 2.2 or later, or allow control "
            "with KCM_FLOWER_READ_ONLY=false"
        )


def run_no_scripts() -> None:
    """Leaves to workers what kombu does by scripts, which Flower's Redis user may not run."""
    ScriptRights.granted = False


def follow_master() -> None:
    """Has Flower follow the master that a sentinel announces, and connect again within a second:
    it would wait twice as long after each failure.
    """
    from flower import events  # noqa: PLC0415 - only Flower's own process

    receivers: weakref.WeakSet[Any] = weakref.WeakSet()

    class Receiver(events.EventReceiver):  # type: ignore[misc] # celery has no types
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            receivers.add(self)

    def move() -> None:
        current_app.pool.force_close_all(close_pool=False)  # of questions to workers
        for receiver in list(receivers):
            receiver.should_stop = True  # looked at each second; Flower makes another one

    events.EventReceiver = Receiver
    events.time = SimpleNamespace(
        monotonic=time.monotonic, sleep=lambda seconds: time.sleep(min(seconds, _RETRY))
    )
    io = RedisIO(Settings(), name="kcm/flower", links=LINKS)
    ThreadHost().run(*failover_loops(io, move))


def require_login_for_metrics() -> None:
    """Makes /metrics require the login, as every other page does. /healthcheck stays open."""
    from flower.views.monitor import Metrics  # noqa: PLC0415 - only Flower's own process
    from tornado import web  # noqa: PLC0415

    Metrics.get = web.authenticated(Metrics.get)


def refuse_non_ascii_logins() -> None:
    """Makes Flower respond with 401 to credentials that are not ASCII, for which it responds with
    500.
    """
    from flower.views import BaseHandler  # noqa: PLC0415 - only Flower's own process
    from tornado import web  # noqa: PLC0415

    ask = BaseHandler.get_current_user

    def get_current_user(handler: Any) -> Any:
        try:
            return ask(handler)
        except TypeError:  # raised by hmac.compare_digest
            raise web.HTTPError(401) from None

    BaseHandler.get_current_user = get_current_user


def login() -> str:
    """Returns user and password in Flower's form, `user:password`. Raises ConfigurationError."""
    pair = f"{os.environ.get('KCM_FLOWER_USER', 'kcm')}:{load_password()}"
    if not pair.isascii():
        raise errors.ConfigurationError(
            "KCM_FLOWER_USER and KCM_FLOWER_PASSWORD must be ASCII: Flower supports nothing else"
        )
    return pair


def format_task(task: Any) -> Any:
    """Makes Flower show `default/web` instead of `('default/web',)`."""
    task.args = format_arguments(task.args)
    return task


def format_arguments(args: Any) -> str:
    """Returns a task's arguments without Python's punctuation."""
    if not isinstance(args, str):
        return ", ".join(str(arg) for arg in args or ())
    try:
        read = ast.literal_eval(args)
    except (ValueError, SyntaxError):
        return args  # `default/web +7`, as it was sent
    return ", ".join(str(a) for a in read) if isinstance(read, tuple | list) else str(read)
