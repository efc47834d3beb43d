"""Security contexts, and pods that share namespaces of the node."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import Pod
from kcm.api.core_v1.security import PodSecurityContext
from kcm.kinds.validation import validate_create
from kcm.testing import builders
from tests.unit.kinds.validation.outcomes import texts
from tests.unit.kinds.validation.podspec.faults import of_container, of_spec

ID = "must be between 0 and 2147483647, inclusive"
TYPES = 'supported values: "Localhost", "RuntimeDefault", "Unconfined"'


@pytest.mark.parametrize(
    ("context", "faults"),
    [
        ({"privileged": True, "capabilities": {"add": ["foo"], "drop": ["bar"]}}, []),
        ({"runAsUser": 1, "runAsGroup": 1, "procMount": "Default"}, []),
        ({"runAsUser": -1}, [f"runAsUser: Invalid value: -1: {ID}"]),
        ({"runAsGroup": 2**31}, [f"runAsGroup: Invalid value: {2**31}: {ID}"]),
        ({"procMount": "Unmasked"},
         ['procMount: Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`']),
        ({"procMount": "x"},
         ['procMount: Unsupported value: "x": supported values: "Default", "Unmasked"']),
        ({"seccompProfile": {"type": "Localhost"}},
         ["seccompProfile.localhostProfile: Required value: must be set when seccomp type is "
          "Localhost"]),
        ({"seccompProfile": {}},
         ["seccompProfile.type: Required value: type is required when seccompProfile is set"]),
        ({"seccompProfile": {"type": "x"}},
         [f'seccompProfile.type: Unsupported value: "x": {TYPES}']),
        ({"seccompProfile": {"type": "Localhost", "localhostProfile": "../x"}},
         ["seccompProfile.localhostProfile: Invalid value: \"../x\": must not contain '..'"]),
        ({"appArmorProfile": {"type": "Localhost", "localhostProfile": " a"}},
         ['appArmorProfile.localhostProfile: Invalid value: " a": must not be padded with '
          "whitespace"]),
        ({"appArmorProfile": {}},
         ["appArmorProfile.type: Required value: type is required when appArmorProfile is set"]),
        ({"appArmorProfile": {"type": "x"}},
         [f'appArmorProfile.type: Unsupported value: "x": {TYPES}']),
        ({"appArmorProfile": {"type": "Unconfined", "localhostProfile": "a"}},
         ['appArmorProfile.localhostProfile: Invalid value: "a": can only be set when AppArmor '
          "type is Localhost"]),
        ({"windowsOptions": {"runAsUserName": "a\\b\\c"}},
         ['windowsOptions.runAsUserName: Invalid value: "a\\\\b\\\\c": runAsUserName cannot '
          "contain more than one backslash"]),
        ({"windowsOptions": {"runAsUserName": "..."}},
         ['windowsOptions.runAsUserName: Invalid value: "...": runAsUserName\'s User cannot '
          "contain only periods or spaces"]),
        ({"windowsOptions": {"gmsaCredentialSpec": ""}},
         ['windowsOptions.gmsaCredentialSpec: Invalid value: "": gmsaCredentialSpec cannot be '
          "an empty string"]),
    ],
)  # fmt: skip
def test_contexts_of_containers(context: dict[str, Any], faults: list[str]) -> None:
    """After upstream's TestValidateSecurityContext, TestValidateAppArmorProfileField and
    TestValidateWindowsSecurityContextOptions."""
    messages = of_container(securityContext=context)
    assert [fault.removeprefix("securityContext.") for fault in messages] == faults


def test_escalation_cannot_be_off_for_privileged_containers() -> None:
    """After upstream's TestValidateSecurityContext."""
    off = {"allowPrivilegeEscalation": False}
    (privileged,) = of_container(securityContext=off | {"privileged": True})
    assert privileged.endswith(
        "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
    )
    (admin,) = of_container(securityContext=off | {"capabilities": {"add": ["CAP_SYS_ADMIN"]}})
    assert admin.endswith(
        "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
    )


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        ({"securityContext": {"fsGroup": 1, "supplementalGroups": [1], "runAsUser": 0}}, []),
        ({"securityContext": {"sysctls": [{"name": "kernel.shmmni", "value": "1"}]}}, []),
        ({"securityContext": {"sysctls": [{"name": "net/ipv4/conf/eth0.1/x", "value": "1"}]}},
         []),
        ({"securityContext": {"fsGroup": -1}},
         [f"spec.securityContext.fsGroup: Invalid value: -1: {ID}"]),
        ({"securityContext": {"supplementalGroups": [1, -1]}},
         [f"spec.securityContext.supplementalGroups[1]: Invalid value: -1: {ID}"]),
        ({"securityContext": {"fsGroupChangePolicy": "x"}},
         ['spec.securityContext.fsGroupChangePolicy: Unsupported value: "x": supported values: '
          '"Always", "OnRootMismatch"']),
        ({"securityContext": {"supplementalGroupsPolicy": "x"}},
         ['spec.securityContext.supplementalGroupsPolicy: Unsupported value: "x": supported '
          'values: "Merge", "Strict"']),
        ({"securityContext": {"seLinuxChangePolicy": "MountOption"}},
         ['spec.securityContext.seLinuxChangePolicy: Unsupported value: "MountOption": supported '
          'values: "Recursive"']),
        ({"securityContext": {"sysctls": [{"name": "i..nvalid", "value": "1"}]}},
         ['spec.securityContext.sysctls[0].name: Invalid value: "i..nvalid": must have at most '
          "253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]"
          "([-_a-z0-9]*[a-z0-9])?$"]),
        ({"securityContext": {"sysctls": [{"name": "a", "value": "1"}] * 2}},
         ['spec.securityContext.sysctls[1].name: Duplicate value: "a"']),
        ({"hostNetwork": True,
          "securityContext": {"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]}},
         ['spec.securityContext.sysctls[0].name: Invalid value: "net.core.somaxconn": may not be '
          "specified when 'hostNetwork' is true"]),
        ({"hostIPC": True,
          "securityContext": {"sysctls": [{"name": "kernel.shmall", "value": "1"}]}},
         ['spec.securityContext.sysctls[0].name: Invalid value: "kernel.shmall": may not be '
          "specified when 'hostIPC' is true"]),
        ({"shareProcessNamespace": True, "hostPID": True},
         ["spec.securityContext.shareProcessNamespace: Invalid value: true: "
          "ShareProcessNamespace and HostPID cannot both be enabled"]),
        ({"hostUsers": False, "hostNetwork": True, "hostPID": True},
         ["spec.hostNetwork: Forbidden: when `hostUsers` is false",
          "spec.HostPID: Forbidden: when `hostUsers` is false"]),
        ({"os": {"name": "linux"}, "securityContext": {"windowsOptions": {}}},
         ["spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a "
          "linux pod"]),
        ({"os": {"name": "windows"}, "securityContext": {"fsGroup": 1}, "hostPID": True},
         ["spec.securityContext.fsGroup: Forbidden: cannot be set for a windows pod",
          "spec.hostPID: Forbidden: cannot be set for a windows pod"]),
        ({"securityContext": {"windowsOptions": {"hostProcess": True}}},
         ["spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any "
          "hostProcess containers"]),
        ({"hostNetwork": True,
          "containers": [{"name": "c", "image": "i",
                          "ports": [{"containerPort": 80, "hostPort": 81}]}]},
         ["spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` "
          "when `hostNetwork` is true"]),
    ],
)  # fmt: skip
def test_contexts_of_pods(spec: dict[str, Any], faults: list[str]) -> None:
    """After upstream's TestValidatePodSpec, TestValidateSysctls, TestValidateHostUsers,
    TestValidateWindowsHostProcess and TestValidateLinuxPod."""
    assert of_spec(**spec) == faults


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        ({"dnsConfig": {"nameservers": ["127.0.0.1"], "searches": ["custom", "_sip._tcp.x.", "."],
                        "options": [{"name": "ndots", "value": "5"}]}}, []),
        ({"dnsPolicy": "None"},
         [": Required value: must provide `dnsConfig` when `dnsPolicy` is None"]),
        ({"dnsPolicy": "None", "dnsConfig": {"searches": ["a"]}},
         [".nameservers: Required value: must provide at least one DNS nameserver when "
          "`dnsPolicy` is None"]),
        ({"dnsConfig": {"nameservers": ["1.1.1.1"] * 4}},
         ['.nameservers: Invalid value: []string{"1.1.1.1", "1.1.1.1", "1.1.1.1", "1.1.1.1"}: '
          "must not have more than 3 nameservers"]),
        ({"dnsConfig": {"nameservers": ["invalid"]}},
         ['.nameservers[0]: Invalid value: "invalid": must be a valid IP address, (e.g. 10.9.8.7 '
          "or 2001:db8::ffff)"]),
        ({"dnsConfig": {"options": [{"value": "x"}]}},
         [".options[0]: Required value: must not be empty"]),
    ],
)  # fmt: skip
def test_resolvers(spec: dict[str, Any], faults: list[str]) -> None:
    """After upstream's TestValidatePodDNSConfig."""
    assert of_spec(**spec) == [f"spec.dnsConfig{fault}" for fault in faults]


@pytest.mark.parametrize(
    ("alias", "faults"),
    [
        ({"ip": "12.34.56.78", "hostnames": ["host1", "host2"]}, []),
        ({"ip": "999.999.999.999", "hostnames": ["host1"]},
         ['ip: Invalid value: "999.999.999.999": must be a valid IP address, (e.g. 10.9.8.7 or '
          "2001:db8::ffff)"]),
        ({"ip": "12.34.56.78", "hostnames": ["@#$^#@#$"]},
         ['hostnames[0]: Invalid value: "@#$^#@#$": a lowercase RFC 1123 subdomain must consist '
          "of lower case alphanumeric characters, '-' or '.', and must start and end with an "
          "alphanumeric character (e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"]),
    ],
)  # fmt: skip
def test_host_aliases(alias: dict[str, Any], faults: list[str]) -> None:
    """After upstream's TestValidatePodSpec (host aliases)."""
    messages = of_spec(hostAliases=[alias])
    assert messages == [f"spec.hostAliases[0].{fault}" for fault in faults]


SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
OF_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/c"
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"


@pytest.mark.parametrize(
    ("annotations", "fault"),
    [
        ({SECCOMP: "runtime/default", OF_CONTAINER: "localhost/a/b"}, ""),
        (
            {SECCOMP: "foo"},
            f'metadata.annotations.{SECCOMP}: Invalid value: "foo": must be a valid',
        ),
        ({SECCOMP: "localhost//a"}, "must be a relative path"),
        ({OF_CONTAINER: ""}, "must be a valid seccomp profile"),
        ({f"{APP_ARMOR}c": "unconfined"}, ""),
        ({f"{APP_ARMOR}c": "bad"}, 'invalid AppArmor profile name: "bad"'),
        ({f"{APP_ARMOR}d": ""}, 'Invalid value: "d": container not found'),
    ],
)
def test_profiles_in_annotations_are_checked(annotations: dict[str, str], fault: str) -> None:
    found = texts(validate_create(build_pod(annotations)))
    assert len(found) == bool(fault)
    assert all(fault in text for text in found)


@pytest.mark.parametrize(
    ("annotations", "context", "field"),
    [
        ({SECCOMP: "unconfined"}, {"seccompProfile": {"type": "Unconfined"}}, ""),
        (
            {SECCOMP: "unconfined"},
            {"seccompProfile": {"type": "RuntimeDefault"}},
            "spec.securityContext.seccompProfile.type: Forbidden: seccomp type",
        ),
        (
            {f"{APP_ARMOR}c": "localhost/a"},
            {"appArmorProfile": {"type": "Localhost", "localhostProfile": "b"}},
            "spec.containers[0].securityContext.appArmorProfile.localhostProfile: Forbidden: "
            "apparmor profile in annotation and field must match",
        ),
    ],
)
def test_profiles_in_annotations_are_those_of_the_fields(
    annotations: dict[str, str], context: dict[str, Any], field: str
) -> None:
    found = texts(validate_create(build_pod(annotations, securityContext=context)))
    assert len(found) == bool(field)
    assert all(text.startswith(field) for text in found)


def build_pod(annotations: dict[str, str], **spec: Any) -> Pod:
    pod = builders.pod(metadata={"annotations": annotations})
    context = PodSecurityContext.model_validate(spec.get("securityContext", {}))
    return pod.with_spec(pod.spec.replace(security_context=context))
