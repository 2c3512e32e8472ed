# %% [markdown]
# # Make an existing model's decisions cheaper in ten lines
#
# You have a classifier, and some of its mistakes cost more than others. Keep the model, and change how its probabilities
# become decisions.
#
# The example sorts parcels by a handwritten digit: 0 to 4 are places in the country, 5 to 9 are abroad. A parcel that goes to
# the wrong place in the right one of these two parts costs 1. One for abroad that stays in the country costs 5, and one that
# leaves the country by mistake costs 20.
# The digits are scikit-learn's; the costs are made up for this example.

# %%
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

X, y = load_digits(return_X_y=True)
split = train_test_split(X, y, train_size=200, random_state=0, stratify=y)
X_train, X_test, y_train, y_test = split

abroad = np.arange(10) >= 5
# Rows are true digits, columns are answers.
costs = np.where(abroad[:, None] == abroad, 1.0, np.where(abroad[:, None], 5.0, 20.0))
np.fill_diagonal(costs, 0)

# %% [markdown]
# ## Ten lines
#
# `LeastCostClassifier` takes any scikit-learn classifier. `fit` calibrates its probabilities by cross-validation, because a
# decision by expected cost is only as good as the probabilities. `predict` returns the class with the least expected cost.

# %%
from labelkin.doors import LeastCostClassifier

model = RandomForestClassifier(random_state=0)
before = model.fit(X_train, y_train).predict(X_test)
after = LeastCostClassifier(model, costs=costs).fit(X_train, y_train).predict(X_test)

for name, answers in {"most probable class": before, "least expected cost": after}.items():
    accuracy, cost = (answers == y_test).mean(), costs[y_test, answers].mean()
    print(f"{name}: accuracy {accuracy:.3f}, mean cost {cost:.3f}")

# %% [markdown]
# ## Is the difference more than chance?
#
# Both rules decide about the same parcels, so compare them parcel by parcel.

# %%
saved = costs[y_test, before] - costs[y_test, after]
margin = 1.96 * saved.std(ddof=1) / len(saved) ** 0.5
print(f"{(before != after).sum()} of {len(saved)} decisions changed")
low, high = saved.mean() - margin, saved.mean() + margin
print(f"saved per parcel: {saved.mean():.3f}, 95 % interval {low:.3f} to {high:.3f}")

# %% [markdown]
# The accuracy is a little lower, and that is the point: the rule accepts cheap mistakes to avoid expensive ones.

# %%
for name, answers in {"most probable class": before, "least expected cost": after}.items():
    paid = costs[y_test, answers]
    print(f"{name}: " + ", ".join(f"{(paid == cost).sum()} mistakes of cost {cost:g}" for cost in (1, 5, 20)))

# %% [markdown]
# ## A tree instead of a table
#
# Often nobody knows the costs, but everybody knows which classes belong together. With a tree, a mistake costs the distance
# from the true class to the answer: here 1 within a part and 2 otherwise. `mean_cost_scorer` makes a score of it for
# `cross_val_score` and `GridSearchCV`. Costs that differ by no more than a factor of two change few decisions: check what they
# save before you use them.

# %%
from labelkin.doors import mean_cost_scorer

tree = {"country": ["0", "1", "2", "3", "4"], "abroad": ["5", "6", "7", "8", "9"]}
cost = mean_cost_scorer(taxonomy=tree)
by_tree = LeastCostClassifier(model, taxonomy=tree).fit(X_train, y_train)
print(f"mean distance: {-cost(model, X_test, y_test):.3f} before, {-cost(by_tree, X_test, y_test):.3f} after")
print(f"{(by_tree.predict(X_test) != before).sum()} decisions changed")

# %% [markdown]
# ## Next
#
# - A model that must not be trained again: `LeastCostClassifier(FrozenEstimator(model), ...)`, fitted on held-out samples
#   ([other libraries](../doors.md#scikit-learn)).
# - A model from another language: [`labelkin decide`](../deciding.md) reads a table of probabilities.
# - Right, or no answer, 95 % of the time: [fallback with a guarantee](../how-to/fallback.md).
# - What the mistakes of your model are, and what better decisions are worth: [audit a model](audit_a_model.py).
