"""Resource quantities (`100m`, `1.5Gi`, `1e3`) with exact arithmetic.

Quantities are exact to 1n, the finest unit of Kubernetes. As upstream, parsing rounds finer values
away from zero, and formatting gives the canonical form, or the text that was given if upstream
takes it for canonical. Too large values become 2^63-1 when they
are parsed: with a binary suffix those above it, with a decimal one those from 1e30 on (upstream's
bound varies with its fast path).

Source: staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go, Kubernetes 1.33.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache, total_ordering
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

_NANO = 10**9
_MAX = (2**63 - 1) * _NANO
_MAX_EXPONENT = 30
_SHORT = 18  # digits that fit into 64 bits
_MAX_LENGTH = 256  # characters; int() takes quadratic time

_SHAPE = re.compile(r"[+-]?[0-9.]+[eEinumkKMGTP]*[-+]?[0-9]*", re.ASCII)
_PARTS = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?([eEinumkKMGTP]*[-+]?\d*)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY_SUFFIX = {power: suffix for suffix, power in _BINARY.items()}
_EXPONENT = re.compile(r"[eE]([+-]?\d{1,9})", re.ASCII)

_WRONG_SHAPE = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


class Format(Enum):
    """The family of suffixes that a quantity has as text."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@total_ordering
class Quantity:
    """An immutable amount. Quantities of the same amount are equal, whatever their suffixes."""

    __slots__ = ("_text", "format", "nanos")

    nanos: int
    format: Format
    _text: str | None

    def __init__(self, value: int | str | Quantity = 0) -> None:
        if isinstance(value, str):
            value = parse(value)
        nanos, format = (
            (value * _NANO, Format.DECIMAL_SI)
            if isinstance(value, int)
            else (value.nanos, value.format)
        )
        self._set(nanos, format, value._text if isinstance(value, Quantity) else None)

    def _set(self, nanos: int, format: Format, text: str | None = None) -> None:
        object.__setattr__(self, "nanos", nanos)
        object.__setattr__(self, "format", format)
        object.__setattr__(self, "_text", text)

    @classmethod
    def of_nanos(cls, nanos: int, format: Format = Format.DECIMAL_SI) -> Quantity:
        """Returns the quantity of `nanos` billionths."""
        quantity = cls.__new__(cls)
        quantity._set(nanos, format)
        return quantity

    @classmethod
    def of_milli(cls, milli: int) -> Quantity:
        """Returns the quantity of `milli` thousandths."""
        return cls.of_nanos(milli * 10**6)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("quantities are immutable")

    def __reduce__(self) -> tuple[Any, ...]:
        return Quantity.of_nanos, (self.nanos, self.format)

    def __copy__(self) -> Quantity:
        return self

    def __deepcopy__(self, memo: Any) -> Quantity:
        return self

    def value(self) -> int:
        """Returns the amount in whole units, rounded away from zero."""
        return _divide_away(self.nanos, _NANO)

    def milli_value(self) -> int:
        """Returns the amount in thousandths, rounded away from zero."""
        return _divide_away(self.nanos, 10**6)

    def round_up(self, power: int) -> Quantity:
        """Returns the quantity rounded away from zero to a multiple of 10**power, -9 <= power <=
        0.
        """
        step = 10 ** (9 + power)
        if self.nanos % step == 0:
            return self
        return Quantity.of_nanos(_divide_away(self.nanos, step) * step, self.format)

    def sign(self) -> int:
        """Returns -1, 0 or 1, the sign of the amount."""
        return (self.nanos > 0) - (self.nanos < 0)

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity.of_nanos(self.nanos + other.nanos, self._format_with(other))

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity.of_nanos(self.nanos - other.nanos, self._format_with(other))

    def __mul__(self, factor: int) -> Quantity:
        return Quantity.of_nanos(self.nanos * factor, self.format)

    __rmul__ = __mul__

    def __neg__(self) -> Quantity:
        return Quantity.of_nanos(-self.nanos, self.format)

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nanos == other.nanos

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __str__(self) -> str:
        text = self._text
        if text is None:
            text = _format_quantity(self)
            object.__setattr__(self, "_text", text)
        return text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def _format_with(self, other: Quantity) -> Format:
        # A zero takes the other's suffixes, so that a sum starting at 0 has those of its parts.
        return self.format if self.nanos else other.format

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _from_wire, serialization=core_schema.to_string_ser_schema(when_used="always")
        )


ResourceList = dict[str, Quantity]
"""Amounts by resource name ("cpu", "memory", ...)."""


@lru_cache(maxsize=8192)
def parse(text: str) -> Quantity:
    """Returns the quantity in a text. Raises ValueError with upstream's message."""
    if len(text) > _MAX_LENGTH or not _SHAPE.fullmatch(text):
        raise ValueError(_WRONG_SHAPE)
    match = _PARTS.fullmatch(text)
    if match is None:
        raise ValueError("unable to parse quantity's suffix")
    sign, whole, fraction, suffix = match.groups()
    fraction = fraction or ""
    if not whole and not fraction:
        raise ValueError("unable to parse numeric part of quantity")
    format, base, power = _scale(suffix)
    nanos = _nanos(int(whole + fraction or "0"), len(fraction), base, power)
    quantity = Quantity.of_nanos(-nanos if sign == "-" else nanos, format)
    if _keeps_text(whole.lstrip("0") or "0", fraction, base, power):
        object.__setattr__(quantity, "_text", text)
    return quantity


def _keeps_text(whole: str, fraction: str, base: int, power: int) -> bool:
    """Reports whether a quantity is written as it was given. Upstream takes it for canonical then.

    Not all of these texts are canonical: `+1`, `1E6` and `10.035M` stay as they are, too.
    """
    digits, scale = whole + fraction, power - len(fraction)
    if base == 2:
        is_short = len(whole) <= 14 - int(power * 3 / 10)
        return not fraction and is_short and int(whole) % 8 != 0
    if len(digits) > _SHORT or scale < -9:
        return False
    return scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


def _scale(suffix: str) -> tuple[Format, int, int]:
    if suffix in _DECIMAL:
        return Format.DECIMAL_SI, 10, _DECIMAL[suffix]
    if suffix in _BINARY:
        return Format.BINARY_SI, 2, _BINARY[suffix]
    if match := _EXPONENT.fullmatch(suffix):
        return Format.DECIMAL_EXPONENT, 10, int(match[1])
    raise ValueError("unable to parse quantity's suffix")


def _nanos(digits: int, decimals: int, base: int, power: int) -> int:
    """Returns digits x 10^-decimals x base^power in billionths, rounded up and capped."""
    if digits == 0:
        return 0
    if base == 2:
        return min(_divide_away((digits << power) * _NANO, 10**decimals), _MAX)
    magnitude = len(str(digits)) - decimals + power
    if magnitude > _MAX_EXPONENT:
        return _MAX
    shift = 9 + power - decimals
    if shift >= 0:
        return digits * int(10**shift)
    return 1 if magnitude < -9 else _divide_away(digits, int(10**-shift))


def _divide_away(number: int, divisor: int) -> int:
    quotient = -(-abs(number) // divisor)
    return quotient if number >= 0 else -quotient


def _format_quantity(quantity: Quantity) -> str:
    nanos = quantity.nanos
    if nanos == 0:
        return "0"
    if quantity.format is Format.BINARY_SI and abs(nanos) >= 1024 * _NANO and nanos % _NANO == 0:
        return _format_binary(nanos // _NANO)
    return _format_decimal(nanos, quantity.format)


def _format_binary(value: int) -> str:
    power = 0
    while value % 1024 == 0 and power < 60:
        value, power = value // 1024, power + 10
    return f"{value}{_BINARY_SUFFIX[power] if power else ''}"


def _format_decimal(nanos: int, format: Format) -> str:
    power = -9
    exponent_form = format is Format.DECIMAL_EXPONENT
    while nanos % 1000 == 0 and (exponent_form or power < 18):
        nanos, power = nanos // 1000, power + 3
    if power == 0:
        return str(nanos)
    return f"{nanos}e{power}" if exponent_form else f"{nanos}{_DECIMAL_SUFFIX[power]}"


def _from_wire(value: Any) -> Quantity:
    if isinstance(value, str):
        return parse(value.strip())
    if isinstance(value, Quantity):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return parse(repr(value))
    raise ValueError("must be a quantity, like 100m, 1.5Gi or 1e3")


def add_amounts(left: Mapping[str, Quantity], right: Mapping[str, Quantity]) -> ResourceList:
    """Returns the sums of the amounts with the same name."""
    total = dict(left)
    for name, amount in right.items():
        total[name] = total[name] + amount if name in total else amount
    return total
