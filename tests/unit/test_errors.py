"""Messages of errors."""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.errors import FieldError


def test_a_long_value_is_cut_in_a_message() -> None:
    message = str(FieldError("Invalid value", "data", "x" * 1_000_000, "is wrong"))
    assert message.startswith('data: Invalid value: "xxx')
    assert message.endswith("... (1000002 characters): is wrong")
    assert len(message) < 1_200
    assert str(FieldError("Invalid value", "data", "x" * 1_000)).endswith('x"')


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("OOM command not allowed when used memory > 'maxmemory'", errors.OutOfMemory),
        ("MISCONF Redis is configured to save RDB snapshots", errors.StorageFull),
        ("WRONGTYPE Operation against a key", errors.WrongTypeOfKey),
        ("LOADING Redis is loading the dataset in memory", errors.StoreUnavailable),
        ("MASTERDOWN Link with MASTER is down", errors.StoreUnavailable),
        ("READONLY You can't write against a read only replica.", errors.WritesRefused),
        ("NOREPLICAS Not enough good replicas to write.", errors.WritesRefused),
        ("ERR unknown command", errors.KcmError),
    ],
)
def test_what_redis_says_has_an_error_of_its_own(
    text: str, expected: type[errors.KcmError]
) -> None:
    assert type(errors.from_redis(text)) is expected
