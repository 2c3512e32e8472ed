# %% [markdown]
# # Train on your own texts with a tree
#
# A table with a column of texts and a column of labels, and a file with the tree: this is how support tickets, intents such as
# those of CLINC150, or product descriptions come. The texts of this tutorial are on every machine: functions of Python's
# standard library, whose label is the module that they are from. The chapters of the library reference are the tree.

# %%
import csv
import json

import labelkin

library = labelkin.data.load("stdlib")
chapters = {}
for module in library.classes:
    node = library.taxonomy.node(module)
    chapters.setdefault(library.taxonomy.names[library.taxonomy.parents[node]], []).append(module)
few = {chapter: modules for chapter, modules in chapters.items() if 3 <= len(modules) <= 6}

with open("tree.json", "w") as file:
    json.dump(few, file)
kept = {module for modules in few.values() for module in modules}
with open("functions.csv", "w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["text", "module", "split"])
    for name, split in {"train": library.train, "test": library.test}.items():
        for text, target in zip(split.texts, split.targets, strict=True):
            if library.classes[target] in kept:
                table.writerow([text, library.classes[target], name])

print(f"{len(kept)} modules in {len(few)} chapters: {', '.join(few)}")

# %% [markdown]
# ## Training
#
# On the command line this is `labelkin train functions.csv --text text --label module --taxonomy tree.json --objective kin`,
# with an option for each further setting below. Texts become vectors once, here by counts of words (`hashed-code` splits
# `read_line` into two words); `encoder="minilm"` uses a pretrained model ([texts](../text.md)).

# %%
table = {"text": "text", "label": "module", "encoder": "hashed-code"}
runs = {}
for objective in ("one-hot", "kin"):
    runs[objective] = labelkin.train(
        "functions.csv",
        objective,
        taxonomy="tree.json",
        data_options=table,
        backbone="text-head-256",
        out=f"runs/{objective}",
        epochs=6,
        lr=2e-3,
        calibration=0.1,
    )
    found = runs[objective].metrics
    cost, five = found["decided_cost"], found["decided_ahd5"]
    print(f"{objective}: accuracy {found['accuracy']:.3f}, cost of an answer {cost:.3f}, of the five best {five:.3f}")

# %% [markdown]
# The cost of an answer is its distance in the tree: 0 if the module is right, 1 if only the chapter is, 2 otherwise. One seed
# does not show which objective is better; `labelkin compare` repeats this over seeds and says so with an interval.
#
# ## Answers that can be trusted
#
# A wrong module is worse than the right chapter. The audit chooses a threshold on one half of the test functions and measures
# it on the other half.

# %%
audit = labelkin.audit_predictions("runs/kin")
print(audit.advice.fallback)
for confusion in audit.worst.confusions[:3]:
    print(f"{confusion.true} taken for {confusion.predicted}: cost {confusion.cost:g}")

# %% [markdown]
# ## A new text
#
# `labelkin predict runs/kin new.csv -o predicted.csv` reads tables and folders of .txt files. `--decide fallback` names the
# chapter where the module is not sure.

# %%
import subprocess
import sys

text = "def parse_header(line):\n    name, value = line.split(':', 1)\n    return name.strip().lower(), value.strip()"
with open("new.csv", "w", newline="") as file:
    csv.writer(file).writerows([["text"], [text]])
command = ["predict", "runs/kin", "new.csv", "-o", "predicted.csv", "--decide", "fallback"]
subprocess.run([sys.executable, "-m", "labelkin", *command], check=True, capture_output=True)
with open("predicted.csv", newline="") as file:
    for row in csv.DictReader(file):
        print({name: value for name, value in row.items() if name != "text"})

# %% [markdown]
# ## Next
#
# - Other forms of trees: [trees](../how-to/trees.md). Texts without a tree: labelkin builds one from the data.
# - A guarantee for the answers: [fallback with a guarantee](../how-to/fallback.md).
# - Many classes, such as 894 industries: [many classes](../how-to/many-classes.md).
