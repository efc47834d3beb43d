"""After TestConfigMapCreation and TestConfigMapUpdateNoHotLoop of
pkg/controller/certificates/rootcacertpublisher/publisher_test.go.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kcm import errors
from kcm.api.core_v1 import ConfigMap, Namespace
from kcm.api.core_v1.namespaces import NamespaceStatus
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.controllers.certificates.rootcacertpublisher import (
    DESCRIPTION,
    NAME,
    TEXT,
    RootCACertPublisher,
    RootCACertPublisherOptions,
    active_namespace,
    namespace_of_config_map,
)
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import Create, Failure, Outcome, Update
from kcm.testing.views import FakeView

BUNDLE = "-----BEGIN CERTIFICATE-----\nfake-root-ca\n-----END CERTIFICATE-----\n"


@pytest.fixture
def publisher(tmp_path: Path) -> RootCACertPublisher:
    file = tmp_path / "ca.crt"
    file.write_text(BUNDLE)
    return RootCACertPublisher(RootCACertPublisherOptions(root_ca_file=str(file)))


def namespace(phase: str = "Active") -> Namespace:
    status = NamespaceStatus(phase=phase)
    return Namespace(metadata=ObjectMeta(name="new"), status=status)


def config_map(
    data: dict[str, str], annotations: dict[str, str] | None = None, name: str = NAME
) -> ConfigMap:
    metadata = ObjectMeta(name=name, namespace="new", annotations=annotations or {})
    return ConfigMap(metadata=metadata, data=data)


RIGHT = config_map({"ca.crt": BUNDLE}, {DESCRIPTION: TEXT})


def test_a_namespace_gets_the_certificates(publisher: RootCACertPublisher) -> None:
    plan = publisher.reconcile("new", FakeView(namespace(), controller=publisher))
    assert plan.writes == [Create(RIGHT)]


@pytest.mark.parametrize(
    "wrong",
    [
        config_map({"ca.crt": "other"}, {DESCRIPTION: TEXT}),
        config_map({"ca.crt": BUNDLE, "more": "x"}, {DESCRIPTION: TEXT}),
        config_map({"ca.crt": BUNDLE}),
    ],
)
def test_what_differs_is_corrected(wrong: ConfigMap, publisher: RootCACertPublisher) -> None:
    plan = publisher.reconcile("new", FakeView(namespace(), wrong, controller=publisher))
    assert plan.writes == [Update(RIGHT, wrong)]


def test_what_is_right_stays_with_any_description(publisher: RootCACertPublisher) -> None:
    for present in (RIGHT, config_map({"ca.crt": BUNDLE}, {DESCRIPTION: "in other words"})):
        plan = publisher.reconcile("new", FakeView(namespace(), present, controller=publisher))
        assert plan.writes == []


def test_a_namespace_that_is_gone_or_going_gets_nothing(publisher: RootCACertPublisher) -> None:
    going = namespace().with_metadata(deletion_timestamp=FakeView().now)
    for objects in ((), (going,)):
        assert publisher.reconcile("new", FakeView(*objects, controller=publisher)).writes == []


def test_new_and_active_namespaces_are_looked_at() -> None:
    view = FakeView()
    assert list(active_namespace(Change(None, namespace("")), view)) == ["new"]
    assert list(active_namespace(Change(namespace(), namespace()), view)) == ["new"]
    assert list(active_namespace(Change(namespace(), namespace("Terminating")), view)) == []
    assert list(active_namespace(Change(namespace(), None), view)) == []


def test_only_its_own_config_maps_are_looked_at() -> None:
    view, other = FakeView(), config_map({}, name="other")
    assert list(namespace_of_config_map(Change(RIGHT, None), view)) == ["new"]
    assert list(namespace_of_config_map(Change(RIGHT, RIGHT), view)) == ["new"]
    assert list(namespace_of_config_map(Change(None, RIGHT), view)) == []
    assert list(namespace_of_config_map(Change(other, None), view)) == []


def test_syncs_are_counted_by_their_results(publisher: RootCACertPublisher) -> None:
    plan = publisher.reconcile("new", FakeView(namespace(), controller=publisher))
    (name,) = plan.counts_after(Outcome())
    assert name.startswith("root_ca_cert_publisher_sync")
    assert "200" in name
    failure = Failure(plan.writes[0], errors.Forbidden("no"))
    assert "403" in next(iter(plan.counts_after(Outcome(failures=[failure]))))


def test_without_certificates_it_does_not_run(
    publisher: RootCACertPublisher, tmp_path: Path
) -> None:
    assert publisher.missing_option() == ""
    assert RootCACertPublisher().missing_option() == "--root-ca-file is not set"
    (tmp_path / "empty").write_text("nothing")
    for name in ("none", "empty"):
        options = RootCACertPublisherOptions(root_ca_file=str(tmp_path / name))
        with pytest.raises(errors.ConfigurationError, match="--root-ca-file"):
            RootCACertPublisher(options)
