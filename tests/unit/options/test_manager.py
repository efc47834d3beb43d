from __future__ import annotations

import textwrap
from datetime import timedelta
from pathlib import Path

import pytest

from kcm import errors
from kcm.controllers.certificates.rootcacertpublisher import RootCACertPublisher
from kcm.controllers.serviceaccounts.serviceaccounttoken import ServiceAccountTokenController
from kcm.options.manager import ManagerOptions

Flags = dict[str, str]

HEAD = """\
apiVersion: kubecontrollermanager.config.k8s.io/v1alpha1
kind: KubeControllerManagerConfiguration
"""


def config(tmp_path: Path, body: str) -> str:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + textwrap.dedent(body))
    return str(path)


def test_defaults_are_upstreams() -> None:
    options = ManagerOptions.load({}, {})
    assert options.generic.controllers == ("*",)
    assert options.generic.min_resync_period == timedelta(hours=12)
    assert options.generic.controller_start_interval == timedelta(0)
    assert options.leader_election.lease_duration == timedelta(seconds=15)
    assert options.leader_election.renew_deadline == timedelta(seconds=10)
    assert options.leader_election.retry_period == timedelta(seconds=2)
    assert options.serving.secure_port == 10257


def test_election_is_off_unlike_upstream() -> None:
    assert ManagerOptions.load({}, {}).leader_election.leader_elect is False


@pytest.mark.parametrize(
    ("controllers", "lease"),
    [
        ("*", "kube-controller-manager"),
        ("*,-widget-controller", "kube-controller-manager"),
        ("widget-controller", "kcm-a3bef8f0c6"),
        ("gadget-controller,widget-controller", "kcm-2869966826"),
        ("widget-controller,gadget-controller", "kcm-2869966826"),
    ],
)
def test_over_another_api_server_the_lease_is_that_of_these_controllers(
    controllers: str, lease: str
) -> None:
    given = {"KCM_KUBECONFIG": "/k", "KCM_CONTROLLERS": controllers}
    election = ManagerOptions.load({}, given).leader_election
    assert (election.leader_elect, election.resource_name) == (True, lease)


def test_a_given_election_stays_as_it_was_given() -> None:
    flags = {"leader-elect": "false", "leader-elect-resource-name": "mine"}
    election = ManagerOptions.load(flags, {"KCM_KUBECONFIG": "/k"}).leader_election
    assert (election.leader_elect, election.resource_name) == (False, "mine")


FILE = "widgetController:\n  concurrentWidgetSyncs: 11\n"


SYNCS = {"concurrent-widget-syncs": "13"}
VARIABLE = {"KCM_CONCURRENT_WIDGET_SYNCS": "12"}


@pytest.mark.parametrize(
    ("flags", "environ", "file", "expected"),
    [
        ({}, {}, False, (3, None)),
        ({}, {}, True, (11, "config")),
        ({}, VARIABLE, True, (12, "environment")),
        (SYNCS, VARIABLE, True, (13, "flag")),
        (SYNCS, {}, False, (13, "flag")),
        ({}, {"KCM_CONCURRENT_WIDGET_SYNCS": ""}, True, (11, "config")),
    ],
)
def test_flag_beats_environment_beats_file_beats_default(
    tmp_path: Path, flags: Flags, environ: Flags, file: bool, expected: tuple[int, str | None]
) -> None:
    if file:
        environ = {**environ, "KCM_CONFIG": config(tmp_path, FILE)}
    options = ManagerOptions.load(flags, environ)
    syncs = options.controllers["widget-controller"].model_dump()["concurrent_widget_syncs"]
    assert (syncs, options.sources.get("concurrent-widget-syncs")) == expected


def test_a_whole_file_in_upstreams_form(tmp_path: Path) -> None:
    path = config(
        tmp_path,
        """\
        generic:
          controllers: ["*", "-podgc"]
          minResyncPeriod: 1h30m
          eventTTL: 10m
          leaderElection: {leaderElect: true, leaseDuration: 20s, resourceName: mine}
        serving:
          securePort: 0
        widgetController:
          widgetGracePeriod: 100ms
          widgetEvictionRate: 2
          enableWidgets: false
        """,
    )
    options = ManagerOptions.load({"config": path}, {})
    assert options.generic.controllers == ("*", "-podgc")
    assert options.generic.min_resync_period == timedelta(minutes=90)
    assert options.leader_election.resource_name == "mine"
    assert options.serving.secure_port == 0
    widget = options.controllers["widget-controller"].model_dump()
    assert widget["widget_grace_period"] == timedelta(milliseconds=100)
    assert widget["enable_widgets"] is False


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("generic: {minResync: 1h}", "generic.minResync: unknown field (did you mean generic.min"),
        ("generic: {minResyncPeriod: 5}", "generic.minResyncPeriod: must be a duration in quotes"),
        ("generic: {minResyncPeriod: 5x}", 'generic.minResyncPeriod: must be a duration like "12h'),
        ("generic: {controllers: '*'}", "generic.controllers: must be a list of strings"),
        ("generic: 5", "generic: must be a mapping of fields"),
        ("serving: {securePort: true}", "serving.securePort: must be a whole number, not True"),
        ("serving: {securePort: '1'}", "serving.securePort: must be a whole number, not '1'"),
        ("serving: {securePort: 70000}", "serving.securePort: Input should be less than or equal"),
        ("deploymentController: {concurrentDeploymentSyncs: 5}", "kcm does not have yet"),
        ("nonsense: {a: 1}", "nonsense: unknown field"),
        ("widgetController: {enableWidgets: 1}", "enableWidgets: must be true or false, not 1"),
        ("widgetController: {concurrentWidgetSyncs: 0}", "widgetController.concurrentWidgetSyncs:"),
    ],
)
def test_a_fault_in_the_file_is_located(tmp_path: Path, body: str, words: str) -> None:
    path = config(tmp_path, body)
    with pytest.raises(errors.ConfigurationError) as caught:
        ManagerOptions.load({"config": path}, {})
    assert path in str(caught.value)
    assert words in str(caught.value)


def test_all_faults_in_a_file_are_told_at_once(tmp_path: Path) -> None:
    path = config(tmp_path, "generic: {one: 1, two: 2}\n")
    with pytest.raises(errors.ConfigurationError, match=r"generic\.one[\s\S]*generic\.two"):
        ManagerOptions.load({"config": path}, {})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: Pod\napiVersion: v1\n", "must have apiVersion: kubecontrollermanager"),
        (HEAD + "---\n" + HEAD, "one document expected"),
        ("a: [", r"c\.yaml:2:1: did not find"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(errors.ConfigurationError, match=words):
        ManagerOptions.load({"config": str(path)}, {})


def test_a_missing_file_is_named() -> None:
    with pytest.raises(errors.ConfigurationError, match=r"/nowhere\.yaml.*No such file"):
        ManagerOptions.load({"config": "/nowhere.yaml"}, {})


@pytest.mark.parametrize(
    ("flags", "environ", "words"),
    [
        ({"min-resync-period": "x"}, {}, "--min-resync-period: must be a duration"),
        ({}, {"KCM_MIN_RESYNC_PERIOD": "x"}, "KCM_MIN_RESYNC_PERIOD: must be a duration"),
        ({}, {"KCM_LEADER_ELECT": "maybe"}, 'KCM_LEADER_ELECT: must be true or false, not "maybe"'),
        ({"secure-port": "http"}, {}, '--secure-port: must be a whole number, not "http"'),
        ({}, {"KCM_SECURE_PORT": "-1"}, "KCM_SECURE_PORT: Input should be greater than or equal"),
        ({"nope": "1"}, {}, "unknown flag: --nope"),
        ({"controllers": "foo"}, {}, '"foo" is not in the list of known controllers'),
        (
            {"leader-elect": "true", "leader-elect-renew-deadline": "15s"},
            {},
            "leaseDuration must be greater than renewDeadline",
        ),
        (
            {"leader-elect": "true", "leader-elect-resource-lock": "endpoints"},
            {},
            'resourceLock value must be "leases"',
        ),
        ({"bind-address": "0.0.0.0"}, {}, "needs --tls-cert-file, --tls-private-key-file and"),
        ({"bind-address": "nonsense"}, {}, "'nonsense' is not an IP address"),
        ({"tls-cert-file": "x"}, {}, "belong together"),
        ({"leader-elect-resource-name": ""}, {}, "--leader-elect-resource-name: "),
    ],
)
def test_a_wrong_value_is_located(
    flags: dict[str, str], environ: dict[str, str], words: str
) -> None:
    with pytest.raises(errors.ConfigurationError) as caught:
        ManagerOptions.load(flags, environ)
    assert words in str(caught.value)


def test_impossible_periods_are_fine_without_an_election() -> None:
    options = ManagerOptions.load({"leader-elect-renew-deadline": "15s"}, {})
    assert not options.leader_election.leader_elect


def test_an_address_for_others_is_fine_with_tls_and_token() -> None:
    files = {"tls-cert-file": "c", "tls-private-key-file": "k", "bearer-token-file": "t"}
    options = ManagerOptions.load({"bind-address": "0.0.0.0", **files}, {})
    assert not options.serving.loopback


FLAGS = {
    "controllers": "*,-widget",
    "event-ttl": "90m",
    "leader-elect": "true",
    "secure-port": "1234",
    "widget-grace-period": "1.5s",
    "widget-eviction-rate": "0.25",
    "enable-widgets": "false",
}


def test_the_environment_reproduces_the_options() -> None:
    options = ManagerOptions.load(FLAGS, {})
    again = ManagerOptions.load({}, options.to_environment())
    assert [value for _, value in again.values()] == [value for _, value in options.values()]


def test_the_environment_wins_over_what_the_child_inherits() -> None:
    inherited = {"KCM_SECURE_PORT": "5", "KCM_CONFIG": "/nowhere"}
    child = {**inherited, **ManagerOptions.load({}, {}).to_environment()}
    assert ManagerOptions.load({}, child).serving.secure_port == 10257


def test_the_configuration_file_reproduces_the_options(tmp_path: Path) -> None:
    import json

    options = ManagerOptions.load(FLAGS, {})
    path = tmp_path / "c.yaml"
    path.write_text(json.dumps(options.to_config()))
    again = ManagerOptions.load({"config": str(path)}, {})
    assert [value for _, value in again.values()] == [value for _, value in options.values()]


@pytest.mark.parametrize("way", ["flag", "environment", "config"])
def test_a_controller_module_brings_its_own_flags(tmp_path: Path, way: str) -> None:
    module = tmp_path / f"own_{way}.py"
    module.write_text(
        "from pydantic import Field\n"
        "from kcm.reconcile.contract import Controller, Options\n"
        "class Mine(Options):\n"
        "    my_limit: int = Field(default=1, description='Limit')\n"
        "class Own(Controller):\n"
        "    name, short_name, options_type = 'own-controller', 'own', Mine\n"
    )
    flags, environ, body = {}, {}, "ownController: {myLimit: 9}\n"
    if way == "flag":
        flags = {"controller-module": str(module)}
    elif way == "environment":
        environ = {"KCM_CONTROLLER_MODULE": str(module)}
    else:
        body += f"generic: {{controllerModules: ['{module}']}}\n"
    options = ManagerOptions.load({**flags, "config": config(tmp_path, body)}, environ)
    assert options.controllers["own-controller"].model_dump() == {"my_limit": 9}
    own = next(kind for kind in options.types() if kind.name == "own-controller")
    assert isinstance(options.of(own), own.options_type)  # the file is executed once


def test_the_resync_period_is_drawn_between_once_and_twice() -> None:
    options = ManagerOptions.load({"min-resync-period": "10s"}, {})
    drawn = {options.resync_period() for _ in range(50)}
    assert len(drawn) > 1
    assert all(10 <= period <= 20 for period in drawn)


def test_two_controllers_may_share_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = (RootCACertPublisher, ServiceAccountTokenController)
    monkeypatch.setattr("kcm.options.manager.controller_types", lambda modules=(): kinds)
    options = ManagerOptions.load({"root-ca-file": "/ca.crt"}, {})
    for kind in kinds:
        assert options.of(kind).model_dump()["root_ca_file"] == "/ca.crt"
    assert options.to_environment()["KCM_ROOT_CA_FILE"] == "/ca.crt"
