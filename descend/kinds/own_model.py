"""What a recipe asks of the config of a model: the fields whose sizes the data give, by the names of the house."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from descend.errors import Mistake
from descend.models import is_own


@contextmanager
def naming_field(config: object) -> Iterator[None]:
    """Inside, a field that a recipe needs and a config of the user's lacks is a mistake that names it."""
    kind = type(config)
    try:
        yield
    except AttributeError as error:
        if error.obj is not config or not is_own(kind):
            raise
        raise Mistake(name_missing(kind, str(error.name))) from error
    except TypeError as error:
        found = re.match(rf"{kind.__name__}.__init__\(\) got an unexpected keyword argument '(\w+)'", str(error))
        if not found or not is_own(kind):
            raise
        raise Mistake(name_missing(kind, found[1])) from error


def name_missing(kind: type, field: str) -> str:
    return f"--model: {kind.__name__} needs a field {field}, which this recipe reads, or sets by its data"
