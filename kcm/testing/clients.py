"""Fixtures of the pytest plugin: clients of the control plane of a test, and operators on it.

That is `kcm_fresh` for a test that has it, and else the session's. A library is imported when a
test asks for its fixture. Where it is missing, the test is skipped.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import kr8s
    from kopf.testing import KopfRunner
    from kubernetes.client import ApiClient
    from lightkube import Client

    from kcm.testing.control_plane.plane import ControlPlane

RunKopf = Callable[..., AbstractContextManager["KopfRunner"]]

_CONNECTED_WITHIN = 10.0  # seconds; an operator without handlers may watch nothing
_BETWEEN_LOOKS = 0.02  # seconds

# They read KUBECONFIG when they are imported, which may be before a control plane starts.
_READ_ONCE = ("kubernetes", "kubernetes_asyncio")


@pytest.fixture
def _kcm_plane(request: pytest.FixtureRequest) -> ControlPlane:
    """The control plane that the test uses."""
    name = "kcm_fresh" if "kcm_fresh" in request.fixturenames else "kcm"
    plane: ControlPlane = request.getfixturevalue(name)
    return plane


@pytest.fixture
def kcm_kubernetes(_kcm_plane: ControlPlane) -> Iterator[ApiClient]:
    """An ApiClient of `kubernetes` for the test's control plane."""
    config = _import("kubernetes.config", "kcm_kubernetes", "kubernetes")
    with config.new_client_from_config(str(_kcm_plane.kubeconfig)) as client:
        yield client
        client.rest_client.pool_manager.clear()  # closing the client leaves connections open


@pytest.fixture
def kcm_lightkube(_kcm_plane: ControlPlane) -> Iterator[Client]:
    """A Client of `lightkube` for the test's control plane."""
    lightkube = _import("lightkube", "kcm_lightkube", "lightkube>=1.0")
    config = lightkube.KubeConfig.from_file(str(_kcm_plane.kubeconfig))
    with lightkube.Client(config=config, trust_env=False) as client:
        yield client


@pytest.fixture
def kcm_kr8s(_kcm_plane: ControlPlane) -> Iterator[kr8s.Api]:
    """An API of `kr8s` for the test's control plane, for tests that are not asynchronous."""
    kr8s = _import("kr8s", "kcm_kr8s", "kr8s")
    api = kr8s.api(kubeconfig=str(_kcm_plane.kubeconfig))
    yield api
    # kr8s does not say how an API is closed: its connections belong to the loop of its own thread.
    if session := getattr(api, "_session", None):
        import_module("kr8s._async_utils").as_sync_func(session.aclose)()


@pytest.fixture
def kcm_kopf(_kcm_plane: ControlPlane) -> RunKopf:
    """A function that runs an operator of kopf on the test's control plane; see `run_kopf`."""
    _import("kopf.testing", "kcm_kopf", "kopf")
    return partial(run_kopf, _kcm_plane)


@contextmanager
def run_kopf(control_plane: ControlPlane, *arguments: str, **options: Any) -> Iterator[KopfRunner]:
    """Runs an operator of kopf, from when it watches objects until the end of the block.

    It takes the arguments of the command `kopf`, and those of KopfRunner by name. What the block
    prints is in the runner's output.

        with kcm_kopf("run", "-A", "operator.py") as runner:
            ...
        assert runner.exit_code == 0
    """
    testing = import_module("kopf.testing")
    with _only_reaching(control_plane), _keep_logging(), _keep_registry():
        if not {"-m", "--module"} & set(arguments):
            options.setdefault("registry", _build_registry())
        before = control_plane.outside_watches()
        with testing.KopfRunner(list(arguments), **options) as runner:
            for _ in range(int(_CONNECTED_WITHIN / _BETWEEN_LOOKS)):
                now = control_plane.outside_watches()
                if before is None or now is None or now > before or runner.future.done():
                    break
                threading.Event().wait(_BETWEEN_LOOKS)
            yield runner


def _import(module: str, fixture: str, requirement: str) -> Any:
    """Imports a module, or skips the test."""
    reason = f"the fixture {fixture} needs a library that is missing: pip install '{requirement}'"
    return pytest.importorskip(module, reason=reason)


@contextmanager
def _only_reaching(control_plane: ControlPlane) -> Iterator[None]:
    """Makes this cluster the one that all clients of this process find."""
    path = str(control_plane.kubeconfig)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", path)
        patch.delenv("KUBERNETES_SERVICE_HOST", raising=False)  # tests may run in a pod
        for library in filter(find_spec, _READ_ONCE):
            for module in (f"{library}.config", f"{library}.config.kube_config"):
                name = "KUBE_CONFIG_DEFAULT_LOCATION"
                patch.setattr(import_module(module), name, path, raising=False)
        yield


@contextmanager
def _keep_logging() -> Iterator[None]:
    """Removes the handlers afterwards that `kopf` adds, whose stream is closed then."""
    loggers = [logging.getLogger(), logging.getLogger("asyncio")]
    before = [(one, list(one.handlers), one.level, one.propagate) for one in loggers]
    try:
        yield
    finally:
        for logger, handlers, level, propagate in before:
            logger.handlers[:] = handlers
            logger.setLevel(level)
            logger.propagate = propagate


@contextmanager
def _keep_registry() -> Iterator[None]:
    """Restores kopf's default registry when the block ends.

    Handlers register themselves there when their module is first imported, and never again.
    """
    import kopf  # noqa: PLC0415 - see the module

    before = kopf.get_default_registry()
    try:
        yield
    finally:
        kopf.set_default_registry(before)


def _build_registry() -> Any:
    """Returns a registry without the handlers of operators that ran before in this process."""
    import kopf  # noqa: PLC0415 - see the module

    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)
    return registry
