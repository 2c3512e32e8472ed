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
        "haframe: the rounding of a zero eigenvalue stays in the frame",
        "functional/_frames.py",
        "torch.where(values > rounding, values.clamp_min(0).sqrt(), 0.0)",
        "values.abs().sqrt()",
        "test_frames.py -k permuted",
    ),
    Mutant(
        "haframe: soft targets forget how far their classes lie apart",
        "functional/_frames.py",
        "+ target @ similarity.square().sum(-1)",
        "+ (target @ similarity).square().sum(-1)",
        "test_frames.py -k haframe_is_the_loop",
    ),
]
