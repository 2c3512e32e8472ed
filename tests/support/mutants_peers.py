"""Mutants of the methods from the field."""

from support.mutating import Mutant

PEER_MUTANTS = [
    Mutant(
        "haframe: the offset is that of the simplex",
        "functional/_frames.py",
        "max(-1.0, -1.0 / (total - 1.0))",
        "max(-1.0, -1.0 / (len(decay) - 1.0))",
        "test_frames.py -k offset",
    ),
    Mutant(
        "haframe: the frame depends on the order of the eigenvectors",
        "functional/_frames.py",
        "(axes * roots) @ axes.T",
        "axes * roots",
        "test_frames.py -k permuted",
    ),
    Mutant(
        "haframe: soft targets forget how far their classes lie apart",
        "functional/_frames.py",
        "+ target @ similarity.square().sum(-1)",
        "+ (target @ similarity).square().sum(-1)",
        "test_frames.py -k haframe_is_the_loop",
    ),
    Mutant(
        "hierarchical ensemble: parents count twice",
        "objectives/_hierarchical_ensemble.py",
        "joint = own + F.log_softmax(coarse, -1)[",
        "joint = own + 2 * F.log_softmax(coarse, -1)[",
        "test_hierarchical_ensemble.py -k the_loops",
    ),
    Mutant(
        "hierarchical ensemble: the loss of the parents has no weight",
        "objectives/_hierarchical_ensemble.py",
        "parents = self.coarse * cross_entropy",
        "parents = cross_entropy",
        "test_hierarchical_ensemble.py -k the_loops",
    ),
    Mutant(
        "bilt: the corrections have a diagonal",
        "objectives/_bilt.py",
        "delta = of_level * (1 - own)",
        "delta = of_level",
        "test_bilt.py -k the_loop or diagonal",
    ),
    Mutant(
        "bilt: columns of decisions and truths are exchanged",
        "functional/_bilt.py",
        "(beta * delta - costs).T",
        "(beta * delta - costs)",
        "test_bilt.py -k the_loop",
    ),
    Mutant(
        "bilt: all levels weigh the same",
        "objectives/_bilt.py",
        "math.exp(-alpha * (",
        "math.exp(-0 * (",
        "test_bilt.py -k the_loss_is_the_loop",
    ),
    Mutant(
        "tree soft labels: the distance is always the height",
        "objectives/_tree_soft_labels.py",
        "beta=beta, distance=distance, structured=True)",
        "beta=beta, structured=True)",
        "test_tree_soft_labels.py -k the_loop",
    ),
    Mutant(
        "tree soft labels: nodes have the values of their parents",
        "objectives/_tree.py",
        "self.tree())[..., 1:]",
        "self.tree())[..., :-1]",
        "test_tree_soft_labels.py -k nodes",
    ),
    Mutant(
        "hier-cos: a level that the class does not reach costs nothing",
        "functional/_hier_cos.py",
        "1 + sums - 2 * along(directions), sizes)",
        "1 + sums - 2 * along(directions), 0.0)",
        "test_hier_cos.py -k the_loop",
    ),
    Mutant(
        "hier-cos: the top of a path weighs most",
        "functional/_hier_cos.py",
        "torch.exp(2 / left.clamp_min(1).to(dtype))",
        "torch.exp(2 * left.clamp_min(1).to(dtype))",
        "test_hier_cos.py -k the_loop or weights",
    ),
    Mutant(
        "hops: ranks of one distance weigh the same",
        "metrics/_hops.py",
        "start + along * (end - start)",
        "start",
        "test_hops.py -k the_loop",
    ),
    Mutant(
        "hops: the last rank does not fall to 0",
        "metrics/_hops.py",
        "torch.where(expected == last, 0.0, start / 2)",
        "start / 2",
        "test_hops.py -k the_loop",
    ),
    Mutant(
        "online smoothing: wrong samples count",
        "objectives/_online_smoothing.py",
        "(outputs.argmax(-1) == batch.target) & sound.squeeze(-1)",
        "sound.squeeze(-1)",
        "test_online_smoothing.py -k the_loop",
    ),
    Mutant(
        "online smoothing: epochs add up",
        "objectives/_online_smoothing.py",
        "torch.zeros_like(self.sums)",
        "self.sums",
        "test_online_smoothing.py -k the_loop",
    ),
    Mutant(
        "unit sphere: the length of z counts",
        "functional/_frames.py",
        """    cosines = F.normalize(z, dim=-1) @ vectors.T
    if is_soft(target):
        return""",
        """    cosines = z @ vectors.T
    if is_soft(target):
        return""",
        "test_frames.py -k cosine_to_vectors or sphere",
    ),
    Mutant(
        "unit sphere: the cross entropy has no weight",
        "objectives/_unit_sphere.py",
        "cosine + self.ce_weight * hard",
        "cosine + hard",
        "test_frames.py -k sphere",
    ),
    Mutant(
        "residual head: a layer forgets its input",
        "models/_residual_head.py",
        "x + self.branch(x)",
        "self.branch(x)",
        "test_residual_head.py -k written_out",
    ),
    Mutant(
        "residual head: the width of a backbone's name is ignored",
        "models/_registry.py",
        "width = net.features if width is None else width",
        "width = net.features",
        "test_residual_head.py -k may_end",
    ),
]
