from __future__ import annotations

import pytest

from kcm import errors
from kcm.kubelet.server.channels import Wanted, ended_with


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"output": "1"}, Wanted(stdout=True)),
        ({"input": "1", "output": "1", "error": "1"}, Wanted(True, True, True)),
        ({"stdin": "true", "stdout": "true", "stderr": "true"}, Wanted(True, True, True)),
        ({"output": "1", "error": "1", "tty": "1"}, Wanted(stdout=True, tty=True)),
    ],
)
def test_streams_are_asked_for(query: dict[str, str], expected: Wanted) -> None:
    assert Wanted.of(query) == expected


@pytest.mark.parametrize("query", [{}, {"tty": "1"}, {"error": "1", "tty": "1"}])
def test_one_stream_at_least_is_asked_for(query: dict[str, str]) -> None:
    with pytest.raises(errors.BadRequest, match="at least 1 of stdin, stdout, stderr"):
        Wanted.of(query)


def test_a_command_that_fails_is_told_with_its_code() -> None:
    assert ended_with(0)["status"] == "Success"
    status = ended_with(3)
    assert (status["status"], status["reason"]) == ("Failure", "NonZeroExitCode")
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
