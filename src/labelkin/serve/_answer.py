"""The answer for one sample, as JSON: by each rule, with the probabilities along its path, and the likely part of the tree."""

from dataclasses import replace
from math import isnan
from typing import Any

from torch import Tensor

from labelkin import decide
from labelkin.decide import RULES, Answers, Rule, RuleName
from labelkin.runs import Prediction, Predictor, reasons_of_run

LEAST_SHOWN, MOST_SHOWN, BEST = 0.005, 40, 5


class Answering:
    """Answers of a run for one sample at a time.

    Args:
        predictor: The run.
        rule: The rule of the answer that comes first.
    """

    def __init__(self, predictor: Predictor, rule: Rule) -> None:
        self.predictor, self.rule = predictor, rule
        others = [name for name in RULES if name != rule.name and self._applies(name)]
        # at one temperature, so that all probabilities on the page agree
        self.rules: dict[RuleName, Rule] = {
            rule.name: rule,
            **{name: replace(predictor.rule(name), temperature=rule.temperature) for name in others},
        }

    def _applies(self, name: RuleName) -> bool:
        if name == "argmax":
            return True
        return not isnan(self.rule.temperature) and (name == "crm" or not self.predictor.tree_built)

    def answer(self, inputs: Tensor) -> dict[str, Any]:
        """Return the answers for one sample (1, ...).

        The keys: `answer` by the rule of this object, `rules` by all rules that apply, `best` the most probable classes, and
        `tree` the nodes of the tree that are probable at all. Probabilities are None if the run defines none.
        """
        found = self.predictor.predict(inputs, decide=self.rule)
        probs = self.predictor.probs(found.scores, self.rule)
        assert found.nodes is not None
        if probs is None:
            answers = {self.rule.name: self._described(self.rule.name, Answers(found.nodes, found.scores[:, 0]), None)}
        else:
            answers = {name: self._described(name, rule.answer(probs), probs) for name, rule in self.rules.items()}
        return {
            "answer": answers[self.rule.name],
            "rules": answers,
            "best": self._best(found),
            "tree": self._tree(probs),
        }

    def _described(self, name: RuleName, found: Answers, probs: Tensor | None) -> dict[str, Any]:
        path, why, rule, tree = None, None, self.rules[name], self.predictor.taxonomy
        (kind,) = rule.kinds(found.nodes)
        if probs is not None:
            (why,) = reasons_of_run(self.predictor, rule, probs, found.nodes)
            if kind != "action" and not self.predictor.tree_built:
                (reason,) = decide.explain(probs, tree, found.nodes)
                path = [{"name": step.name, "probability": round(step.probability, 6)} for step in reason.path]
        return {
            "rule": name,
            "name": rule.names(found.nodes)[0],
            "kind": kind,
            "probability": None if probs is None or kind == "action" else round(float(found.probs), 6),
            "path": path,
            "why": why,
        }

    def _best(self, found: Prediction) -> list[dict[str, Any]]:
        values = found.scores if found.all_probabilities is None else found.all_probabilities
        order = values[0].argsort(descending=True, stable=True)[:BEST].tolist()
        known = found.all_probabilities is not None
        return [
            {"name": self.predictor.classes[k], "probability": round(float(values[0, k]), 6) if known else None}
            for k in order
        ]

    def _tree(self, probs: Tensor | None) -> list[dict[str, Any]] | None:
        """Return the probable nodes below the root, each before its children, the more probable of two siblings first."""
        if probs is None or self.predictor.tree_built:
            return None
        tree = self.predictor.taxonomy
        below = decide.node_probs(probs, tree)[0].tolist()
        likely = sorted(range(1, len(tree)), key=lambda node: -below[node])[:MOST_SHOWN]
        shown = {node for node in likely if below[node] >= LEAST_SHOWN}
        rows: list[dict[str, Any]] = []
        waiting = [int(child) for child in tree.children[0]]
        waiting = sorted((node for node in waiting if node in shown), key=lambda node: below[node])
        while waiting:
            node = waiting.pop()
            row = {"name": tree.names[node], "depth": int(tree.depth[node]), "probability": round(below[node], 6)}
            rows.append({**row, "kind": "class" if tree.is_leaf[node] else "ancestor"})
            children = [int(child) for child in tree.children[node] if int(child) in shown]
            waiting += sorted(children, key=lambda child: below[child])
        return rows
