"""Porter's stemmer: English endings cut off by rules, so that the forms of a word become one.

    a word is [C](VC)^m[V], C and V runs of consonants and vowels; m, its measure, says how much is left of it
    1   plurals, -ed, -ing       caresses -> caress, ponies -> poni, hopping -> hop, falling -> fall, happy -> happi
    2   double endings           relational -> relate, if the measure of what is left is above 0
    3   -icate, -ful, -ness …    triplicate -> triplic, hopeful -> hope
    4   the last ending          revival -> reviv, adjustment -> adjust, if the measure is above 1
    5   a last e, a double l     probate -> probat, controll -> control

The result is a label, not always a word, and stemming a stem may cut again. DLD 6.3 names stemming only; the rules are
those that Porter published in 1980.
"""

from __future__ import annotations

import re

STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "abli": "able", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
}  # fmt: skip
STEP_3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti",
    "ous", "ive", "ize",
)  # fmt: skip


def shape(word: str) -> str:
    """c for a consonant, v for a vowel; y is a vowel after a consonant."""
    found = ""
    for i, letter in enumerate(word):
        vowel = letter in "aeiou" or (letter == "y" and i > 0 and found[-1] == "c")
        found += "v" if vowel else "c"
    return found


def measure(word: str) -> int:
    """m of [C](VC)^m[V]."""
    return len(re.findall("v+c+", shape(word)))


def ends_double(word: str) -> bool:
    """Ends with the same consonant twice."""
    return len(word) > 1 and word[-1] == word[-2] and shape(word)[-1] == "c"


def ends_cvc(word: str) -> bool:
    """Ends with consonant, vowel, consonant, the last not w, x or y: hop, but not snow."""
    return shape(word).endswith("cvc") and word[-1] not in "wxy"


def plural(word: str) -> str:
    """Step 1a."""
    for ending, instead in (("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")):
        if word.endswith(ending):
            return word.removesuffix(ending) + instead
    return word


def past_and_progressive(word: str) -> str:
    """Step 1b."""
    if word.endswith("eed"):
        return word[:-1] if measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        rest = word.removesuffix(ending)
        if word.endswith(ending) and "v" in shape(rest):
            if rest.endswith(("at", "bl", "iz")):
                return rest + "e"
            if ends_double(rest) and rest[-1] not in "lsz":
                return rest[:-1]
            return rest + "e" if measure(rest) == 1 and ends_cvc(rest) else rest
    return word


def y_to_i(word: str) -> str:
    """Step 1c."""
    return word[:-1] + "i" if word.endswith("y") and "v" in shape(word[:-1]) else word


def exchange_ending(word: str, table: dict[str, str]) -> str:
    """Steps 2 and 3: the longest ending of the table, if the measure of the rest is above 0."""
    for ending in sorted(table, key=len, reverse=True):
        if word.endswith(ending):
            rest = word.removesuffix(ending)
            return rest + table[ending] if measure(rest) > 0 else word
    return word


def last_ending(word: str) -> str:
    """Step 4: the longest ending, if the measure of the rest is above 1; -ion only after s or t."""
    for ending in sorted(STEP_4, key=len, reverse=True):
        if word.endswith(ending):
            rest = word.removesuffix(ending)
            return rest if measure(rest) > 1 and (ending != "ion" or rest.endswith(("s", "t"))) else word
    return word


def tidy(word: str) -> str:
    """Step 5: a last e, and a double l."""
    if word.endswith("e"):
        rest = word[:-1]
        if measure(rest) > 1 or (measure(rest) == 1 and not ends_cvc(rest)):
            word = rest
    return word[:-1] if measure(word) > 1 and word.endswith("ll") else word


def stem(word: str) -> str:
    """The stem of a lower-case English word; words of one or two letters stay."""
    if len(word) <= 2:
        return word
    word = y_to_i(past_and_progressive(plural(word)))
    return tidy(last_ending(exchange_ending(exchange_ending(word, STEP_2), STEP_3)))
