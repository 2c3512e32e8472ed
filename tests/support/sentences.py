"""Twenty sentences and their translations, for tests that train."""

ENGLISH = """
a dog runs .
a cat sleeps .
a man eats an apple .
a woman drinks water .
the dog sleeps in the house .
the cat drinks milk .
the man runs in the park .
the woman reads a book .
two dogs play .
two cats sleep .
two men eat bread .
two women read books .
a boy throws a ball .
a girl catches the ball .
the boy eats bread .
the girl drinks milk .
a red car stands in the street .
a blue car drives .
the red ball is big .
the blue ball is small .
""".strip().splitlines()
GERMAN = """
ein hund läuft .
eine katze schläft .
ein mann isst einen apfel .
eine frau trinkt wasser .
der hund schläft im haus .
die katze trinkt milch .
der mann läuft im park .
die frau liest ein buch .
zwei hunde spielen .
zwei katzen schlafen .
zwei männer essen brot .
zwei frauen lesen bücher .
ein junge wirft einen ball .
ein mädchen fängt den ball .
der junge isst brot .
das mädchen trinkt milch .
ein rotes auto steht auf der straße .
ein blaues auto fährt .
der rote ball ist groß .
der blaue ball ist klein .
""".strip().splitlines()


def write_corpus(folder, name="train"):
    """The pair of files, as `FILE:FILE`."""
    paths = []
    for language, lines in (("en", ENGLISH), ("de", GERMAN)):
        path = folder / f"{name}.{language}"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        paths.append(str(path))
    return ":".join(paths)
