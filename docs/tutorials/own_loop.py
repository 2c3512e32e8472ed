# %% [markdown]
# # Train in your own loop
#
# An objective is a `torch.nn.Module` that takes the place of the last layer and the loss. Your data, your network and
# your loop stay. This tutorial trains a small network on half of scikit-learn's handwritten digits, with cross entropy and
# with `Kin`, and compares both by the cost of calibrated decisions.

# %%
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

import labelkin
from labelkin import decide, metrics

images, digits = load_digits(return_X_y=True)
split = train_test_split(images / 16, digits, train_size=0.5, random_state=0, stratify=digits)
X_train, X_rest, y_train, y_rest = (torch.from_numpy(part) for part in split)
X_train, X_rest = X_train.float(), X_rest.float()
held, test = slice(0, 300), slice(300, None)  # of the rest: for the temperature, and for the test

# %% [markdown]
# ## The tree
#
# Digits by shape. `reorder` puts the classes in the order of the targets.

# %%
shapes = {
    "loop": {"one": ["0", "6", "9"], "two": ["8"]},
    "open": {"curved": ["2", "3", "5"], "straight": ["1", "4", "7"]},
}
tree = labelkin.Taxonomy.from_nested(shapes).reorder([str(digit) for digit in range(10)])

# %% [markdown]
# ## The loop
#
# The lines that differ from a loop with `nn.CrossEntropyLoss` have a comment.


# %%
def train(make_head, epochs=15):
    torch.manual_seed(0)
    backbone = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
    head = make_head(features=64)  # was: a linear layer and a loss
    optimizer = torch.optim.Adam([*backbone.parameters(), *head.parameters()], lr=3e-3)
    for epoch in range(epochs):
        head.begin_epoch(epoch, epochs)  # for objectives that change with the epoch
        for batch in torch.randperm(len(X_train)).split(64):
            loss = head(backbone(X_train[batch]), y_train[batch])  # was: criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    head.eval()
    with torch.no_grad():
        return head.log_probs(head(backbone(X_rest)))


heads = {
    "cross entropy": lambda features: labelkin.OneHot(tree.classes, features=features),
    "kin": lambda features: labelkin.Kin(tree, features=features),
}
found = {name: train(make_head) for name, make_head in heads.items()}

# %% [markdown]
# ## Calibrate, decide, compare
#
# One temperature per model, fitted on held-out samples; then the class of least expected distance in the tree.

# %%
distance = torch.from_numpy(tree.distance())
costs = {}
for name, log_probs in found.items():
    temperature = decide.Temperature().fit(log_probs[held], y_rest[held])
    answers = decide.least_cost(temperature.apply(log_probs[test]).softmax(-1), tree)
    costs[name] = distance[y_rest[test], answers]
    accuracy = metrics.accuracy(answers, y_rest[test]).mean
    print(f"{name}: accuracy {accuracy:.3f}, mean cost {costs[name].mean():.3f}")

# %% [markdown]
# ## Is it better?
#
# The interval is over test samples only, paired by sample. Another seed would change both models, so one seed and a few
# hundred test images do not settle it, even if the interval excludes 0.

# %%
saved = costs["cross entropy"] - costs["kin"]
margin = 1.96 * saved.std() / len(saved) ** 0.5
low, high = saved.mean() - margin, saved.mean() + margin
print(f"saved by kin: {saved.mean():.3f}, 95 % interval {low:.3f} to {high:.3f}")

# %% [markdown]
# `labelkin compare` repeats such a comparison over seeds, with intervals that cover new seeds and new samples
# ([plans](../how-to/plans.md)). [Choosing](../choosing.md) says where which objective has helped.
#
# ## Next
#
# - Networks from timm and torchvision, Lightning and transformers: [other libraries](../doors.md).
# - Samples of which you know only the group: [partial labels](../how-to/partial-labels.md).
