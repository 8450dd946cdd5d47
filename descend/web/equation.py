"""Equations in plain Unicode, as docstrings have them, typeset: MathML, which browsers draw by themselves.

    x_t, x_{t+1}, x², Wᵀ      scripts            x̂, x̃, x̄, ẋ      accents
    Σ_{i=1}^n x_i             a sum              √(x + ε), √d      roots
    a/b, (a + b)/(c d)        fractions          ‖x‖, |x|          norms

The signs keep their order, and only what can be read in one way is moved. A line that has prose in it, or anything that
could mean two things, is unreadable and stays the text that it was: a wrong equation is worse than a plain one.
"""

from __future__ import annotations

import re
from dataclasses import replace

from descend.web.equation_signs import CALLED, LIMITS, PAIRS, PROSE, Sign, UnreadableError, read_signs, script_of
from descend.web.markup import Html, html
from descend.web.mathml import Item, bracket, element, join_items, operator, row, stack_fractions

TELLING = frozenset("=≠≤≥<>≈∝~∈∉←→⇒⇔+−±×·⊙∘ΣΠ∫√‖_^/∂∇½")
OPERANDS = ("letter", "name", "number", "open", "root", "bar", "sum")
ALSO = {"(": "])", "[": "])"}  # intervals are open on one side: [0, 1)
MATRIX = re.compile(r"Σ(?::|⁻|\)|_k\))|\bone Σ")  # Σ is the covariance where it stands like this


def typeset(text: str, sums: bool = True) -> Html | None:
    """An equation as MathML; None where it is not one, or cannot be read for certain. Without `sums`, Σ is a matrix."""
    if not any(char in TELLING or script_of(char) for char in text):
        return None
    try:
        signs = read_signs(text)
        if all(sign.kind not in ("letter", "name") for sign in signs):
            return None
        parts = join_items(stack_fractions(Reader(signs, sums).read()))
    except UnreadableError:
        return None
    return html('<math displaystyle="true" alttext="{}">{}</math>', text, row(parts))


def typeset_block(block: str) -> Html:
    """Lines whose columns are two spaces apart. Each column is an equation or text, and begins where it did."""
    sums = not MATRIX.search(block)
    return html('<div class="math">{}</div>', [typeset_line(line, sums) for line in block.split("\n")])


def typeset_line(line: str, sums: bool) -> Html:
    found = [(match.start(), match[0]) for match in re.finditer(r"\S+(?: \S+)*", line)]
    if not found:
        return html("<div>{}</div>", "\u00a0")
    ends = [*(at for at, _ in found[1:]), 0]
    cells = [html('<span style="min-width: {}ch"></span>', found[0][0])] if found[0][0] else []
    for (at, text), end in zip(found, ends, strict=True):
        width = html(' style="min-width: {}ch"', end - at) if end else Html()
        cells.append(html("<span{}>{}</span>", width, typeset(text, sums) or text.replace("`", "")))
    return html("<div>{}</div>", cells)


class Reader:
    """Reads signs from left to right; raises UnreadableError where they could mean two things."""

    def __init__(self, signs: list[Sign], sums: bool):
        self.signs, self.sums, self.at = signs, sums, 0

    def peek(self, ahead: int = 0) -> Sign | None:
        return self.signs[self.at + ahead] if 0 <= self.at + ahead < len(self.signs) else None

    def take(self) -> Sign:
        sign = self.peek()
        if sign is None:
            raise UnreadableError("the end")
        self.at += 1
        return sign

    def is_next(self, *kinds: str, tight: bool = True) -> bool:
        sign = self.peek()
        return sign is not None and sign.kind in kinds and not (tight and sign.space)

    def read(self, closing: str = "", bar: str = "") -> list[Item]:
        """A row up to a closing bracket or bar, which is left for the caller."""
        items: list[Item] = []
        while (sign := self.peek()) is not None:
            if sign.kind == "close" and sign.text in closing:
                return items
            if bar and sign.kind == "bar" and sign.text == bar and not sign.space:
                return items
            items.append(self.item(items[-1] if items else None))
        if closing or bar:
            raise UnreadableError("no end")
        return items

    def item(self, before: Item | None) -> Item:
        """The next part of a row, with its scripts."""
        sign = self.take()
        match sign.kind:
            case "number":
                return self.scripted(Item("atom", element("mn", sign.text), sign.space, head=sign.text))
            case "letter":
                return self.scripted(Item("atom", draw_letter(sign), sign.space, head=sign.text))
            case "name":
                return self.name(sign)
            case "open":
                return self.scripted(self.group(sign))
            case "root":
                return self.root(sign)
            case "sum":
                return self.sum(sign)
            case "bar":
                return self.bar(sign, before)
            case "word":
                return Item("word", element("mtext", sign.text), sign.space)
            case "added":
                return Item("added", Html(sign.text), sign.space)
            case "relation" | "times" | "other":
                return Item(sign.kind, operator({"~": "∼"}.get(sign.text, sign.text)), sign.space)
            case "mark":
                return Item("mark", operator(sign.text, separator="true", lspace="0", rspace="0.25em"), sign.space)
            case "slash":
                apart = "0.2em" if sign.space else "0"
                return Item("slash", operator("/", stretchy="false", lspace=apart, rspace=apart), sign.space)
        raise UnreadableError(sign.text)

    def name(self, sign: Sign) -> Item:
        """A function, an abbreviation, a variable of several letters; a word of prose is unreadable."""
        text = sign.text
        short = len(text.rstrip("0123456789")) <= 2 or sum(letter.isupper() for letter in text) > 1
        if text in PROSE or (
            text not in CALLED and not short and not self.is_next("open", "lower", "under") and not self.stands_alone()
        ):
            raise UnreadableError(text)
        kind = "called" if text in CALLED or self.is_next("open") else "atom"
        slanted = len(text) == 2 and text.isalpha() and text.islower() and kind == "atom"
        drawn = html('<mi class="slanted">{}</mi>', text) if slanted else element("mi", text)
        item = self.scripted(Item(kind, drawn, sign.space, head=text), limits=text in LIMITS)
        return replace(item, kind="called") if kind == "called" or self.is_next("open") else item

    def stands_alone(self) -> bool:
        """Whether no word or letter is beside the name just read: bias² + variance."""
        before, after = self.peek(-2), self.peek()
        beside = ("name", "letter", "word", "number")
        return not (before is not None and before.kind in beside) and not (after is not None and after.kind in beside)

    def group(self, sign: Sign) -> Item:
        """Brackets and what they hold."""
        inner = row(join_items(stack_fractions(self.read(PAIRS[sign.text] + ALSO.get(sign.text, "")))) or [Html()])
        closing = self.take().text
        plain = inner if sign.text == "(" and closing == ")" else None
        return Item("atom", bracket(sign.text, inner, closing), sign.space, plain, sign.text)

    def root(self, sign: Sign) -> Item:
        """√(..) of what the brackets hold; √d of one letter or number with its lower script."""
        if self.is_next("open"):
            opening = self.take()
            held = self.group(opening)
            if held.inner is None or self.is_next("raise", "over"):
                raise UnreadableError("√")
            return Item("atom", element("msqrt", held.inner), sign.space, head="√")
        if not self.is_next("letter", "number"):
            raise UnreadableError("√")
        first = self.take()
        base = draw_letter(first) if first.kind == "letter" else element("mn", first.text)
        held = self.scripted(Item("atom", base), over=False)
        if self.is_next("letter", "number", "name", "open", "root", "raise", "over", "sum", "bar"):
            raise UnreadableError("√")
        return Item("atom", element("msqrt", held.text), sign.space, head="√")

    def sum(self, sign: Sign) -> Item:
        """Σ, Π or ∫ where something to add follows; a matrix Σ else."""
        before = self.peek(-2)  # U Σ Vᵀ: a matrix; −Σ p, (1/n) Σ x: a sum
        product = sign.space and before is not None and before.kind in ("letter", "name", "over", "prime")
        low, high, raised = self.scripts()
        after = self.peek()
        negative = low is not None and after is not None and after.text == "−"
        adds = after is not None and (after.kind in OPERANDS or negative) and not raised
        adds = adds and (low is not None or (high is None and not product)) and (self.sums or sign.text != "Σ")
        if not adds:
            return Item("atom", put_scripts(element("mi", sign.text), low, high), sign.space, head=sign.text)
        large = operator({"Σ": "∑", "Π": "∏"}.get(sign.text, sign.text), largeop="true", movablelimits="false")
        return Item("sum", put_scripts(large, low, high, limits=sign.text != "∫"), sign.space, head=sign.text)

    def bar(self, sign: Sign, before: Item | None) -> Item:
        """|x| and ‖x‖ around something; a bar that divides, as in p(x | y)."""
        after = self.peek()
        tight = after is not None and not after.space
        opens = tight and (before is None or sign.space or before.kind not in ("atom", "bar"))
        if opens:
            inner = row(join_items(stack_fractions(self.read(bar=sign.text))) or [Html()])
            self.take()
            return self.scripted(Item("atom", bracket(sign.text, inner, sign.text), sign.space, head=sign.text))
        apart = "0.25em" if sign.space and not tight else "0"
        drawn = operator(sign.text, form="infix", stretchy="false", lspace=apart, rspace=apart)
        return self.scripted(Item("bar", drawn, sign.space))

    def scripted(self, item: Item, limits: bool = False, over: bool = True) -> Item:
        """The part with what is written above and below it."""
        if not over and self.is_next("raise", "over"):
            raise UnreadableError("√")
        low, high, _ = self.scripts()
        if low is None and high is None:
            return item
        inner = None if item.kind == "atom" else item.inner
        return replace(item, text=put_scripts(item.text, low, high, limits), inner=inner)

    def scripts(self) -> tuple[Html | None, Html | None, bool]:
        """Below, above, and whether Unicode's own raised letters were among them."""
        low: Html | None = None
        high: list[Html] = []
        raised, letters, firm = False, False, True
        while self.is_next("over", "under", "raise", "lower", "prime", "star"):
            sign = self.take()
            if sign.kind in ("under", "lower"):
                if low is not None or not firm:
                    raise UnreadableError("_")
                low = self.script(sign) if sign.kind == "under" else self.argument()
            elif sign.kind == "prime":
                high.append(operator("′" * (1 if sign.text != "''" else 2)))
            elif sign.kind == "star":
                if self.is_next("letter", "number", "name", "open"):
                    raise UnreadableError("*")
                high.append(operator("∗"))
            else:
                if raised or not firm:
                    raise UnreadableError("^")
                above = self.peek()
                firm = sign.kind == "over" or above is None or self.is_firm(above)
                high.append(self.script(sign) if sign.kind == "over" else self.argument(above=True))
                raised = True
                letters = letters or sign.kind == "over"
        return low, row(high) if high else None, letters

    def is_firm(self, sign: Sign) -> bool:
        """x^C_i is x with C above and i below; x^α_i could be x to the power of α_i."""
        return sign.kind in ("open", "number") or (len(sign.text) <= 2 and sign.text.isascii() and sign.text.isupper())

    def script(self, sign: Sign) -> Html:
        return row(join_items(Reader(read_signs(sign.text), self.sums).read()))

    def argument(self, above: bool = False) -> Html:
        """What stands behind ^ or _: a sign, then brackets, a number, or letters."""
        parts: list[Html] = []
        negative = self.is_next("added", "relation")
        if negative:
            parts.append(operator(self.take().text, form="prefix", lspace="0", rspace="0"))
        if not self.is_next("open", "number", "letter", "name", "word", "star"):
            raise UnreadableError("^")
        sign = self.take()
        if sign.kind == "open":
            inner = self.read(PAIRS[sign.text])
            closing = self.take().text
            held = row(join_items(inner) or [Html()])
            return row([*parts, held if sign.text == "{" else bracket(sign.text, held, closing)])
        parts.append(draw_script(sign))
        while negative and above and self.is_next("letter", "name", "number"):  # e^−λt
            parts.append(draw_script(self.take()))
        if self.is_next("letter", "name", "number") or (negative and self.is_next("slash", "lower")):
            raise UnreadableError("^")
        return row(parts)


def draw_letter(sign: Sign) -> Html:
    drawn = element("mi", sign.text)
    return (
        html('<mover accent="true">{}<mo stretchy="false">{}</mo></mover>', drawn, sign.accent)
        if sign.accent
        else drawn
    )


def draw_script(sign: Sign) -> Html:
    """A number, letters: i j side by side in italics, a word upright."""
    if sign.kind == "number":
        return element("mn", sign.text)
    if sign.kind == "letter":
        return draw_letter(sign)
    if sign.kind == "star":
        return operator("∗")
    return (
        html('<mi class="slanted">{}</mi>', sign.text)
        if len(sign.text) == 2 and sign.text.islower()
        else element("mi", sign.text)
    )


def put_scripts(base: Html, low: Html | None, high: Html | None, limits: bool = False) -> Html:
    """Below and above a sum or a maximum, else behind it."""
    below, above, both = ("munder", "mover", "munderover") if limits else ("msub", "msup", "msubsup")
    if low is None:
        return base if high is None else element(above, base, high)
    return element(below, base, low) if high is None else element(both, base, low, high)
