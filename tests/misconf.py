"""A server that cannot persist: what a full disk looks like from outside."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kcm.redisio import RedisIO
from kcm.testing.waiting import until


@contextmanager
def unable_to_persist(io: RedisIO) -> Iterator[None]:
    """Lets the server's snapshots fail, so that it answers every write with MISCONF."""
    # Such a server refuses even the PING of a health check.
    io = RedisIO(io.settings.model_copy(update={"health_check_interval": 0}))
    folder = io.execute("CONFIG GET", "dir")["dir"]
    gone = Path(tempfile.mkdtemp(prefix="kcm-gone-"))
    io.execute("CONFIG SET", "dir", str(gone))
    gone.rmdir()
    io.execute("CONFIG SET", "save", "3600 1")
    try:
        io.execute("BGSAVE")
        until(
            lambda: io.info("persistence")["rdb_last_bgsave_status"] == "err",
            "a snapshot's failure",
        )
        yield
    finally:
        io.execute("CONFIG SET", "save", "")
        io.execute("CONFIG SET", "dir", folder)
        io.close()
