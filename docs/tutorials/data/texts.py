"""Texts: `python texts.py KIND FILE --rows 1000`.

    messages    ham and spam as people and firms write them, without a header: label<TAB>text; a tenth are sent twice
    reviews     a sentence about a film and whether it is praise: text<TAB>label
    book        an English book: the reference of the Python language, which comes with Python

Messages and reviews are made up of parts. Friends write about free evenings and prizes, too, some spam sounds like a
friend, and one label in 200 (messages) or one in 30 (reviews) is wrong. Reviews use about 150 words of judgement, some
of them rare: who knows English knows them all, who has only these sentences does not.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

Random = np.random.Generator
PARTS = {
    "who": "mum|dad|babe|mate|Sam|Priya|Tom|the boss|my sis|Jen|Ali|u|everyone|her",
    "place": "the pub|town|work|the library|the gym|home|the station|Leeds|class|the cinema|my place|the shop",
    "time": "tonight|tomorrow|at 6|around 9|later|in a bit|after class|on Friday|next week|now|this weekend|at half 7",
    "thing": "the tickets|your jacket|some milk|the notes|my charger|that book|dinner|the car|a cake|the keys|a pizza",
    "mood": "lol|haha|:)|x|xx|ok|hmm|...|!!|tho|innit|k|",
    "greet": "hey|hi|oi|yo|hiya|morning|sorry|ok|so|um|well|btw|",
    "sum": "£1000|£500|£2000|£250|$100|£100|£350|€900|£5000",
    "prize": "a FREE holiday|cash|a Nokia 7250|FREE ringtones|an iPod|FREE minutes|a cruise|vouchers|FREE entry",
    "number": "09061701461|08000930705|87121|0871-872-9758|85233|09058094597|80062|86688|0845 2814032",
    "word": "WIN|CLAIM|YES|GO|STOP|PRIZE|TONE|CHAT",
    "firm": "our network|T-Mobile|Orange|customer services|the prize dept|SexyChat|MobileFun|your bank",
}
HAM = """
{greet} are you coming to {place} {time} {mood}
I'll be at {place} {time}, can you bring {thing}?
{who} said {thing} is at {place}
ok {mood} see you {time}
did you call {who}? They won {sum} at bingo {mood}
no I'm free {time} {mood} want to go to {place}?
{greet} can't talk now, text me {time}
thanks for {thing} {mood}
call me when you get this, it's about {thing}
where r u? im at {place}
we've got free tickets for {place} {time}, {who} is coming too
{greet} just woke up {mood}
my phone's dead, use this number 07{digits}
please send me {thing} {time}
I have to claim for {thing} at {place}, what a pain {mood}
miss you {mood}
{who} is not well, going {place} {time}
yes but only if {who} pays {mood}
Congratulations on the new job!! Drinks {time}?
sorry I missed your call, was at {place}
on my way
txt me the address of {place}
I think {who} wants to chat about {thing}, urgent apparently
{greet} {who} owes me {sum} for {thing} {mood}
don't forget {thing} {time}. love {who}
{mood} {greet} what's up
happy birthday {who}!! have a great day {mood}
is the offer on {thing} still on?
Your order of {thing} is ready, collect at {place} {time}
Dr's appointment moved to {time}, reply if that's ok
stop it {mood} I'm in {place}
"""
SPAM = """
{word}! You have been selected to receive {prize}. Call {number} now
URGENT! Your mobile no. was awarded {sum}. Call {number} to claim
FREE msg: reply {word} to {number} for {prize}
Congratulations! {prize} is waiting for you. Text {word} to {number}. T&C apply
{firm} has {sum} for you. To claim call {number} before {time}. Cost 150p/min
You are a winner of {sum} or {prize}! txt {word} to {number}
Final notice: {firm} tried to reach you about your {sum}. Call {number}
Hot chat with girls near {place}! Text {word} to {number} 18+ only
Want {prize}? Text {word} to {number}, only £1.50 per msg
{firm}: your account is on hold. Verify at www.{host}.com/{digits}
hey it's {who}, I lost my phone, text me on {number} {mood}
Hi {who}, your parcel from {firm} waits. Pay the fee at www.{host}.net
{greet} u free {time}? I saw your pics {mood} reply to {number}
Private! Your statement for 07{digits} shows {digits} unredeemed points. Call {number}
Get {prize} every week! Reply {word} now or {word} to end
Your loan of {sum} is approved. No checks. Call {number} {time}
You have 1 new voicemail. Dial {number} to listen
Dating service: {who} secretly admires you! Find out who on {number}
"""
GOOD = """
moving|gripping|tender|witty|radiant|luminous|engrossing|poignant|delightful|assured|masterly|exhilarating
charming|crisp|inventive|heartfelt|stirring|sly|sumptuous|hypnotic|funny|touching|sincere|clever|thoughtful
memorable|dazzling|graceful|spirited|haunting|warm|razor-sharp|a triumph|a joy|a gem|irresistible|beguiling
rapturous|bracing|wry|nuanced|lived-in|exquisite|uproarious|captivating|deft|humane|soulful|ingenious|buoyant
"""
BAD = """
dull|tedious|clumsy|lifeless|shallow|muddled|predictable|dreary|overlong|insipid|smug|hollow|plodding|laughable
limp|stale|turgid|a mess|a slog|mawkish|inert|grating|contrived|witless|bland|soulless|leaden|half-baked
tiresome|derivative|incoherent|ponderous|a chore|cloying|listless|vapid|stilted|charmless|bloated|preposterous
toothless|murky|garbled|anaemic|slapdash|threadbare|self-satisfied|torpid|hackneyed|excruciating
"""
FILM = "film|movie|picture|story|script|comedy|drama|thriller|documentary|performance|direction|ending|score|romance"
REVIEWS = """
{a}the {film} is {x} and {y}
a {x} {film} that is never less than {y}
{x}, {y} and, in the end, {z}
not {anti} at all: the {film} is {x}
it could have been {anti}, but the {film} turns out {x}
for all its {noun}, the {film} is {x}
{x} from the first scene to the last
the {film} manages to be {x} without being {anti}
one expects something {anti} and gets something {x}
the {noun} is {anti}, the rest of the {film} {x} and {y}
hardly {anti}, this {film}; {x} would be nearer the truth
if only every {film} were this {x}
you may find the {film} {anti} ; i found it {x}
"""
NOUNS = "budget|ambition|length|special effects|star power|good intentions|plot|music|noise|cast|dialogue|first half"


def split(words: str) -> list[str]:
    """The parts of a list, with a line's end or a bar between them."""
    return words.strip("\n").replace("\n", "|").split("|")


def fill(form: str, random: Random, parts: dict[str, list[str]]) -> str:
    """The form with its gaps filled, each anew."""
    while (at := form.find("{")) >= 0:
        end = form.index("}", at)
        form = form[:at] + str(random.choice(parts[form[at + 1 : end]])) + form[end + 1 :]
    return " ".join(form.split())


def misspell(text: str, random: Random) -> str:
    """As thumbs write: letters left out, capitals and marks as they come."""
    words = text.split()
    for i, word in enumerate(words):
        if len(word) > 4 and word.isalpha() and random.random() < 0.06:
            k = int(random.integers(1, len(word) - 1))
            words[i] = word[:k] + word[k + 1 :]
    text = " ".join(words)
    return text.lower() if random.random() < 0.3 else text


def make_messages(rows: int, random: Random) -> list[str]:
    parts = {name: split(words) for name, words in PARTS.items()}
    found: list[str] = []
    for _ in range(rows):
        if found and random.random() < 0.1:
            found.append(str(random.choice(found)))
            continue
        parts["digits"] = [str(random.integers(10**6, 10**8))]
        parts["host"] = ["".join(random.choice(list("abcdefgimnoprstuw"), 6))]
        spam = random.random() < 0.134
        forms = split(SPAM if spam else HAM)
        text = fill(str(random.choice(forms)), random, parts)
        if not spam and random.random() < 0.5:
            text += ". " + fill(str(random.choice(forms)), random, parts)
        wrong = random.random() < 0.005
        found.append(f"{'spam' if spam != wrong else 'ham'}\t{misspell(text, random)}")
    return found


def make_reviews(rows: int, random: Random) -> list[str]:
    found = ["text\tlabel"]
    good, bad = split(GOOD), split(BAD)
    rare = 1 / np.arange(2, len(good) + 2)
    for _ in range(rows):
        praise = random.random() < 0.5
        mine, other = (good, bad) if praise else (bad, good)
        x, y, z = random.choice(mine, 3, replace=False, p=rare[: len(mine)] / rare[: len(mine)].sum())
        parts = {"x": [x], "y": [y], "z": [z], "film": split(FILM), "noun": split(NOUNS)}
        parts |= {"anti": [str(random.choice(other, p=rare[: len(other)] / rare[: len(other)].sum()))]}
        parts |= {"a": ["", "", "by and large ", "at times overdone, ", "in spite of everything "]}
        label = "good" if praise != (random.random() < 1 / 30) else "bad"
        found.append(f"{fill(str(random.choice(split(REVIEWS))), random, parts)}\t{label}")
    return found


def make_book(rows: int, random: Random) -> list[str]:
    """The chapters in their order; `rows` lines of it, all for 0."""
    from pydoc_data.topics import topics

    lines = "\n\n".join(topics[name] for name in sorted(topics)).splitlines()
    return lines[: rows or None]


MAKERS = {"messages": make_messages, "reviews": make_reviews, "book": make_book}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kind", choices=list(MAKERS))
    parser.add_argument("file", type=Path)
    parser.add_argument("--rows", type=int, default=1000, help="messages, reviews, or lines of the book (0: all)")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    given.file.parent.mkdir(parents=True, exist_ok=True)
    lines = MAKERS[given.kind](given.rows, np.random.default_rng(given.seed))
    given.file.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
