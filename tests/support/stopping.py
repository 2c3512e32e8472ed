"""Displays of progress that stop training at a chosen moment."""

import os
import signal

from torch import Tensor

from labelkin.training import Interrupted
from labelkin.training._progress import Silent


class PressCtrlC(Silent):
    """Sends Ctrl-C after a step: training saves that step and stops."""

    def __init__(self, epoch: int, step: int) -> None:
        self.at = (epoch, step)

    def step(self, epoch: int, step: int, loss: Tensor) -> None:
        if (epoch, step) == self.at:
            os.kill(os.getpid(), signal.SIGINT)


class StopInEpoch(Silent):
    """Ends training at the first step of an epoch, so that the state of the epoch before is the last one saved."""

    def __init__(self, epoch: int) -> None:
        self.at = epoch

    def step(self, epoch: int, step: int, loss: Tensor) -> None:
        if epoch == self.at:
            raise Interrupted
