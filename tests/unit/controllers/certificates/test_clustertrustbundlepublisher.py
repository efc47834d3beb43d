"""After TestCTBPublisherSync of
pkg/controller/certificates/clustertrustbundlepublisher/publisher_test.go.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kcm import errors
from kcm.api.certificates_v1beta1 import (
    API_SERVER_SERVING,
    ClusterTrustBundle,
    ClusterTrustBundleSpec,
)
from kcm.api.core_v1 import Namespace
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.controllers.certificates.clustertrustbundlepublisher import (
    KEY,
    ClusterTrustBundlePublisher,
    ClusterTrustBundlePublisherOptions,
    bundle_name,
    bundle_of_signer,
    system_namespace,
)
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import Create, Delete, Failure, Outcome, Update, Write
from kcm.testing.views import FakeView

CERTIFICATES = "-----BEGIN CERTIFICATE-----\nfake\n-----END CERTIFICATE-----\n"
NAME = bundle_name(API_SERVER_SERVING, CERTIFICATES)


@pytest.fixture
def publisher(tmp_path: Path) -> ClusterTrustBundlePublisher:
    file = tmp_path / "ca.crt"
    file.write_text(CERTIFICATES)
    return ClusterTrustBundlePublisher(ClusterTrustBundlePublisherOptions(root_ca_file=str(file)))


def bundle(
    name: str = NAME, text: str = CERTIFICATES, signer: str | None = API_SERVER_SERVING
) -> ClusterTrustBundle:
    spec = ClusterTrustBundleSpec(signer_name=signer, trust_bundle=text)
    return ClusterTrustBundle(metadata=ObjectMeta(name=name), spec=spec)


RIGHT, OLD = bundle(), bundle(text="olddata")
SECOND = bundle("kubernetes.io:kube-apiserver-serving:name2")
OTHERS = [bundle("nosigner", "somedata", None), bundle("signer:one", "signerdata", "signer")]


@pytest.mark.parametrize(
    ("present", "writes"),
    [
        ([], [Create(RIGHT)]),
        (OTHERS, [Create(RIGHT)]),
        ([OLD], [Update(RIGHT, OLD)]),
        ([RIGHT, SECOND], [Delete(SECOND)]),
        ([OLD, SECOND], [Update(RIGHT, OLD), Delete(SECOND)]),
        ([SECOND], [Create(RIGHT), Delete(SECOND)]),
        ([*OTHERS, RIGHT], []),
    ],
)
def test_the_signer_has_one_bundle(
    present: list[ClusterTrustBundle], writes: list[Write], publisher: ClusterTrustBundlePublisher
) -> None:
    view = FakeView(*present, controller=publisher)
    assert publisher.reconcile(KEY, view).writes == writes
    [tick] = publisher.ticks()
    assert tick.run(view, {}).writes == writes


def test_the_name_has_the_hash_of_the_certificates() -> None:
    assert bundle_name("example.com/a", "x") == "example.com:a:2d711642b726b04401627ca9"


def test_only_bundles_of_the_signer_are_looked_at() -> None:
    view = FakeView()
    assert list(bundle_of_signer(Change(None, RIGHT), view)) == [KEY]
    assert list(bundle_of_signer(Change(RIGHT, None), view)) == [KEY]
    assert list(bundle_of_signer(Change(None, OTHERS[0]), view)) == []


def test_a_new_cluster_has_a_bundle_at_once() -> None:
    view, system = FakeView(), Namespace(metadata=ObjectMeta(name="kube-system"))
    assert list(system_namespace(Change(None, system), view)) == [KEY]
    assert list(system_namespace(Change(system, system), view)) == []
    other = system.with_metadata(name="other")
    assert list(system_namespace(Change(None, other), view)) == []


def test_syncs_are_counted_by_their_results(publisher: ClusterTrustBundlePublisher) -> None:
    plan = publisher.reconcile(KEY, FakeView(controller=publisher))
    assert "200" in next(iter(plan.counts_after(Outcome())))
    failure = Failure(plan.writes[0], errors.Forbidden("no"))
    assert "403" in next(iter(plan.counts_after(Outcome(failures=[failure]))))


def test_without_certificates_it_does_not_run(publisher: ClusterTrustBundlePublisher) -> None:
    assert publisher.missing_option() == ""
    assert ClusterTrustBundlePublisher().missing_option() == "--root-ca-file is not set"
