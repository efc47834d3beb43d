from __future__ import annotations

import pytest

from kcm.manager.command import main
from kcm.options.commandline import _list_given, build_command, help_lines, read_given_flags
from kcm.options.flags import all_flags
from kcm.reconcile.contract import Controller

Types = tuple[type[Controller], ...]


def parse(samples: Types, *argv: str) -> dict[str, str]:
    command = build_command(argv, environ={})
    context = command.make_context("kcm manager", list(argv))
    return read_given_flags(context.params, all_flags(samples))


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ((), {}),
        (("--controllers=*,-podgc",), {"controllers": "*,-podgc"}),
        (("--controllers", "*", "--controllers", "-podgc"), {"controllers": "*,-podgc"}),
        (("--leader-elect",), {"leader-elect": "true"}),
        (("--leader-elect=false",), {"leader-elect": "false"}),
        (("--leader_elect=true",), {"leader-elect": "true"}),
        (("--leader-elect", "--secure-port=0"), {"leader-elect": "true", "secure-port": "0"}),
        (("--widget-grace-period", "1s"), {"widget-grace-period": "1s"}),
        (("--config", "f.yaml"), {"config": "f.yaml"}),
    ],
)
def test_flags_are_read_as_upstream_reads_them(
    samples: Types, argv: tuple[str, ...], expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kcm.options.manager.read_config", lambda path: {})
    assert parse(samples, *argv) == expected


def test_help_has_a_section_per_controller(samples: Types) -> None:
    text = "\n".join(help_lines(samples))
    headings = [line for line in text.splitlines() if line.endswith(" flags:")]
    assert headings == [
        "Generic flags:",
        "Leader election flags:",
        "Secure serving flags:",
        "Cloud provider flags:",
        "Widget-controller flags:",
        "Global flags:",
    ]
    assert "--widget-grace-period duration" in text
    assert "Grace (default 40s)" in text


def test_help_names_every_controller(samples: Types) -> None:
    text = " ".join(" ".join(help_lines(samples)).split())
    assert "Controllers of this kcm: gadget-controller, quiet-controller, widget-controller" in text
    assert "deployment-controller" in text
    assert "Disabled by default: bootstrap-signer-controller, quiet-controller" in text


def test_help_and_version_need_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "Widget-controller flags:" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("kcm v")


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["--controllers=foo"], 1, "not in the list of known controllers"),
        (["--bind-address=0.0.0.0"], 1, "needs --tls-cert-file"),
        (["--nope"], 2, "No such option"),
        (["--controller-module=/nowhere.py"], 1, "/nowhere.py"),
        (["surplus"], 2, "unexpected extra argument"),
    ],
)
def test_mistakes_end_with_one_clear_line(
    argv: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == code
    assert words in capsys.readouterr().err


def test_modules_of_controllers_are_read_before_flags_are_parsed() -> None:
    argv = ["--controller-module=a", "--other", "--controller_module", "b", "--controller-module"]
    assert _list_given(argv, "controller-module") == ["a", "b"]
