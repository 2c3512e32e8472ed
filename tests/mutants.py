"""Small breakages of the code: the tests must go red on each.

    make mutants                             all of them
    python tests/mutants.py repel tau        those whose name contains one of these words
    python tests/mutants.py --room audit     those of one part of the package
    python tests/mutants.py --from 120       all from the 120th on, where an interrupted run stopped

First the tests that the mutants name run without a mutant, as a control: a mutant counts only if its control is green.
Each mutant is made in a temporary copy of the tree, two at a time, in a process forked from one that has imported torch. A
mutant whose text is no longer found exactly once is an error; `tests/test_mutants_fresh.py` checks that in every run of the
tests.
"""

import argparse
import os
import sys

from support.mutants_peers import PEER_MUTANTS
from support.mutants_rooms import ROOM_MUTANTS
from support.mutating import EXPECTED_ROOMS, Mutant, preload, run, select

FLAT, TREE, MIX = "test_cross_entropy.py", "test_trees_functional.py", "test_mixing.py"
EMBED, ADAPT, BASE = "test_label_embedding.py", "test_adaptive.py", "test_baselines.py"
CONTRACT = "test_contract.py"
ENDS, COMPARES, PLANS = "test_conclusion.py", "test_comparison.py", "test_plans.py"
SAMPLES, BEHAVES = "test_contract_samples.py", "test_adaptive_behaviour.py"
LEARNS, RECORDS, EMBEDS = (
    "test_mixed_learning.py",
    "test_retrospection_behaviour.py",
    "test_label_embedding_behaviour.py",
)

METHOD_MUTANTS = [
    Mutant(
        "kin: running means keep what they should give up",
        "functional/_adaptive.py",
        "(1 - momentum) * weight / counts",
        "momentum * weight / counts",
        "test_kin_means.py -k loop",
    ),
    Mutant(
        "kin: running means learn from samples that z2 gets wrong",
        "objectives/_kin.py",
        "right = (guess == batch.target).to(probs.dtype)",
        "right = torch.ones_like(probs[:, 0])",
        "test_kin_means.py -k classes_are",
    ),
    Mutant(
        "released-text: the embedding term over right tokens alone",
        "objectives/_label_embedding.py",
        "start_after=20_000, over_right=False)",
        "start_after=20_000)",
        "test_label_embedding_behaviour.py -k released",
    ),
    Mutant(
        "adaptive labels by cosines: the mean of means counts classes without samples",
        "functional/_adaptive.py",
        "middle = means.sum(0) / seen.sum().clamp_min(1)",
        "middle = means.mean(0)",
        "test_adaptive_cosine.py -k loop",
    ),
    Mutant(
        "adaptive labels by cosines: the share is there from the first epoch",
        "objectives/_adaptive.py",
        "self.progress.fill_(min(1.0, 4 * epoch / epochs))",
        "self.progress.fill_(1.0)",
        "test_adaptive_cosine.py -k loop",
    ),
    Mutant(
        "adaptive labels: options from before presets mean the new default",
        "objectives/_adaptive.py",
        'return "memory" if any(options.get(name) is not None for name in BEFORE_PRESETS) else "cosine"',
        'return "cosine"',
        "test_adaptive_cosine.py -k rule_that_options",
    ),
    Mutant(
        "runs: an earlier revision is read with the defaults of today",
        "runs/_spec.py",
        "return {**former, **options}",
        "return dict(options)",
        "test_identity.py -k before_presets",
    ),
    Mutant(
        "adaptive labels: a bad mean is kept",
        "objectives/_adaptive.py",
        "torch.where(finite_rows(updated), updated, kept).detach()",
        "updated.detach()",
        "test_objective_state.py -k recovers",
    ),
    Mutant(
        "expected distance: an inner node pays for its own height",
        "functional/_hierarchical.py",
        "own = heights[1:][columns].masked_fill(columns == target.unsqueeze(-1) - 1, 0)",
        "own = heights[1:][columns]",
        "test_expected_cost.py -k loop",
    ),
    Mutant(
        "tree terms: the weight of a term is left out of the total",
        "objectives/_tree_terms.py",
        "total = total + getattr(self, name) * terms[name]",
        "total = total + terms[name]",
        "test_tree_terms.py -k plain_loss",
    ),
    Mutant(
        "tree terms: an answer below a known inner node costs something",
        "objectives/_tree_terms.py",
        "return (rows.masked_fill(right, 0) * log_probs.exp()).sum(-1)",
        "return (rows * log_probs.exp()).sum(-1)",
        "test_tree_terms.py -k inner_node",
    ),
    Mutant(
        "kin: the embedding learns from samples whose class is unknown",
        "objectives/_kin.py",
        "right=terms.right & ~unknown",
        "right=terms.right",
        "test_kin.py -k inner_nodes",
    ),
    Mutant(
        "kin: a known inner node teaches the embedding's row of class 0",
        "objectives/_kin.py",
        "soft=terms.soft.masked_fill(unknown, 0)",
        "soft=terms.soft",
        "test_kin.py -k inner_nodes",
    ),
    Mutant(
        "kin: mixed targets teach the embedding of every class",
        "functional/_label_embedding.py",
        "taught, e, right = target @ taught, e[guess], pick(target, guess)",
        "taught, e, right = target @ taught, e[guess], torch.ones_like(target[..., 0])",
        "test_label_embedding.py -k class_probabilities",
    ),
    Mutant(
        "ancestors: the class itself counts",
        "functional/_hierarchical.py",
        "inner = torch.where(tree.leaf_class[target] < 0, target, F.pad(tree.parent, (1, 0))[target])",
        "inner = target",
        "test_ancestors.py",
    ),
    Mutant(
        "kernels: a masked node on the path is finite",
        "functional/_kernels/cpu_leaves.py",
        ".masked_fill(masked & (weight != 0), torch.inf)",
        "",
        "test_fused_dispatch.py -k masks_on_the_path",
    ),
    Mutant(
        "a masked node off the path",
        "functional/_hierarchical.py",
        "sibling_log_softmax(_floored(logits), tree)",
        "sibling_log_softmax(logits, tree)",
        "test_masks.py -k conditional-softmax",
    ),
    Mutant(
        "a state of other hyperparameters is loaded",
        "objectives/_state.py",
        'if name in theirs["options"] and theirs["options"][name] != value:',
        "if False:",
        "test_objective_signature.py -k refused",
    ),
    Mutant(
        "one-hot: sign",
        "functional/_cross_entropy.py",
        "return expected(-F.log_softmax(logits, -1), target)",
        "return expected(F.log_softmax(logits, -1), target)",
        FLAT,
    ),
    Mutant(
        "one-hot: weights ignored",
        "functional/_collectives.py",
        "return (weight * values).sum() * world_size()",
        "return values.sum() * world_size()",
        SAMPLES,
    ),
    Mutant(
        "label smoothing: true class left out",
        "functional/_cross_entropy.py",
        "spread = without_masked(log_probs, target).mean(-1)",
        "spread = log_probs.sum(-1) / (log_probs.shape[-1] - 1)",
        FLAT,
    ),
    Mutant(
        "confidence penalty: sign",
        "functional/_cross_entropy.py",
        "+ strength * mass * negative_entropy",
        "- strength * mass * negative_entropy",
        FLAT,
    ),
    Mutant(
        "infogain: transposed",
        "functional/_cross_entropy.py",
        "columns = matrix.t().to(logits.dtype)",
        "columns = matrix.to(logits.dtype)",
        FLAT,
    ),
    Mutant(
        "semantic smoothing: relation transposed",
        "relations/_targets.py",
        "return self.matrix[index]",
        "return self.matrix.t()[index]",
        "test_relations.py",
    ),
    Mutant(
        "semantic smoothing: isolated class smoothed",
        "relations/_targets.py",
        "torch.where(relation.isolated(), 0.0, moved)",
        "moved.clone()",
        "test_relations.py",
    ),
    Mutant(
        "mixed: isolated class mixed",
        "functional/_cross_entropy.py",
        "share = torch.where(known, eps, torch.zeros_like(eps)).unsqueeze(-1)",
        "share = eps.unsqueeze(-1)",
        FLAT,
    ),
    Mutant("mixed: penalty pulls to 1", "functional/_mixing.py", "(eps - 0.5).abs()", "(eps - 1.0).abs()", MIX),
    Mutant("mixed: margin forgotten", "functional/_mixing.py", "(1 - margin) / (1 +", "1 / (1 +", MIX),
    Mutant(
        "mixed: prior dropped",
        "objectives/_mixed.py",
        "self.prior * self.targets.prior()",
        "0 * self.targets.prior()",
        LEARNS,
    ),
    Mutant(
        "tree: siblings not apart",
        "functional/_tree.py",
        "F.log_softmax(take(padded, block), -1)",
        "F.logsigmoid(take(padded, block))",
        TREE,
    ),
    Mutant(
        "tree: one jump too few",
        "functional/_tree.py",
        "    for jump in tree.jumps:\n        upward",
        "    for jump in tree.jumps[:-1]:\n        upward",
        TREE,
    ),
    Mutant(
        "hierarchical: s_j off by one",
        "functional/_hierarchical.py",
        "(tree.lengths[target].unsqueeze(-1) - _steps(columns)).clamp_min(0)",
        "(tree.lengths[target].unsqueeze(-1) - _steps(columns) - 1).clamp_min(0)",
        TREE,
    ),
    Mutant(
        "hierarchical: second sum dropped",
        "functional/_hierarchical.py",
        "return _marked_path_loss(log_p, target, tree) + mass",
        "return _marked_path_loss(log_p, target, tree)",
        TREE,
    ),
    Mutant(
        "hierarchical: mass below an inner node kept",
        "functional/_hierarchical.py",
        "return mass.masked_fill(unknown, 0).sum(-1)",
        "return mass.sum(-1)",
        TREE,
    ),
    Mutant(
        "convex: depth weight forgotten",
        "functional/_hierarchical.py",
        "weights = 1 / (tree.lengths[tree.parent] + 1).to(log_p.dtype)",
        "weights = torch.ones_like(tree.parent).to(log_p.dtype)",
        TREE,
    ),
    Mutant(
        "convex: off-path reaches below the target",
        "functional/_hierarchical.py",
        "known = above(target, tree.group_parent, tree) | below(target, tree.group_parent, tree)",
        "known = above(target, tree.group_parent, tree)",
        TREE,
    ),
    Mutant(
        "conditional softmax: path cut short",
        "functional/_hierarchical.py",
        "return _steps(columns) >= tree.lengths[target].unsqueeze(-1)",
        "return _steps(columns) + 1 >= tree.lengths[target].unsqueeze(-1)",
        TREE,
    ),
    Mutant(
        "hxe: depth of the upper node",
        "functional/_hierarchical.py",
        "return _path_loss(log_p, weights[1:], target, tree)",
        "return _path_loss(log_p, weights[tree.parent], target, tree)",
        TREE,
    ),
    Mutant(
        "hxe: normalised without the root",
        "functional/_hierarchical.py",
        "weights / weights.sum() if",
        "weights / weights[1:].sum() if",
        TREE,
    ),
    Mutant(
        "label embedding: stop on E moved",
        "functional/_label_embedding.py",
        "torch.softmax(e.detach(), -1)",
        "torch.softmax(e, -1)",
        EMBED,
    ),
    Mutant(
        "label embedding: stop on z2 dropped",
        "functional/_label_embedding.py",
        "torch.softmax(z2.detach() / tau, -1)",
        "torch.softmax(z2 / tau, -1)",
        EMBED,
    ),
    Mutant(
        "label embedding: temperature dropped",
        "functional/_label_embedding.py",
        "torch.softmax(z2.detach() / tau, -1)",
        "torch.softmax(z2.detach(), -1)",
        EMBED,
    ),
    Mutant(
        "label embedding: similarity head reaches the features",
        "objectives/_label_embedding.py",
        "self.similarity_head(features.detach())",
        "self.similarity_head(features)",
        EMBEDS,
    ),
    Mutant(
        "label embedding: learns from wrong outputs",
        "objectives/_label_embedding.py",
        "embedding=total(right * terms.embedding)",
        "embedding=total(terms.embedding)",
        EMBEDS,
    ),
    Mutant(
        "compressed embedding: relu dropped",
        "functional/_label_embedding.py",
        "return F.relu(a[target] @ b)",
        "return a[target] @ b",
        EMBED,
    ),
    Mutant(
        "pretrained embedding: soft term dropped",
        "objectives/_pretrained_embedding.py",
        "return Loss(hard + soft, {",
        "return Loss(hard + 0 * soft, {",
        "test_pretrained_embedding.py",
    ),
    Mutant(
        "adaptive: squared distance",
        "functional/_adaptive.py",
        "return flat.clamp_min(FLOOR)",
        "return flat.square().clamp_min(FLOOR)",
        ADAPT,
    ),
    Mutant(
        "adaptive: same-class pairs repelled",
        "functional/_adaptive.py",
        "sums.total.sum(0).square().sum() - sums.total.square().sum()",
        "sums.total.sum(0).square().sum()",
        ADAPT,
    ),
    Mutant(
        "adaptive: leave-one-out keeps the one",
        "functional/_adaptive.py",
        "others = sums.weight[target] - weight",
        "others = sums.weight[target]",
        ADAPT,
    ),
    Mutant(
        "adaptive: absent classes forgotten",
        "objectives/_adaptive.py",
        "updated = self._blend(kept, sums.means(), sums.weight, due & sums.present)",
        "updated = self._blend(kept, sums.means(), sums.weight, due | sums.present)",
        BEHAVES,
    ),
    Mutant(
        "adaptive: memory forgotten",
        "objectives/_adaptive.py",
        "counts / (counts + self.memory)",
        "counts / (1 + self.memory)",
        BEHAVES,
    ),
    Mutant(
        "adaptive: always due",
        "objectives/_adaptive.py",
        "(step - self.warmup) % self.every == 0",
        "(step - self.warmup) % 1 == 0",
        BEHAVES,
    ),
    Mutant(
        "retrospection: tau^2 dropped",
        "functional/_cross_entropy.py",
        "share * tau**2 * divergence",
        "share * divergence",
        BASE,
    ),
    Mutant(
        "retrospection: recorded every epoch",
        "objectives/_retrospection.py",
        "self.epoch % self.every == 0",
        "self.epoch > 0",
        RECORDS,
    ),
    Mutant(
        "static labels: absolute error",
        "functional/_cross_entropy.py",
        'F.huber_loss(z, vectors, reduction="none", delta=1.0)',
        "(z - vectors).abs()",
        BASE,
    ),
    Mutant(
        "crm: costs transposed",
        "decide/_least_cost.py",
        "return probs.double() @ _checked(costs, probs)",
        "return probs.double() @ _checked(costs, probs).t()",
        "test_decide.py",
    ),
    Mutant(
        "tree costs: a correct answer costs its depth below the deepest leaf",
        "decide/_tree_sums.py",
        " - shared - probs * (deepest - depth)",
        " - shared",
        "test_tree_distances.py",
    ),
    Mutant(
        "depth distance: counted from the root",
        "structure/_distances.py",
        "return int(tree.depth.max()) - shared",
        "return np.maximum(left, right) - shared",
        "test_tree_distances.py",
    ),
    Mutant(
        "fallback: threshold ignored",
        "decide/_fallback.py",
        "torch.where(probs >= threshold, steps, 0)",
        "torch.where(probs >= 0, steps, 0)",
        "test_decide.py",
    ),
    Mutant(
        "processes: gradient not summed back",
        "functional/_collectives.py",
        "def backward(ctx: Any, gradient: Tensor) -> Tensor:\n        return _reduce(gradient)",
        "def backward(ctx: Any, gradient: Tensor) -> Tensor:\n        return gradient",
        "test_ddp.py",
    ),
    Mutant(
        "processes: local divisor",
        "functional/_collectives.py",
        "total = sum_over_processes(weight.sum().detach())",
        "total = weight.sum().detach()",
        "test_ddp.py",
    ),
    Mutant(
        "training: moments keep the file's layout",
        "training/_optimizer.py",
        "value.stride() != parameter.stride()",
        "value.stride() == parameter.stride()",
        ENDS,
    ),
    Mutant(
        "training: batch statistics kept",
        "training/_task.py",
        "norm.momentum = 0.0",
        "norm.momentum = 0.1",
        ENDS,
    ),
    Mutant(
        "final metrics: CRM reports argmax",
        "training/_final_metrics.py",
        "k=min(TOP, probs.shape[-1])).after",
        "k=min(TOP, probs.shape[-1])).before",
        ENDS,
    ),
    Mutant(
        "comparison: seeds not paired",
        "comparison/_rows.py",
        "(run, theirs[run.seed]) for run in runs if run.seed in theirs",
        "(run, reference[0]) for run in runs if run.seed in theirs",
        COMPARES,
    ),
    Mutant(
        "comparison: intervals of the bootstrap alone",
        "comparison/_statistics.py",
        "min(low, center - reach), max(high, center + reach)",
        "low, high",
        COMPARES,
    ),
    Mutant(
        "plan: the test set chooses",
        "comparison/_execute.py",
        'found.append(row["val_accuracy"])',
        'found.append(record.final["accuracy"])',
        PLANS,
    ),
    Mutant(
        "plan: the content of files is not looked at",
        "data/_fingerprint.py",
        "    if path.is_file():\n        return digest(path)",
        "    if path.is_file():\n        return data",
        "test_identity.py",
    ),
    Mutant(
        "plan: the revision is not part of a run's id",
        "runs/_identity.py",
        "return _id(spec.as_dict(), OBJECTIVES[spec.objective].revision_of(spec.options))",
        "return _id(spec.as_dict(), 1)",
        PLANS,
    ),
    Mutant(
        "store: old layouts are read as new ones",
        "runs/_run_files.py",
        'config.get("version") != RUN_LAYOUT',
        "False",
        "test_store.py",
    ),
    Mutant(
        "engines: a dead worker's run is not gone on with",
        "runs/_engines/attempt.py",
        "<= most:",
        "<= 0:",
        "test_engines.py -k dies",
    ),
    Mutant(
        "label embedding: chunks do not count where z2 is right",
        "objectives/_label_embedding_chunked.py",
        "learned /= right",
        "learned /= samples",
        "test_memory.py -k chunks_change",
    ),
    Mutant(
        "label embedding: a rest of samples is left out of the chunks",
        "objectives/_label_embedding_chunked.py",
        "for start in range(0, len(batch.target), size):",
        "for start in range(0, len(batch.target) - size + 1, size):",
        "test_kin.py -k chunks_are",
    ),
    Mutant(
        "label embedding: chunks forget what the loss is multiplied by",
        "objectives/_label_embedding_chunked.py",
        "kernels.scale(gradient, factor)",
        "pass",
        "test_memory.py -k multiplied",
    ),
    Mutant(
        "context: every run makes a discriminant analysis",
        "objectives/_context.py",
        ' and "similarity" in self._asked',
        "",
        "test_context.py",
    ),
    Mutant(
        "context: what one objective asked for is kept for the next",
        "objectives/_context.py",
        "return self._with(_asked=set())",
        "return self._with()",
        "test_context.py",
    ),
    Mutant(
        "pace: a costly save is always due",
        "training/_checkpoint.py",
        "self._cost <= CHEAP or",
        "True or",
        "test_pace.py",
    ),
    Mutant(
        "pace: a stopped run is not saved",
        "training/_loop.py",
        "self._save(needed=ended or stopped)",
        "self._save(needed=ended)",
        "test_pace.py",
    ),
    Mutant(
        "metrics: a collection takes one tree's sums for another's",
        "metrics/_torchmetrics_base.py",
        'settings = crc32(b"".join(_bytes_of(part) for part in by)).to_bytes(4, "big")',
        "settings = bytes(4)",
        "test_metrics_modules.py -k collection",
    ),
    Mutant(
        "ignored targets: they are of class 0",
        "objectives/_validation.py",
        "weights = weights.masked_fill(ignored, 0)",
        "weights = weights.masked_fill(ignored, 1)",
        "test_contract_call.py -k ignored",
    ),
    Mutant(
        "class weights: the mean is divided by the number of samples",
        "objectives/_reduction.py",
        "return weight * self._class_factor(batch, dtype)",
        "return weight",
        "test_contract_call.py -k torch",
    ),
    Mutant(
        "padding: its outputs reach the loss",
        "objectives/_validation.py",
        "return rows.masked_fill(padding.unsqueeze(-1), 0)",
        "return rows",
        "test_padding.py",
    ),
    Mutant(
        "confidence penalty: a masked class is NaN",
        "functional/_cross_entropy.py",
        "(probs * log_probs.masked_fill(is_masked(log_probs), 0)).sum(-1)",
        "(probs * log_probs).sum(-1)",
        "test_padding.py",
    ),
    Mutant(
        "plan: a folder is known by its name alone",
        "data/_fingerprint.py",
        'return f"folder:{_folder_digest(path.resolve())}"',
        "return data",
        "test_identity.py",
    ),
    Mutant(
        "evaluation: changed data are taken for what they were",
        "runs/_identity.py",
        'return config["data_id"] not in (data_id(spec, without=NOT_OF_THE_TEST_SET), data_id(spec, without=("fold",)))',
        "return False",
        "test_evaluation.py",
    ),
    Mutant(
        "comparison: a seed trained twice counts twice",
        "comparison/_summary.py",
        "kept.setdefault((record.label, record.seed, fold_of(record)), record)",
        "kept.setdefault((record.label, len(kept), fold_of(record)), record)",
        COMPARES,
    ),
    Mutant(
        "comparison: seeds that agree are proof",
        "comparison/_statistics.py",
        "spread > TIE * abs(center) else abs(center)",
        "spread > TIE * abs(center) else spread",
        COMPARES,
    ),
    Mutant(
        "ids: a setting at its default counts",
        "runs/_compatibility.py",
        "if name not in ADDED_SETTINGS or value != ADDED_SETTINGS[name]",
        "if True",
        "test_compatibility.py -k settings_that_were_added",
    ),
    Mutant(
        "ids: hashed with the new spelling of an option",
        "runs/_identity.py",
        'original_options(hashed["objective"], hashed["options"])',
        'hashed["options"]',
        "test_compatibility.py -k renamed_options",
    ),
    Mutant(
        "workspace: data are read again for every tree",
        "runs/_workspace.py",
        "like = next((known for (own, _), known in self._workspaces.items() if own == data_key), None)",
        "like = None",
        "test_workspace.py -k once",
    ),
    Mutant(
        "translation: no data_id",
        "translate/_run.py",
        '        "data_id": data_id(spec),\n',
        "",
        "test_workspace.py -k two_settings",
    ),
]


MUTANTS = [*METHOD_MUTANTS, *PEER_MUTANTS, *ROOM_MUTANTS]


def main() -> int:
    parser = argparse.ArgumentParser(description="Break the code in every way listed and see the tests go red.")
    parser.add_argument("words", nargs="*", help="run the mutants whose name contains one of these words")
    parser.add_argument("--room", action="append", default=[], choices=EXPECTED_ROOMS, help="run those of this room")
    parser.add_argument("--from", dest="first", type=int, default=1, metavar="N", help="begin with the Nth of them")
    parser.add_argument("--to", dest="last", type=int, metavar="N", help="end with the Nth of them")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="run this many at a time")
    given = parser.parse_args()
    chosen = select(MUTANTS, given.words, given.room)
    if not chosen:
        print("No mutant has such a name.")
        return 1
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: threads would not survive the forks
    preload()
    limits = {"first": given.first, "last": given.last, "workers": given.workers}
    return 1 if run(chosen, lambda line: print(line, flush=True), **limits) else 0


if __name__ == "__main__":
    sys.exit(main())
