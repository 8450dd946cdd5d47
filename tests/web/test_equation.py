"""Equations are typeset as they are meant, and stay plain where that is not certain."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from html import unescape

import pytest

from descend.catalog.claims import claims
from descend.catalog.source import forms
from descend.catalog.systems import systems
from descend.web.equation import typeset, typeset_block


def draw(text: str) -> str:
    """The equation's elements without what only places them."""
    found = typeset(text)
    assert found is not None, text
    bare = re.sub(r"<mspace[^>]*></mspace>|<math[^>]*>|</math>| [a-z]+=\"[^\"]*\"", "", found)
    return unescape(re.sub(r"</?(?:mrow|mi|mn|mo)>", "", bare))


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("x_t = y", "<msub>xt</msub>=y"),
        ("x_{t+1} = y", "<msub>xt+1</msub>=y"),
        ("x² + Wᵀ", "<msup>x2</msup>+<msup>WT</msup>"),
        ("h_v⁽ᵏ⁾ = q^C_i", "<msubsup>hv(k)</msubsup>=<msubsup>qiC</msubsup>"),
        ("W_hh h", "<msub>Whh</msub>h"),
        ("x̂ = ȳ", '<mover>x^</mover>=<mover>y¯</mover>'),
        ("f'(w*) = 0", "<msup>f′</msup>(<msup>w∗</msup>)=0"),
        ("e^{−tK} = e^−λt", "<msup>e−tK</msup>=<msup>e−λt</msup>"),
        ("Σ_{i=1}^n x_i", "<munderover>∑i=1n</munderover><msub>xi</msub>"),
        ("−Σ p log p", "−∑plogp"),
        ("∫_0^1 f dt", "<msubsup>∫01</msubsup>fdt"),
        ("max_i |x_i|", "<munder>maxi</munder>|<msub>xi</msub>|"),
        ("√(x + ε) − √d_k", "<msqrt>x+ε</msqrt>−<msqrt><msub>dk</msub></msqrt>"),
        ("‖x − z‖² = KL(p ‖ q)", "<msup>‖x−z‖2</msup>=KL(p‖q)"),
        ("p(y | x)_θ", "p<msub>(y|x)θ</msub>"),
        ("a/2σ²", "<mfrac>a2<msup>σ2</msup></mfrac>"),
        ("λ/2 ‖w‖²", "<mfrac>λ2</mfrac><msup>‖w‖2</msup>"),
        ("η m / (√v + ε)", "<mfrac>ηm<msqrt>v</msqrt>+ε</mfrac>"),
        ("a_i / Σ_j a_j", "<mfrac><msub>ai</msub><munder>∑j</munder><msub>aj</msub></mfrac>"),
        ("∂²E/∂θ_i ∂θ_j = H", "<mfrac><msup>∂2</msup>E∂<msub>θi</msub>∂<msub>θj</msub></mfrac>=H"),
        ("u ~ U[0, 1)", "u∼U[0,1)"),
        ("l-1 -> 4,096", "l−1→4,096"),
    ],
)  # fmt: skip
def test_what_is_certain_is_typeset(text: str, drawn: str) -> None:
    assert draw(text) == drawn


@pytest.mark.parametrize(
    "text",
    [
        "a / b c",  # over b, or over b c?
        "Σ_i x_i / n_i",  # the sum of quotients, or the quotient of a sum?
        "log x / n",
        "∂ log q/∂μ",
        "∂ℓ/∂ log x",
        "a/b/c",
        "a·b/c·d",
    ],
)
def test_a_slash_that_could_mean_two_things_stays(text: str) -> None:
    assert "mfrac" not in draw(text)
    assert "/" in draw(text)


@pytest.mark.parametrize("text", ["X = U Σ Vᵀ", "N(μ, Σ)", "w = Σ⁻¹ μ", "AGG = Σ"])
def test_a_matrix_is_not_a_sum(text: str) -> None:
    assert "∑" not in draw(text)


@pytest.mark.parametrize(
    "text",
    [
        "the loss falls as 1/n",  # prose
        "identity",
        "x^α_i = 1",  # the power α_i, or an index i of x?
        "√2π = 1",
        "√Σ g² + ε",
        "f(x = 1",
        "x) = (y",
        "a * b = c",
        "x_i_j = 1",
        "w^−3/2 = 1",
        "‖x = 1",
        '"ij,j->i"',
        "x_ = 1",
        "`layer` = 3",
        "é_t = 1",
    ],
)
def test_what_is_not_certain_stays_text(text: str) -> None:
    assert typeset(text) is None
    said = text.replace("`", "")  # all of it is set as code is
    assert f"<span>{said}</span>" in unescape(typeset_block(text))


def test_columns_begin_where_they_did() -> None:
    drawn = typeset_block("sigmoid     σ(x) = 1    in (0, 1)\n\n    y = x")
    assert 'style="min-width: 12ch">sigmoid<' in drawn
    assert drawn.count("<math") == 2
    assert '<div><span style="min-width: 4ch"></span><span><math' in drawn


def test_markup_in_an_equation_stays_text() -> None:
    drawn = typeset_block("p(y_<i) = <script>alert(1)</script>   x < y   a_<b>")
    assert "<script" not in drawn
    assert "<b>" not in drawn


def signs(text: str) -> Counter[str]:
    """The signs of an equation, but those that only place others."""
    changes = {
        "->": "→",
        "<-": "←",
        "=>": "⇒",
        "<=": "≤",
        "∑": "Σ",
        "∏": "Π",
        "∼": "~",
        "∗": "*",
        "'": "′",
        "-": "−",
        "...": "…",
    }
    for old, new in changes.items():
        text = text.replace(old, new)
    found = unicodedata.normalize("NFKD", text)
    return Counter(c for c in found if c not in " _^{}()√/⁄¯˙~\u00a0" and not unicodedata.combining(c))


def test_no_sign_of_the_books_equations_is_lost() -> None:
    """Over all docstrings: what is typeset has every letter, number and operator of its line, and no other."""
    claimed, cells, drawn = claims(), set(), 0
    for slug in systems():
        for code in forms(slug, claimed.get(slug, [])).standard:
            rows = [row for row in code.equation.split("\n") if row.startswith("    ")]
            cells |= {cell for row in rows for cell in re.findall(r"\S+(?: \S+)*", row)}
    for cell in sorted(cells):
        if (found := typeset(cell)) is not None:
            drawn += 1
            text = unescape(re.sub(r"<[^>]*>", "", re.sub(r'alttext="[^"]*"', "", found)))
            assert signs(text) == signs(cell), cell
    assert drawn > 1200
