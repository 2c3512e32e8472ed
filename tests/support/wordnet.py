"""A small WordNet database in the format of the real one."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

# words: hypernyms by first word. A bat is an animal first, a club second; a dog has two parents.
SYNSETS = {
    "entity": ([], []),
    "animal beast": (["entity"], []),
    "tool t1 t2 t3 t4 t5 t6 t7 t8 t9": (["entity"], []),
    "carnivore": (["animal"], []),
    "pet": (["animal"], []),
    "dog domestic_dog": (["carnivore", "pet"], []),
    "cat true_cat": (["carnivore"], []),
    "bat": (["animal"], []),
    "club bat": (["tool"], []),
    "Rex": ([], ["dog"]),
}


GLOSS = 'a gloss with @ 00000001 in it; "an example; of its use"'


def write_database(
    folder: Path,
    synsets: Mapping[str, tuple[list[str], list[str]]] = SYNSETS,
    glosses: Mapping[str, str] | None = None,
) -> Path:
    """`data.noun` and `index.noun` in their own formats; senses are numbered in the order of the synsets.

    Args:
        folder: Where to write them.
        synsets: The words of each synset -> hypernyms and instance hypernyms, by first word.
        glosses: First word -> gloss; without an entry the same one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    licence = "  1 This is a licence.  \n"
    lines = {}
    for words, (above, instance_of) in synsets.items():
        split = words.split()
        pointers = (
            [f"@ {{{p}}} n 0000" for p in above] + [f"@i {{{p}}} n 0000" for p in instance_of] + ["~ 00000000 n 0000"]
        )
        fields = [f"{len(split):02x}", *(f"{word} 0" for word in split), f"{len(pointers):03d}", *pointers]
        gloss = (glosses or {}).get(split[0], GLOSS)
        lines[split[0]] = f"{{own}} 05 n {' '.join(fields)} | {gloss}  \n"
    sizes = {word: len(line.format(own="0" * 8, **dict.fromkeys(lines, "0" * 8))) for word, line in lines.items()}
    starts = np.cumsum([len(licence), *sizes.values()])
    offsets = {word: f"{start:08d}" for word, start in zip(lines, starts, strict=False)}
    data = licence + "".join(line.format(own=offsets[word], **offsets) for word, line in lines.items())
    (folder / "data.noun").write_text(data)
    senses: dict[str, list[str]] = {}
    for words in synsets:
        for word in words.split():
            senses.setdefault(word.lower(), []).append(offsets[words.split()[0]])
    index = [f"{w} n {len(s)} 2 @ ~ {len(s)} 0 {' '.join(s)}  \n" for w, s in sorted(senses.items())]
    (folder / "index.noun").write_text(licence + "".join(index))
    return folder
