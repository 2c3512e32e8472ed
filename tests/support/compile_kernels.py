"""Compiles every Triton kernel for a GPU that need not be there, and prints what each one uses, as JSON.

    python tests/support/compile_kernels.py 90            # compute capability 9.0

Triton's interpreter runs the bodies of kernels as Python, so it finds neither types that do not fit nor what the compiler
cannot translate. Here the losses are called on CPU tensors; each launch is compiled down to machine code, and nothing runs.
"""

import inspect
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import JITFunction

from labelkin.bench import _loss_cases as loss_cases
from labelkin.functional import _kernels as kernels
from labelkin.functional import tree_index
from labelkin.functional._kernels import fused
from labelkin.functional._kernels import losses as fused_losses
from support.trees import named, random_taxonomy

CUOBJDUMP = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
MODULES = ("leaves", "nodes", "classes", "embedding", "convolution")
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


class Driver:
    """Stands for the driver of a GPU with the given compute capability."""

    def __init__(self, capability: int) -> None:
        self.target = GPUTarget("cuda", capability, 32)

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def main(capability: int) -> None:
    triton.runtime.driver.set_active(Driver(capability))
    compiled: dict[str, list] = defaultdict(list)
    launch = JITFunction.run

    def compile_only(self, *args, grid, warmup, **kwargs):
        kernel = launch(self, *args, grid=grid, warmup=True, **kwargs)
        compiled[f"{self.fn.__module__.rpartition('.')[2]}.{self.fn.__name__}"].append(kernel)
        return kernel

    JITFunction.run = compile_only
    for module in (fused, fused_losses):
        module.uses_triton = lambda logits: True
    tree_losses()
    class_losses()
    embedding_steps()
    convolutions()
    launched = set(compiled)
    expected = {f"triton_{name}.{kernel}" for name in MODULES for kernel in kernels_of(name)}
    print(json.dumps({"missing": sorted(expected - launched), "kernels": {k: sizes(v) for k, v in compiled.items()}}))


def kernels_of(name: str) -> list[str]:
    """Return the names of the functions of a module that are launched: those that another function indexes by a grid."""
    module = import_module(f"labelkin.functional._kernels.triton_{name}")
    source = inspect.getsource(module)
    jitted = [key for key, value in vars(module).items() if isinstance(value, JITFunction)]
    return [key for key in jitted if f"{key}[(" in source]


def sizes(found: list) -> dict[str, int]:
    """Return the number of different programs, and the largest binary and stack, in bytes; a stack holds spilled registers."""
    programs = {kernel.hash: kernel.asm["cubin"] for kernel in found}
    return {
        "programs": len(programs),
        "bytes": max(map(len, programs.values())),
        "stack": max(map(stack_of, programs.values())),
    }


def stack_of(binary: bytes) -> int:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        used = subprocess.run([CUOBJDUMP, "-res-usage", file.name], capture_output=True, text=True, check=True).stdout
    return max(int(number) for number in re.findall(r"STACK:(\d+)", used))


def tree_losses() -> None:
    draw = np.random.default_rng(0)
    trees = [
        named([-1, 0, 0, 1, 1, 2, 3, 3, 4, 5, 5, 5]),  # leaves at one depth
        named([-1, 0, 0, 1, 1, 2, 2], [6, 3, 5, 4]),  # classes in another order than depth first
        named([-1, *(int(draw.integers(node)) for node in range(1, 500))]),  # leaves at many depths
        random_taxonomy(draw, 3000, "unbalanced"),
    ]
    for taxonomy in trees:
        index = tree_index(taxonomy)
        target = torch.as_tensor(taxonomy.leaves[:2].copy())
        for dtype in DTYPES:
            leaves = torch.randn(2, len(taxonomy.leaves), dtype=dtype, requires_grad=True)
            nodes = torch.randn(2, len(taxonomy) - 1, dtype=dtype, requires_grad=True)
            losses = [
                kernels.hierarchical_cross_entropy(leaves, target, index, alpha=0.4),
                kernels.ancestors(leaves, target, index, weight=0.1, base=1.0),
                kernels.conditional_softmax(nodes, target, index),
                kernels.convex_hierarchical(nodes, target, index),
                kernels.hierarchical(nodes, target, index),
                kernels.hierarchical(nodes, target, index, targets="leaf"),
            ]
            for loss in losses:
                loss.sum().backward()


def class_losses() -> None:
    for kind in loss_cases.KINDS:
        for classes in (33, 1000, 10_000):
            targets = loss_cases.class_targets(kind, classes)
            for dtype in DTYPES:
                logits = torch.randn(2, classes, dtype=dtype, requires_grad=True)
                kernels.class_target_cross_entropy(logits, torch.tensor([0, 1]), targets).sum().backward()


def embedding_steps() -> None:
    for classes in (33, 5000):
        for dtype in DTYPES:
            for absolute in (False, True):
                options = kernels.EmbeddingOptions(2.0, 0.3, 1.0, absolute=absolute, rectified=not absolute)
                z1, z2, e = torch.randn(3, 2, classes, dtype=dtype)
                kernels.embedding_with_gradients(z1, z2, e, torch.tensor([0, 1]), torch.ones(2), torch.ones(5), options)


def convolutions() -> None:
    for inputs, outputs in ((1, 2), (4, 4), (8, 16), (16, 16)):
        for dtype in DTYPES:
            images = torch.randn(2, 3, inputs, 4, 4, dtype=dtype, requires_grad=True)
            weight = torch.randn(2, outputs, inputs, 3, 3, dtype=dtype, requires_grad=True)
            kernels.member_convolution(images, weight).sum().backward()


if __name__ == "__main__":
    main(int(sys.argv[1]))
