from __future__ import annotations

import pytest

from kcm import errors
from kcm.kubelet.server.channels import StreamOptions, build_exit_status


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"output": "1"}, StreamOptions(stdout=True)),
        ({"input": "1", "output": "1", "error": "1"}, StreamOptions(True, True, True)),
        ({"stdin": "true", "stdout": "true", "stderr": "true"}, StreamOptions(True, True, True)),
        ({"output": "1", "error": "1", "tty": "1"}, StreamOptions(stdout=True, tty=True)),
    ],
)
def test_streams_are_asked_for(query: dict[str, str], expected: StreamOptions) -> None:
    assert StreamOptions.of(query) == expected


@pytest.mark.parametrize("query", [{}, {"tty": "1"}, {"error": "1", "tty": "1"}])
def test_one_stream_at_least_is_asked_for(query: dict[str, str]) -> None:
    with pytest.raises(errors.BadRequest, match="at least 1 of stdin, stdout, stderr"):
        StreamOptions.of(query)


def test_a_command_that_fails_is_told_with_its_code() -> None:
    assert build_exit_status(0)["status"] == "Success"
    status = build_exit_status(3)
    assert (status["status"], status["reason"]) == ("Failure", "NonZeroExitCode")
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
