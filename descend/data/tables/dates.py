"""Dates and times as inputs: when, and where in the day, the week and the year.

    elapsed     (d − μ) / σ of the days d since 1970; a gap becomes the median
    hour        sin 2πh/24, cos 2πh/24      h with its minutes: 23:30 is near 0:30
    weekday     one-hot, Monday first
    month       sin 2πm/12, cos 2πm/12      m = 0..11: December is near January
    two dates   (t − μ) / σ of the hours t from one to the other, which would vanish in the difference of two inputs

A cycle whose place never changes in the training records (the hour of plain dates) has no input. Where the date is
missing, its cycles are 0.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from descend.data.tables.records import Records
from descend.data.tables.values import Scale, quantities

Cycle = Literal["hour", "weekday", "month"]
CYCLES: tuple[Cycle, ...] = ("hour", "weekday", "month")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
THURSDAY = 3  # day 0 is 1970-01-01
SECONDS = 86400


def place_in(cycle: Cycle, days: Tensor) -> Tensor:
    """The hour 0..24, the weekday 0..6 or the month 0..11 of days since 1970 (n), to the second."""
    whole = days.mul(SECONDS).round().div(SECONDS)
    if cycle == "hour":
        return (whole - whole.floor()) * 24
    if cycle == "weekday":
        return (whole.floor() + THURSDAY) % 7
    dates = whole.floor().long().numpy().astype("datetime64[D]")
    return torch.from_numpy(dates.astype("datetime64[M]").astype(np.int64) % 12).double()


def encode_cycle(cycle: Cycle, days: Tensor) -> Tensor:
    """(n, 7) of weekdays, (n, 2) of hours or months."""
    place = place_in(cycle, days)
    if cycle == "weekday":
        return (place.long()[:, None] == torch.arange(7)).double()
    angle = 2 * math.pi * place / (24 if cycle == "hour" else 12)
    return torch.stack([angle.sin(), angle.cos()], 1)


@dataclass(frozen=True)
class Moment:
    """A column of dates or times."""

    name: str
    median: float
    mean: float
    std: float
    gaps: bool
    cycles: tuple[str, ...]
    """Of hour, weekday and month, those that differ in the training records."""
    kind: str = "date"

    @classmethod
    def fit(cls, records: Records, name: str) -> Moment:
        days = quantities(records, name, "date")
        scale = Scale.fit(days, records.where, name)
        there = days[~days.isnan()]
        cycles = tuple(cycle for cycle in CYCLES if len(place_in(cycle, there).unique()) > 1)
        return cls(name, **asdict(scale), cycles=cycles)

    @property
    def inputs(self) -> list[str]:
        found = [self.name, f"{self.name} is missing"] if self.gaps else [self.name]
        for cycle in self.cycles:
            ways = WEEKDAYS if cycle == "weekday" else (f"{cycle}, sine", f"{cycle}, cosine")
            found += [f"{self.name}: {way}" for way in ways]
        return found

    def encode(self, records: Records) -> Tensor:
        """(n, inputs)"""
        days = quantities(records, self.name, "date")
        gone = days.isnan()
        filled = days.nan_to_num(nan=self.median)
        found = [((filled - self.mean) / self.std)[:, None]]
        if self.gaps:
            found.append(gone.double()[:, None])
        found += [encode_cycle(cycle, filled) * ~gone[:, None] for cycle in CYCLES if cycle in self.cycles]
        return torch.cat(found, 1)


@dataclass(frozen=True)
class Elapsed:
    """The time from one column of dates to the next, in hours."""

    name: str
    since: str
    until: str
    median: float
    mean: float
    std: float
    gaps: bool
    kind: str = "elapsed time"

    @classmethod
    def fit(cls, records: Records, since: str, until: str) -> Elapsed | None:
        """None where the time never changes, or is never known."""
        hours = elapsed_hours(records, since, until)
        if len(hours[~hours.isnan()].unique()) < 2:
            return None
        name = f"hours from {since} to {until}"
        return cls(name, since, until, **asdict(Scale.fit(hours, records.where, name)))

    @property
    def inputs(self) -> list[str]:
        return [self.name, f"{self.name} is missing"] if self.gaps else [self.name]

    def encode(self, records: Records) -> Tensor:
        """(n, 1), or (n, 2) with the gaps."""
        hours = elapsed_hours(records, self.since, self.until)
        x = (hours.nan_to_num(nan=self.median) - self.mean) / self.std
        return torch.stack([x, hours.isnan().double()], 1) if self.gaps else x[:, None]


def elapsed_hours(records: Records, since: str, until: str) -> Tensor:
    """Hours (n) to the millisecond, nan where one of the dates is missing."""
    days = quantities(records, until, "date") - quantities(records, since, "date")
    return (days * SECONDS * 1000).round() / (3600 * 1000)
