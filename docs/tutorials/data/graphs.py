"""Readers of a forum that nobody founded: `python graphs.py FOLDER --count 400` writes nodes.csv and edges.csv.

    nodes.csv    id, posts, hours, length (what is known of every reader), label: the topic (of one in four)
    edges.csv    source, target: who answers whom, mostly within a topic

As in real files, some lines are wrong: a reader who answers herself, and answers that stand there twice. With --plain
every topic is told, and no line is wrong.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

TOPICS = ("gardening", "chess", "cycling")
MEANS = np.array([[12.0, 3.0, 80.0], [25.0, 6.0, 140.0], [16.0, 4.0, 60.0]])
SPREAD = np.array([9.0, 3.0, 55.0])
ANSWERS, WITHIN, TOLD = 4, 0.85, 0.25


def write_forum(folder: Path, count: int, seed: int, plain: bool) -> None:
    """Both tables."""
    random = np.random.default_rng(seed)
    topic = random.integers(len(TOPICS), size=count)
    known = np.abs(random.normal(MEANS[topic], SPREAD)).round(1)
    folder.mkdir(parents=True, exist_ok=True)
    told = random.random(count) < (1 if plain else TOLD)
    names = [TOPICS[k] if say else "" for k, say in zip(topic, told, strict=True)]
    rows = [f"reader{i},{a},{b},{c},{name}" for i, ((a, b, c), name) in enumerate(zip(known, names, strict=True))]
    (folder / "nodes.csv").write_text("\n".join(["id,posts,hours,length,label", *rows]) + "\n", encoding="utf-8")
    pairs: set[tuple[int, int]] = set()
    for i in range(count):
        mates = np.flatnonzero(topic == topic[i])
        for _ in range(ANSWERS):
            j = int(random.choice(mates)) if random.random() < WITHIN else int(random.integers(count))
            if i != j:
                pairs.add((min(i, j), max(i, j)))
    lines = [f"reader{i},reader{j}" for i, j in sorted(pairs)]
    if not plain:
        lines += ["reader7,reader7", lines[0], lines[5]]
    (folder / "edges.csv").write_text("\n".join(["source,target", *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true")
    options = parser.parse_args()
    write_forum(options.folder, options.count, options.seed, options.plain)
