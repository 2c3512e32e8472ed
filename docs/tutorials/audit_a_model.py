# %% [markdown]
# # Audit a model
#
# Accuracy counts mistakes; an audit says how bad they are, whether the probabilities can be trusted, and what better
# decisions are worth, without training anything. You need the true classes and the probabilities (or logits) of samples
# that the model was not trained on. The model may come from any library; this one is logistic regression on 100 of
# scikit-learn's handwritten digits.

# %%
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import labelkin

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, train_size=100, random_state=0, stratify=y)
model = LogisticRegression(max_iter=500).fit(X_train, y_train)
probs = model.predict_proba(X_test)

# %% [markdown]
# ## The audit
#
# The tree groups digits by shape. Without a tree the audit still has accuracy, calibration and the confusions.

# %%
tree = labelkin.Taxonomy.from_nested(
    {"loop": {"one": ["0", "6", "9"], "two": ["8"]}, "open": {"curved": ["2", "3", "5"], "straight": ["1", "4", "7"]}}
)
audit = labelkin.audit_predictions(
    {"target": y_test, "probs": probs},
    classes=[str(digit) for digit in model.classes_],
    taxonomy=tree,
)
print(audit)

# %% [markdown]
# ## The numbers
#
# Every number of the text is an attribute; `labelkin audit --json` writes the same.

# %%
print(f"severity of mistakes: {audit.hierarchy.severity:.3f}")
print(f"accuracy: {audit.basics.accuracy:.3f}")

# %% [markdown]
# ## Next
#
# - [Audit any model](../audit.md) explains each section, the file formats and `--html`.
# - [Make an existing model's decisions cheaper](cheaper_decisions.py) shows how decisions by expected cost are made.
# - Costs of your own change the headline: [costs](../how-to/costs.md).
