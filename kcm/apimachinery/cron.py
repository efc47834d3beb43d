"""The schedules of CronJobs: their grammar, and their times.

Messages and times are those of upstream's parser. A schedule describes clock times, and is due at
every moment at which the clock of its zone shows one of them. So it is not due at a time that a
clock change skips, and twice at one that is repeated. cronsim computes the clock times; since its
dialect differs, it gets plain lists of numbers.

Source: github.com/robfig/cron/v3 (parser.go, spec.go, constantdelay.go), as Kubernetes 1.33 uses
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

_YEARS = 5  # how far ahead the next time is searched
_SECOND, _DAY = timedelta(seconds=1), timedelta(days=1)
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
_LONGEST = 200  # characters of a duration, and of bad input in a message
_LONGEST_NUMBER = 19  # characters of an int64
_MOST_SECONDS = (2**63 - 1) / 1e9  # the longest duration in Go
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_DURATION = re.compile(r"(\d++(?:\.\d*+)?|\.\d++)(ns|us|µs|ms|s|m|h)")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


class ScheduleError(ValueError):
    """The schedule is invalid. The message is upstream's."""


@dataclass(frozen=True)
class _Field:
    """The range of a field's numbers, and names that stand for them, such as `jan`."""

    low: int
    high: int
    words: tuple[str, ...] = ()

    def number(self, text: str) -> int:
        word = text.lower()
        return self.words.index(word) + self.low if word in self.words else _number(text)


_FIELDS = (
    _Field(0, 59),
    _Field(0, 23),
    _Field(1, 31),
    _Field(1, 12, tuple(_MONTHS)),
    _Field(0, 6, tuple(_WEEKDAYS)),
)


@dataclass(frozen=True)
class Schedule:
    """A parsed schedule. Exactly one of `fields` and `every` is set."""

    fields: str = ""  # five lists of numbers, in the dialect of cronsim
    every: int = 0  # seconds
    zone: ZoneInfo | None = None  # None stands for UTC

    def next(self, after: datetime) -> datetime | None:
        """Returns the first time after `after` at which the schedule is due, in UTC.

        Returns None if there is none within five years.
        """
        try:
            return self._next(after.astimezone(UTC).replace(microsecond=0))
        except OverflowError:  # beyond the year 9999
            return None

    def _next(self, after: datetime) -> datetime | None:
        if self.every:
            return after + timedelta(seconds=self.every)
        while True:
            offset = self._offset(after)
            clock = self._clock_time((after + offset).replace(tzinfo=None))
            if clock is None:
                return None
            moment = clock.replace(tzinfo=UTC) - offset
            change = self._next_change(after, moment)
            if change is None:
                return moment
            # There is no match before the change. After it the clock shows another time.
            if self._is_due(change):
                return change
            after = change

    def _is_due(self, moment: datetime) -> bool:
        shown = (moment + self._offset(moment)).replace(tzinfo=None)
        return self._clock_time(shown - _SECOND) == shown

    def _clock_time(self, after: datetime) -> datetime | None:
        """Returns the next clock time, without a zone, after a clock time, None if there is
        none.
        """
        if not self.fields:
            return None
        try:
            clock_time = next(CronSim(self.fields, after), None)
        except CronSimError:  # a day that no month has
            return None
        return (
            clock_time
            if clock_time is not None and clock_time.year <= after.year + _YEARS
            else None
        )

    def _offset(self, moment: datetime) -> timedelta:
        if self.zone is None:
            return timedelta()
        return moment.astimezone(self.zone).utcoffset() or timedelta()

    def _next_change(self, after: datetime, until: datetime) -> datetime | None:
        """Returns the first moment in (after, until] at which the zone's offset from UTC changes.

        Returns None if it does not.
        """
        if self.zone is None:
            return None
        before = self._offset(after)
        for moment in _days(after, until):
            if self._offset(moment) != before:
                return self._bisect(moment - _DAY, moment, before)
        return None

    def _bisect(self, low: datetime, high: datetime, before: timedelta) -> datetime:
        while high - low > _SECOND:
            middle = low + timedelta(seconds=(high - low) // _SECOND // 2)
            low, high = (middle, high) if self._offset(middle) == before else (low, middle)
        return high


def _days(after: datetime, until: datetime) -> Iterator[datetime]:
    """Yields a moment on each day, and `until`. No zone changes its offset twice within a day."""
    moment = after + _DAY
    while moment < until:
        yield moment
        moment += _DAY
    yield until


@lru_cache(maxsize=1024)
def parse(text: str, zone: str | None = None) -> Schedule:
    """Returns the schedule in a text. Its times are those of the clock in `zone`, UTC for None.

    A zone in the text (`TZ=...`) takes precedence. Raises ScheduleError.
    """
    if not text:
        raise ScheduleError("empty spec string")
    if text.startswith(("TZ=", "CRON_TZ=")):
        name, _, text = text.partition(" ")
        zone = name.partition("=")[2]
        text = text.strip()
    place = _zone(zone)
    if text.startswith("@"):
        return _descriptor(text, place)
    return Schedule(fields=_fields(text), zone=place)


def _zone(name: str | None) -> ZoneInfo | None:
    if not name or name in ("UTC", "Local"):
        return None
    try:
        return load_zone(name)
    except ScheduleError as error:
        raise ScheduleError(f"provided bad location {name}: {error}") from None


def load_zone(name: str) -> ZoneInfo:
    """Returns a time zone by its name in the IANA database. Raises ScheduleError."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ScheduleError(f"unknown time zone {name}") from None


def _descriptor(text: str, zone: ZoneInfo | None) -> Schedule:
    if text in _DESCRIPTORS:
        return Schedule(fields=_DESCRIPTORS[text], zone=zone)
    if not text.startswith(_EVERY):
        raise ScheduleError(f"unrecognized descriptor: {text}")
    try:
        seconds = _duration(text[len(_EVERY) :])
    except ValueError as error:
        raise ScheduleError(f"failed to parse duration {text}: {error}") from None
    return Schedule(every=max(1, int(seconds)), zone=zone)


def _duration(text: str) -> float:
    if len(text) > _LONGEST:
        raise ValueError(f'time: invalid duration "{text[:_LONGEST]}"')
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    parts = _DURATION.findall(rest)
    if not parts or "".join(number + unit for number, unit in parts) != rest:
        problem = "missing unit in" if rest.replace(".", "", 1).isdecimal() else "invalid"
        raise ValueError(f'time: {problem} duration "{text}"')
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds > _MOST_SECONDS:
        raise ValueError(f'time: invalid duration "{text}"')
    return sign * seconds


def _fields(text: str) -> str:
    parts = text.split()
    if len(parts) != len(_FIELDS):
        listed = " ".join(parts)
        raise ScheduleError(f"expected exactly 5 fields, found {len(parts)}: [{listed}]")
    lists = [_list(part, field) for part, field in zip(parts, _FIELDS, strict=True)]
    return " ".join(lists) if all(lists) else ""


def _list(text: str, field: _Field) -> str:
    """Returns a field as cronsim's list of numbers.

    An unrestricted field stays `*`: if both day fields are restricted, one of them must match,
    otherwise both must.
    """
    numbers: set[int] = set()
    is_open = False
    for part in filter(None, text.split(",")):
        numbers_of_part, star = _range(part, field)
        numbers.update(numbers_of_part)
        is_open = is_open or star
    return "*" if is_open else ",".join(map(str, sorted(numbers)))


def _range(text: str, field: _Field) -> tuple[range, bool]:
    """Returns the numbers of one term, and whether it is unrestricted, as `*` and `*/1` are."""
    bounds, *steps = text.split("/")
    low, *highs = bounds.split("-")
    is_open = low in ("*", "?")
    if is_open:
        start, end = field.low, field.high
    else:
        if len(highs) > 1:
            raise ScheduleError(f"too many hyphens: {text}")
        start = field.number(low)
        end = field.number(highs[0]) if highs else start
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {text}")
    step = 1
    if steps:
        step = _number(steps[0])
        end = end if highs or is_open else field.high
    _check(text, field, start, end, step)
    return range(start, end + 1, step), is_open and step == 1


def _check(text: str, field: _Field, start: int, end: int, step: int) -> None:
    if start < field.low:
        problem = f"beginning of range ({start}) below minimum ({field.low})"
    elif end > field.high:
        problem = f"end of range ({end}) above maximum ({field.high})"
    elif start > end:
        problem = f"beginning of range ({start}) beyond end of range ({end})"
    elif step == 0:
        problem = "step of range should be a positive number"
    else:
        return
    raise ScheduleError(f"{problem}: {text}")


def _number(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        reason = f'strconv.Atoi: parsing "{text}": invalid syntax'
        raise ScheduleError(f"failed to parse int from {text}: {reason}")
    if len(text) > _LONGEST_NUMBER:
        reason = f'strconv.Atoi: parsing "{text[:_LONGEST]}": value out of range'
        raise ScheduleError(f"failed to parse int from {text[:_LONGEST]}: {reason}")
    if (number := int(text)) < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number
