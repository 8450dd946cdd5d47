"""`python -m descend` is `descend`."""

from __future__ import annotations

import sys

from descend.cli import main

sys.exit(main())
