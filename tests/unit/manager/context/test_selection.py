from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kcm import errors
from kcm.controllers.scheduler import SchedulerController
from kcm.controllers.serviceaccounts.serviceaccount import ServiceAccountController
from kcm.controllers.serviceaccounts.serviceaccounttoken import (
    ServiceAccountTokenController,
    ServiceAccountTokenOptions,
)
from kcm.controllers.serviceiprepair import ServiceIPRepairController
from kcm.controllers.storageversionmigrator import StorageVersionMigrator
from kcm.helpers.serviceaccount.tokens import ensure_key_file
from kcm.manager.context.selection import create_enabled, select
from kcm.options.groups import GenericOptions
from kcm.options.manager import (
    ManagerOptions,
    controller_aliases,
    controllers_disabled_by_default,
    is_controller_enabled,
    known_controllers,
    resolve_names,
)
from kcm.options.names import KNOWN
from kcm.reconcile.contract import Controller
from tests.unit.options.sample_controllers import WidgetOptions

Types = tuple[type[Controller], ...]


@pytest.mark.parametrize(
    ("name", "controllers", "expected"),
    [
        pytest.param("bravo", ["alpha", "bravo", "-charlie"], True, id="on by name"),
        pytest.param("charlie", ["alpha", "bravo", "-charlie"], False, id="off by name"),
        pytest.param("alpha", ["*"], True, id="on by default"),
        pytest.param("delta", ["*"], False, id="off by default"),
        pytest.param("alpha", ["*", "-charlie"], True, id="on by star, not off by name"),
        pytest.param("charlie", ["*", "-charlie"], False, id="off by name with star"),
        pytest.param("charlie", ["-charlie", "*"], False, id="off by name before the star"),
        pytest.param("foxtrot", ["alpha", "bravo"], False, id="off implicitly, no star"),
        pytest.param("delta", ["*", "delta"], True, id="on by name though off by default"),
        pytest.param("alpha", ["alpha", "-alpha"], True, id="the first mention decides"),
        pytest.param("alpha", ["-alpha", "alpha"], False, id="the first mention decides (off)"),
    ],
)
def test_a_list_enables_as_upstream(name: str, controllers: list[str], expected: bool) -> None:
    assert is_controller_enabled(name, {"delta", "echo"}, controllers) is expected


def test_upstreams_names_and_aliases_are_all_distinct() -> None:
    names = [known.name for known in KNOWN]
    aliases = [known.alias for known in KNOWN if known.alias]
    assert len(set(names)) == len(names)
    assert len(set(aliases)) == len(aliases)
    assert not set(names) & set(aliases)


def test_what_is_built_has_upstreams_names() -> None:
    from kcm.controllers.garbagecollector import GarbageCollector
    from kcm.controllers.podgc import PodGCController
    from kcm.controllers.replicaset import ReplicaSetController

    built = {
        kind.name: kind.short_name
        for kind in (GarbageCollector, PodGCController, ReplicaSetController)
    }
    aliases = {known.name: known.alias for known in KNOWN}
    assert built == {name: aliases[name] for name in built}


def test_the_known_ones_are_upstreams_and_the_users_own(samples: Types) -> None:
    known = known_controllers(samples)
    assert {"replicaset-controller", "service-lb-controller", "widget-controller"} <= set(known)
    assert controller_aliases(samples)["podgc"] == "pod-garbage-collector-controller"
    assert controller_aliases(samples)["widget"] == "widget-controller"


def test_some_are_off_by_default(samples: Types) -> None:
    assert controllers_disabled_by_default(samples) == {
        "bootstrap-signer-controller",
        "token-cleaner-controller",
        "selinux-warning-controller",
        "quiet-controller",
    }


def test_aliases_become_names(samples: Types) -> None:
    assert resolve_names(["*", "-podgc", "widget", "-garbage-collector"], samples) == (
        "*",
        "-pod-garbage-collector-controller",
        "widget-controller",
        "-garbage-collector-controller",
    )


def test_none_can_be_enabled(samples: Types) -> None:
    assert resolve_names(["-*"], samples) == ("-*",)
    assert not is_controller_enabled("widget-controller", (), ["-*"])


def test_an_empty_list_means_all(samples: Types) -> None:
    assert resolve_names([], samples) == ("*",)


def test_an_unknown_name_is_refused_with_the_names_there_are(samples: Types) -> None:
    with pytest.raises(errors.ConfigurationError) as caught:
        resolve_names(["*", "-foo", "bar"], samples)
    assert '"foo" is not in the list of known controllers' in str(caught.value)
    assert '"bar" is not in the list of known controllers' in str(caught.value)
    assert "widget-controller (widget)" in str(caught.value)


def test_enabling_one_that_is_not_built_yet_is_refused(samples: Types) -> None:
    words = re.escape(
        '"deployment-controller" is a controller of Kubernetes that kcm does not have'
    )
    with pytest.raises(errors.ConfigurationError, match=words):
        resolve_names(["deployment"], samples)


def test_disabling_one_that_is_not_built_yet_is_fine(samples: Types) -> None:
    assert resolve_names(["*", "-tokencleaner"], samples) == ("*", "-token-cleaner-controller")


def with_controllers(*controllers: str) -> ManagerOptions:
    return ManagerOptions(generic=GenericOptions(controllers=controllers))


def test_what_runs_is_enabled_and_its_kinds_are_served() -> None:
    selection = select(with_controllers("*"))
    assert [controller.name for controller in selection.started] == ["widget-controller"]
    assert selection.disabled == ("quiet-controller",)
    assert selection.skipped is not None
    assert selection.skipped["gadget-controller"] == "the store does not serve Gadget"
    assert "node-route-controller" not in selection.skipped


def test_one_that_is_off_by_default_is_enabled_by_name() -> None:
    controllers = create_enabled(with_controllers("*", "quiet", "-widget"))
    assert [controller.name for controller in controllers] == ["quiet-controller"]


def test_one_that_lacks_an_option_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ManagerOptions, "types", lambda _: (ServiceAccountTokenController,))
    selection = select(ManagerOptions())
    assert not selection.started
    assert (selection.skipped or {})["serviceaccount-token-controller"] == (
        "--service-account-private-key-file is not set"
    )


def test_controllers_get_their_options() -> None:
    options = ManagerOptions.load({"concurrent-widget-syncs": "7"}, {})
    (widget,) = create_enabled(options)
    assert isinstance(widget.options, WidgetOptions)
    assert widget.options.concurrent_widget_syncs == 7


def test_the_token_controller_starts_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ensure_key_file(tmp_path / "sa.key")
    given = ServiceAccountTokenOptions(service_account_private_key_file=str(tmp_path / "sa.key"))
    kinds = (ServiceAccountController, ServiceAccountTokenController)
    monkeypatch.setattr(ManagerOptions, "types", lambda _: kinds)
    options = ManagerOptions(controllers={ServiceAccountTokenController.name: given})
    names = [controller.short_name for controller in create_enabled(options)]
    assert names == ["serviceaccounttoken", "serviceaccount"]


def test_what_needs_its_own_store_does_not_run_on_another(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = (SchedulerController, ServiceIPRepairController, StorageVersionMigrator)
    monkeypatch.setattr(ManagerOptions, "types", lambda _: (*bound, ServiceAccountController))
    here, there = (
        select(ManagerOptions(generic=GenericOptions(kubeconfig=given))) for given in ("", "/there")
    )
    assert {type(controller) for controller in here.started} == {*bound, ServiceAccountController}
    assert [type(controller) for controller in there.started] == [ServiceAccountController]
    assert there.skipped == {
        kind.name: "another API server cannot check the guards of its writes" for kind in bound
    }


# --- clouds


class Rented:
    """A user's cloud, which has load balancers only."""

    name = "rented"
    load_balancers = object()
    instances_v2 = zones = routes = None


def test_controllers_of_clouds_need_a_provider_with_their_interface(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from kcm import registry
    from kcm.options.groups import CloudOptions
    from tests.unit.options.conftest import SAMPLES

    lines = tuple(f"{SAMPLES}:{name}Controller" for name in ("Balancing", "Instances"))
    monkeypatch.setattr(registry, "CONTROLLERS", lines)
    without = select(ManagerOptions())
    assert without.started == ()
    assert set((without.skipped or {}).values()) == {"no cloud provider is set (--cloud-provider)"}
    options = ManagerOptions(cloud=CloudOptions(cloud_provider="rented"))
    assert len(select(options).started) == 2
    rented: Any = Rented()
    selection = select(options, cloud=rented)
    assert [controller.name for controller in selection.started] == ["balancing-controller"]
    assert selection.skipped == {
        "instances-controller": "the cloud provider rented does not support instances v2"
    }
