"""A stratified part of a set of texts in JSON lines, for what is too slow to encode whole: 4,000 + 2,000 by default.

    python benchmarks/text_part.py data/imdb data/imdb-part [--train 4000] [--test 2000]

Then `--data-dir data/imdb-part` stands for the set. The same lines come out each time.
"""

import argparse
import json
import random
from pathlib import Path


def part(lines: list[str], count: int) -> list[str]:
    """About `count` lines, of each label its share, in random order."""
    draw = random.Random(0)
    labels = [str(json.loads(line)["label"]) for line in lines]
    taken = []
    for label in sorted(set(labels)):
        mine = [line for line, own in zip(lines, labels, strict=True) if own == label]
        draw.shuffle(mine)
        taken += mine[: round(count * len(mine) / len(lines))]
    draw.shuffle(taken)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--train", type=int, default=4000)
    parser.add_argument("--test", type=int, default=2000)
    asked = parser.parse_args()
    asked.target.mkdir(parents=True, exist_ok=True)
    for name in ("train", "test"):
        with (asked.source / f"{name}.jsonl").open(encoding="utf-8") as file:
            taken = part(list(file), getattr(asked, name))
        (asked.target / f"{name}.jsonl").write_text("".join(taken), encoding="utf-8")
        print(f"{asked.target / name}.jsonl: {len(taken)} texts")


if __name__ == "__main__":
    main()
