from __future__ import annotations

import pytest

from kcm import errors
from kcm.cli.failures import describe, run_reporting


def test_an_api_error_reads_as_kubectl_prints_it() -> None:
    error = errors.NotFound.of("replicasets.apps", "x")
    assert describe(error) == 'Error from server (NotFound): replicasets.apps "x" not found'


def test_what_was_being_done_stands_before_the_message() -> None:
    error = errors.AlreadyExists.of("pods", "x")
    assert describe(error, 'error when creating "a.yaml"') == (
        'Error from server (AlreadyExists): error when creating "a.yaml": pods "x" already exists'
    )


def test_one_invalid_field_stands_in_one_line_and_several_in_a_list() -> None:
    one = errors.FieldError("Invalid value", "spec.replicas", -1, "must be positive")
    error = errors.Invalid([one], kind="ReplicaSet.apps", name="web")
    assert describe(error) == (
        'The ReplicaSet "web" is invalid: spec.replicas: Invalid value: -1: must be positive'
    )
    several = errors.Invalid([one, one], kind="ReplicaSet.apps", name="web")
    assert describe(several).count("\n* spec.replicas") == 2


def test_other_errors_are_plain() -> None:
    assert describe(errors.StoreUnavailable("gone")) == "error: gone"


def test_an_error_ends_with_code_1_and_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KCM_DEBUG", raising=False)

    def fail() -> None:
        raise errors.ConfigurationError("port 1 is taken")

    with pytest.raises(SystemExit) as ended:
        run_reporting(fail)
    assert ended.value.code == 1
    assert capsys.readouterr().err == "error: port 1 is taken\n"


def test_debugging_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCM_DEBUG", "1")

    def fail() -> None:
        raise errors.Conflict("x")

    with pytest.raises(errors.Conflict):
        run_reporting(fail)
