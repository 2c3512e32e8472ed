"""How much memory a piece of torch code asks for, counted by what it makes rather than by what the system reports."""

import weakref
from typing import Any, Self

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LargestTensor(TorchDispatchMode):
    """Inside the `with`, records what operators make; views and results written in place count for nothing.

    `numel` is the number of elements of the largest storage made, `shape` the shape it was made with, and `peak_bytes`
    the most bytes that storages made inside held at one time. Backward passes on the CPU are seen too; what numpy
    allocates is not.
    """

    def __init__(self) -> None:
        super().__init__()
        self.numel = 0
        self.shape: tuple[int, ...] = ()
        self.peak_bytes = 0
        self.live_bytes = 0
        self._alive: dict[int, weakref.ref[Any]] = {}

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = {t.untyped_storage()._cdata for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
        result = func(*args, **kwargs)
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage()._cdata not in given:
                self._record(tensor)
        return result

    def _record(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key, held = storage._cdata, storage.nbytes()
        if key in self._alive:
            return
        if held // tensor.element_size() > self.numel:
            self.numel, self.shape = held // tensor.element_size(), tuple(tensor.shape)
        self._alive[key] = weakref.ref(storage, lambda _: self._forget(key, held))
        self.live_bytes += held
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)

    def _forget(self, key: int, held: int) -> None:
        self._alive.pop(key, None)
        self.live_bytes -= held
