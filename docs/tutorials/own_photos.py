# %% [markdown]
# # Train on your own photos
#
# labelkin needs one folder per class, and folders inside folders are the tree. This tutorial makes such a folder from
# Fashion-MNIST, trains on it, audits the result, and asks for decisions about new photos. These are real product photos, but
# they are gray, 28 pixels wide and only 2,000: they show how it works, not what is gained. For your own classes use photos of
# about 224 pixels and a [pretrained network](../how-to/photos.md).
#
# ## The folder
#
# `photos/train/shoes/Sandal/17.png`: the last folder is the class, and the folders above it are the tree. Without a folder
# `test`, labelkin holds out a part of the photos.

# %%
from pathlib import Path

from PIL import Image

import labelkin

garments = labelkin.data.load("fashion-mnist", subset=1 / 30)
tree = garments.taxonomy
for part, split in {"train": garments.train, "test": garments.test}.items():
    for i in range(1000 if part == "test" else len(split.targets)):
        class_name = tree.classes[split.targets[i]]
        group = tree.names[tree.parents[tree.node(class_name)]]
        folder = Path("photos", part, group, class_name.replace("/", " or "))
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(split.inputs[i, 0].numpy()).save(folder / f"{i}.png")

photos = labelkin.data.load("photos")
print(photos)
print(photos.taxonomy.show())

# %% [markdown]
# ## Training
#
# The same as `labelkin train photos --objective kin --out runs/kin --epochs 6 --lr 0.002 --calibration 0.1`. A tenth of the
# training photos is held out to calibrate the probabilities. A run is a folder with the weights, the settings and the metrics.

# %%
run = labelkin.train("photos", "kin", out="runs/kin", epochs=6, lr=2e-3, calibration=0.1)
for name in ("accuracy", "severity", "decided_cost"):
    print(f"{name}: {run.metrics[name]:.3f}")

# %% [markdown]
# `severity` is the mean distance of the mistakes in the tree: 1 is a mistake within a group, 2 one across groups.
# `decided_cost` is the mean distance of all decisions, right ones included, if the class of least expected cost is chosen.
#
# ## What to do with it
#
# An audit says what the mistakes are and which decision rule to use; `labelkin audit runs/kin --html audit.html` writes it as
# a page.

# %%
audit = labelkin.audit_predictions("runs/kin")
print(audit.advice.headline + ".")
print(audit.advice.fallback)
for confusion in audit.worst.confusions[:3]:
    print(f"{confusion.true} taken for {confusion.predicted}: {confusion.times} times")

# %% [markdown]
# ## New photos
#
# An answer whose probability is below the threshold becomes the name of its group.
# `labelkin predict runs/kin new-photos/ -o predicted.csv --decide fallback` does this for folders of files.

# %%
model = labelkin.load_run("runs/kin")
answers = model.predict(photos.test.inputs[[0, 300, 600]], decide="fallback", threshold=0.8)
for name, probability in zip(answers.classes, answers.probabilities, strict=True):
    print(f"{name}: {probability:.2f}")

# %% [markdown]
# ## Next
#
# - Is `kin` better than cross entropy on your photos? `labelkin compare photos --objectives one-hot,kin --seeds 0,1,2`
#   trains both and says so with an interval ([plans](../how-to/plans.md)).
# - Some mistakes cost more than others: [costs](../how-to/costs.md).
# - Photos of which you know only the group: [partial labels](../how-to/partial-labels.md).
# - Answers that are right 95 % of the time: [fallback with a guarantee](../how-to/fallback.md).
