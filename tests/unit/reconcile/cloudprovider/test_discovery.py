"""Tests how cloud providers are found: kcm's own by name, others by entry point."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from kcm import errors
from kcm.clock import RealClock
from kcm.reconcile.cloudprovider import discovery
from kcm.reconcile.cloudprovider.discovery import ENTRY_POINTS, ProviderSettings, create_provider
from kcm.redisio import RedisIO
from kcm.settings import Settings

HERE = "tests.unit.reconcile.cloudprovider.test_discovery"


class Rented:
    """A cloud of an installed package. It has load balancers only in its dreams."""

    name = "rented"
    load_balancers = instances_v2 = zones = routes = None

    def __init__(self, settings: ProviderSettings) -> None:
        self.config = settings.config


def broken(settings: ProviderSettings) -> Rented:
    raise OSError("no credentials")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    points = EntryPoints(
        EntryPoint(name, f"{HERE}:{target}", ENTRY_POINTS)
        for name, target in (("rented", "Rented"), ("broken", "broken"), ("absent", "Absent"))
    )

    def of(**selection: Any) -> EntryPoints:
        return points.select(**selection)

    monkeypatch.setattr(discovery, "entry_points", of)


def settings(config: str = "") -> ProviderSettings:
    return ProviderSettings(RedisIO(Settings(redis_url="redis://192.0.2.1:1")), RealClock(), config)


def test_the_simulated_cloud_is_built_in() -> None:
    assert create_provider("sim", settings()).name == "sim"


@pytest.mark.usefixtures("installed")
def test_packages_add_providers() -> None:
    assert discovery.list_providers() == ["absent", "broken", "rented", "sim"]
    rented = create_provider("rented", settings("cloud.conf"))
    assert isinstance(rented, Rented)
    assert rented.config == "cloud.conf"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gone", 'unknown cloud provider "gone"; there are: absent, broken, rented, sim'),
        ("broken", "--cloud-provider=broken: OSError: no credentials"),
        ("absent", "entry point kcm.cloud_providers:absent .*Absent.*: AttributeError"),
    ],
)
def test_one_that_cannot_be_created_is_refused(name: str, words: str) -> None:
    with pytest.raises(errors.ConfigurationError, match=words):
        create_provider(name, settings())
