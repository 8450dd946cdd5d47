"""What `descend plan` says of a run before it starts: its data, and what it will cost."""

from __future__ import annotations

import base64
from typing import Any

from descend.engine.progress import clock
from descend.web.markup import Html, html, join
from descend.web.parts import make_card, make_figures, make_note, make_table


def draw_plan(found: dict[str, Any], sheet: bytes = b"") -> Html:
    """Time, memory and size in large letters, the facts of the data, its first images, and how it could be shorter."""
    threads = "1 thread" if found["threads"] == 1 else f"{found['threads']} threads"
    figures = make_figures((
        (clock(found["total_seconds"]), "", f"for {found['steps']:,} steps"),
        (f"{found['memory_bytes'] / 1e6:,.0f}", " MB", "memory"),
        (f"{found['parameters']:,}", "", "parameters"),
        (f"{found['step_seconds'] * 1000:.1f}", " ms", f"a step, {threads} on {found['device']}"),
        (f"{found['checkpoint_bytes'] / 1e6:,.1f}", " MB", "a checkpoint"),
    ))  # fmt: skip
    facts = make_card("The data", make_table(("", ""), [[name, show(value)] for name, value in found["data"].items()]))
    advice = [make_note(f"Shorter: {line}") for line in found["advice"]]
    return join([figures, facts, draw_sheet(sheet) if sheet else None, *advice])


def draw_sheet(image: bytes) -> Html:
    """The first training images with what is to be learned of them, as the model will see them."""
    source = "data:image/png;base64," + base64.b64encode(image).decode()
    alt = "training images with their classes, masks or boxes"
    return make_card("The first training images", html('<img class="sheet" src="{}" alt="{}">', source, alt))


def show(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
