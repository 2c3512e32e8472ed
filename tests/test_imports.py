"""What importing costs, and which names are the package's own."""

import subprocess
import sys

import pytest

import labelkin

# fmt: off
PUBLIC = [
    "AdaptiveLabels", "BiLT", "CompressedLabelEmbedding", "ConditionalSoftmax", "ConfidencePenalty", "Context",
    "ConvexHierarchical", "HAFrame", "HierCOS", "Hierarchical", "HierarchicalCrossEntropy", "HierarchicalEnsemble",
    "InputError", "Kin", "KinClassifier", "LabelEmbedding", "LabelSmoothing", "MixedCrossEntropy", "Model", "OBJECTIVES",
    "Objective", "OneHot", "OnlineLabelSmoothing", "PretrainedLabelEmbedding", "Retrospection", "SemanticSmoothing",
    "StaticLabels", "Taxonomy", "TreeSoftLabels", "UnitSphere", "__version__", "analysis", "audit", "audit_predictions",
    "bench", "compare", "comparison", "data", "decide", "doors", "evaluate", "functional", "load_run", "metrics", "models",
    "objectives", "papers", "relations", "report", "runs", "serve", "structure", "train", "training", "translate",
]
NAMES = [
    "adaptive-labels", "bilt", "compressed-label-embedding", "conditional-softmax", "confidence-penalty",
    "convex-hierarchical", "haframe", "hier-cos", "hierarchical", "hierarchical-cross-entropy", "hierarchical-ensemble",
    "kin", "label-embedding", "label-smoothing", "mixed-cross-entropy", "one-hot", "online-label-smoothing",
    "pretrained-label-embedding", "retrospection", "semantic-smoothing", "static-labels", "tree-soft-labels", "unit-sphere",
]
# fmt: on


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_public_names_are_these():
    assert sorted(labelkin.__all__) == PUBLIC
    assert sorted(labelkin.OBJECTIVES) == NAMES
    assert set(PUBLIC) <= set(dir(labelkin))
    assert all(getattr(labelkin, name) is not None for name in PUBLIC)
    with pytest.raises(AttributeError, match="no attribute 'OneHott'"):
        _ = labelkin.OneHott


@pytest.mark.parametrize("module", ["labelkin", "labelkin.cli", "labelkin._checks"])
def test_importing_needs_neither_torch_nor_numpy(module: str):
    assert run(f"import sys, {module}; print(sorted({{'torch', 'numpy', 'scipy'}} & set(sys.modules)))") == "[]"


@pytest.mark.long
@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["train", "--help"], ["decide", "--help"]], ids=" ".join
)
def test_help_comes_without_torch(arguments: list[str]):
    code = (
        f"import sys; sys.argv = ['labelkin', *{arguments}]\n"
        "from labelkin.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "print('torch' in sys.modules)"
    )
    assert run(code).splitlines()[-1] == "False"


@pytest.mark.long
def test_a_first_objective_is_there_soon_after_torch():
    """In processor time, against that of importing torch itself in the same process."""
    code = (
        "import time; start = time.process_time(); import torch; ready = time.process_time()\n"
        "import labelkin; labelkin.OneHot(classes=10)\n"
        "print((time.process_time() - ready) / (ready - start))"
    )
    assert any(float(run(code)) < 0.5 for _ in range(3))
