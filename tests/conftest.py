"""Fixtures shared by all tests: a private server for whoever asks for one."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import hypothesis
import pytest

from kcm.redisio import RedisIO
from kcm.redisio.embedded import EmbeddedServer, find_server
from kcm.settings import Settings

# A busy machine may take its time over an example: no test asserts how long anything takes.
hypothesis.settings.register_profile("kcm", deadline=None)
hypothesis.settings.load_profile("kcm")

# A shell ignores Ctrl-C for what it starts in the background, and a program inherits that: nothing
# that tests interrupt would end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Lets tests take the folder away that the server persists to.
FAULTS_ALLOWED = ("--enable-protected-configs", "yes")


# Whole ones, which mostly wait.
SYSTEMS = (
    "tests/chaos/",
    "tests/charts/",
    "tests/containers/",
    "tests/docs/",
    "tests/real/",
    "tests/scenarios/",
)
# Tests of kcm's parts, without the clients of others.
OF_PARTS = ("tests/unit/", "tests/upstream/")
LEFT_OPEN = r"default:unclosed <(ssl\.SSLSocket|socket\.socket):ResourceWarning"
# Modules that take minutes, as one test process runs all tests of a module.
LONGEST = (
    "tests/docs/test_commands.py",
    "tests/integration/apiserver/test_hostile_bodies.py",
    "tests/scenarios/test_up.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest modules first, and deals those that wait among those that compute, the end
    excepted.

    With several test processes, each kind then has the processor while the other has not.

    The garbage collector finds a socket that a client library has left open, in whatever test runs
    then. Such a warning fails a test of kcm's parts only. Elsewhere it is shown at the end.
    """
    for item in items:
        if not item.location[0].startswith(OF_PARTS):
            item.add_marker(pytest.mark.filterwarnings(LEFT_OPEN))
    modules = {name: list(group) for name, group in groupby(items, lambda i: i.location[0])}
    waiting = [name for name in modules if name.startswith(SYSTEMS)]
    computing = [name for name in modules if not name.startswith(SYSTEMS)]
    places = {name: (place, 1) for place, name in enumerate(computing)}
    step = 2 / 3 * len(computing) / max(len(waiting), 1)
    places |= {name: (step * number, 0) for number, name in enumerate(waiting)}
    places |= {name: (-1, LONGEST.index(name)) for name in modules if name in LONGEST}
    items[:] = [item for name in sorted(modules, key=places.__getitem__) for item in modules[name]]


def server_binary() -> str:
    """Returns the path of the embedded server, or of the one that `KCM_TEST_SERVER` names.

    CI names Debian's redis-server.
    """
    name = os.environ.get("KCM_TEST_SERVER", "")
    return (shutil.which(name) or name) if name else find_server()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[EmbeddedServer]:
    """Starts one private server per test process, on a Unix socket in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="kcm-"))
    server = EmbeddedServer(folder, binary=server_binary(), extra=FAULTS_ALLOWED)
    server.start()
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def settings(redis_server: EmbeddedServer) -> Settings:
    """Gives settings that lead to the private server."""
    return Settings(redis_url=redis_server.url, state_dir=redis_server.state_dir)


@pytest.fixture
def io(settings: Settings) -> Iterator[RedisIO]:
    """Gives an attached connection to an empty server."""
    io = RedisIO(settings)
    io.execute("FLUSHALL")
    io.attach()
    yield io
    io.close()
