"""Every file of results as tables: one a setting, all columns, with the command that made it."""

from collections.abc import Sequence

from labelkin.experiments.comparison import Comparison, by_setting, summarise, tree_in_words
from labelkin.experiments.documents.results import Results
from labelkin.experiments.table import as_markdown, verdict

HEAD = """# Results

Written by `make docs` from `results/*.json`; no number here is typed by hand. ± is the standard deviation over seeds;
"against one-hot" is in points of accuracy, run by run with the same seed, with the 95 % interval of the mean
(bootstrap, never narrower than Student's). Severity is how far up the tree truth and prediction meet, over the
mistakes alone, and AHD@5 how far the five best classes lie from the truth; lower is better, and both compare only on
one tree. CRM columns are after deciding by least expected distance in the tree, which costs nothing at test time.
"structure" is 001's correlation of label distances with the tree's (class means of the scores where an objective
learns no vectors). "front": no other is both as accurate and as mild. Seconds are those of one run beside others, and
no measure of speed.
"""


def tables(found: Sequence[Results]) -> str:
    return "\n".join([HEAD, *(_section(results) for results in found)]).rstrip("\n") + "\n"


def _section(results: Results) -> str:
    parts = [f"## {results.name}", f"{results.machine}, {results.date}."]
    if results.command:
        parts.append(f"```sh\n{results.command}\n```")
    parts += [f"Missing: {said}" for said in results.missing]
    for name, runs in by_setting(results.runs).values():
        compared = summarise(runs)
        tree = tree_in_words(runs[0].config)
        parts.append(f"### {name}\n\nThe tree: {tree}. {_verdict(compared)}")
        parts.append(as_markdown(compared))
    return "\n\n".join(parts) + "\n"


def _verdict(compared: Comparison) -> str:
    return verdict(compared) if compared.reference is not None and len(compared.rows) > 1 else ""
