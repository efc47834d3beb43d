from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.manager.context.admission import CachedAdmissionRules, find_admission_server
from kcm.settings import Settings
from tests.samples import manifest

GROUP = "admissionregistration.k8s.io"
MUTATING = f"mutatingwebhookconfigurations.{GROUP}"
VALIDATING = f"validatingwebhookconfigurations.{GROUP}"
POLICY = f"validatingadmissionpolicies.{GROUP}"
BINDING = f"validatingadmissionpolicybindings.{GROUP}"


class Factory:
    """Informers that have these objects."""

    def __init__(self, *objects: KubeObject) -> None:
        self.objects = list(objects)

    def informer_for(self, model: type[KubeObject]) -> Any:
        def listed() -> list[KubeObject]:
            return [obj for obj in self.objects if isinstance(obj, model)]

        return SimpleNamespace(get_store=lambda: SimpleNamespace(list=listed))


def sample(name: str) -> KubeObject:
    return codec.decode(manifest(name), BUILT_IN)


def rules(*names: str) -> CachedAdmissionRules:
    cached = CachedAdmissionRules()
    cached.follow(Factory(*(sample(name) for name in names)))  # type: ignore[arg-type] # informers
    return cached


@pytest.mark.parametrize(
    ("names", "kind", "subresource", "operation", "named"),
    [
        ((), "pods", "", "CREATE", False),
        ((MUTATING,), "pods", "", "CREATE", True),
        ((VALIDATING,), "pods", "", "CREATE", True),
        ((VALIDATING,), "pods", "status", "CREATE", False),
        ((VALIDATING,), "pods", "", "UPDATE", False),
        ((VALIDATING,), "services", "", "CREATE", False),
        ((POLICY,), "deployments", "", "CREATE", False),  # nothing binds it
        ((POLICY, BINDING), "deployments", "", "CREATE", True),
        ((POLICY, BINDING), "deployments", "", "DELETE", False),
    ],
)
def test_rules_name_writes(
    names: tuple[str, ...], kind: str, subresource: str, operation: str, named: bool
) -> None:
    assert rules(*names).name(BUILT_IN.lookup(kind), subresource, operation) is named


def test_new_rules_are_seen_at_once() -> None:
    factory, cached = Factory(), CachedAdmissionRules()
    cached.follow(factory)  # type: ignore[arg-type] # it has what is needed
    pods = BUILT_IN.lookup("pods")
    assert not cached.name(pods, "", "CREATE")
    factory.objects.append(sample(MUTATING))
    assert cached.name(pods, "", "CREATE")
    factory.objects.clear()
    assert not cached.name(pods, "", "CREATE")


def test_without_a_kubeconfig_nothing_goes_through_a_server(tmp_path: Path) -> None:
    assert find_admission_server(Settings(state_dir=tmp_path)) is None


def test_a_kubeconfig_that_is_named_must_be_there(tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path, admission_kubeconfig=str(tmp_path / "missing"))
    with pytest.raises(errors.ConfigurationError, match="missing"):
        find_admission_server(settings)
