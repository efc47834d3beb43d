"""The table of kube-apiserver's flags, and how they are read."""

from __future__ import annotations

import pytest

from kcm.testing.envtest.flags import ACTED_ON, FLAGS, REFUSED, FlagError, parse, show_help

ENVTEST = [  # what controller-runtime 0.24 gives
    "--allow-privileged=true",
    "--authorization-mode=RBAC",
    "--bind-address=127.0.0.1",
    "--cert-dir=/c",
    "--client-ca-file=/c/client-cert-auth-ca.crt",
    "--disable-admission-plugins=ServiceAccount",
    "--etcd-servers=http://127.0.0.1:40001",
    "--secure-port=40002",
    "--service-account-issuer=https://127.0.0.1:40002/",
    "--service-account-key-file=/c/sa-signer.crt",
    "--service-account-signing-key-file=/c/sa-signer.key",
    "--service-cluster-ip-range=10.0.0.0/24",
]


def test_all_flags_that_envtest_gives_are_acted_on_or_true_here() -> None:
    values = parse(ENVTEST)
    assert values.keys() == {
        argument[2:].partition("=")[0] for argument in ENVTEST if "privileged" not in argument
    }
    assert values["secure-port"] == "40002"


def test_the_table_has_every_flag_of_1_36_once() -> None:
    assert len(FLAGS) == 171  # of `kube-apiserver --help`, --help and --version left out
    assert all(flag.why for flag in FLAGS.values() if flag.treatment != ACTED_ON)


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["--secure-port", "1"], "secure-port", "1"),
        (["--secure_port=1"], "secure-port", "1"),
        (["--secure-port=1", "--secure-port=2"], "secure-port", "2"),
        (["--anonymous-auth"], "anonymous-auth", "true"),
        (["--anonymous-auth=false"], "anonymous-auth", "false"),
        (["--anonymous-auth=T", "--allow-privileged=1"], "anonymous-auth", "true"),
        (["--anonymous-auth=0"], "anonymous-auth", "false"),
        (
            ["--service-account-issuer=a", "--service-account-issuer=b"],
            "service-account-issuer",
            "a,b",
        ),
        (["--disable-admission-plugins=A,B", "-v4"], "disable-admission-plugins", "A,B"),
    ],
)
def test_flags_are_read_as_pflag_reads_them(arguments: list[str], name: str, value: str) -> None:
    assert parse(arguments) == {name: value}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--no-such-flag=1"], "unknown flag: --no-such-flag"),
        (["--insecure-port=0"], "unknown flag: --insecure-port"),
        (["--secure-port"], "flag needs an argument: --secure-port"),
        (["--anonymous-auth=yes"], "true or false: --anonymous-auth=yes"),
        (["--anonymous-auth="], "true or false: --anonymous-auth="),
        (["serve"], "unknown argument 'serve'"),
        (
            ["--oidc-issuer-url=https://a"],
            "--oidc-issuer-url is not supported: kcm knows users by tokens, client certificates "
            "and service accounts",
        ),
        (
            ["--allow-privileged=false"],
            "--allow-privileged=false is not supported: kcm admits privileged containers "
            "(use true)",
        ),
        (["--emulated-version=1.33"], "kcm is like Kubernetes 1.36 (use 1.36 or kube=1.36)"),
    ],
)
def test_what_is_refused_is_refused_in_a_sentence(arguments: list[str], words: str) -> None:
    with pytest.raises(FlagError) as raised:
        parse(arguments)
    assert words in str(raised.value)


def test_the_help_begins_a_line_with_each_flag_as_envtest_looks_for_them() -> None:
    lines = [line.split()[0] for line in show_help().splitlines() if line.startswith("  ")]
    assert lines == [f"--{name}" for name in FLAGS]
    assert "--insecure-port" not in lines


def test_flags_of_what_kcm_cannot_do_are_refused_and_not_ignored() -> None:
    refused = {name for name, flag in FLAGS.items() if flag.treatment == REFUSED}
    assert {"authorization-webhook-config-file", "encryption-provider-config"} <= refused
