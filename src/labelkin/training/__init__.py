"""Train models: `Model`, tasks, settings and the training loop."""

from typing import TYPE_CHECKING

from labelkin._lazy import lazy_exports

if TYPE_CHECKING:
    from labelkin.training._build import build_model as build_model
    from labelkin.training._build import context_for as context_for
    from labelkin.training._build import resolved as resolved
    from labelkin.training._build import taxonomy_for as taxonomy_for
    from labelkin.training._checkpoint import Checkpoint as Checkpoint
    from labelkin.training._checkpoint import State as State
    from labelkin.training._class_table import shares_for as shares_for
    from labelkin.training._cost_files import CostTable as CostTable
    from labelkin.training._cost_files import costs_for as costs_for
    from labelkin.training._cost_files import costs_in_order as costs_in_order
    from labelkin.training._cost_files import read_costs as read_costs
    from labelkin.training._fabric import make_fabric as make_fabric
    from labelkin.training._fabric import place_of as place_of
    from labelkin.training._final_metrics import LEAST_SCORE as LEAST_SCORE
    from labelkin.training._final_metrics import PRIOR as PRIOR
    from labelkin.training._final_metrics import Calibration as Calibration
    from labelkin.training._final_metrics import decide_test as decide_test
    from labelkin.training._final_metrics import final_metrics as final_metrics
    from labelkin.training._final_metrics import fit_calibration as fit_calibration
    from labelkin.training._fleet import Fleet as Fleet
    from labelkin.training._fleet import FleetMember as FleetMember
    from labelkin.training._fleet_check import NotBatched as NotBatched
    from labelkin.training._fleet_check import reason_against as reason_against
    from labelkin.training._frozen import WithBackbone as WithBackbone
    from labelkin.training._frozen import cpu_batch as cpu_batch
    from labelkin.training._frozen import frozen_dataset as frozen_dataset
    from labelkin.training._frozen import prepared_sides as prepared_sides
    from labelkin.training._imbalance import check_logit_adjustment as check_logit_adjustment
    from labelkin.training._imbalance import class_weights as class_weights
    from labelkin.training._imbalance import logit_offset as logit_offset
    from labelkin.training._interrupt import Diverged as Diverged
    from labelkin.training._interrupt import Interrupted as Interrupted
    from labelkin.training._interrupt import StopAfterStep as StopAfterStep
    from labelkin.training._loop import Trained as Trained
    from labelkin.training._loop import Trainer as Trainer
    from labelkin.training._loop_checks import check_accumulation as check_accumulation
    from labelkin.training._loop_checks import check_mixing as check_mixing
    from labelkin.training._loop_checks import check_patience as check_patience
    from labelkin.training._model import Model as Model
    from labelkin.training._optimizer import parameter_groups as parameter_groups
    from labelkin.training._packing import is_packed as is_packed
    from labelkin.training._packing import load_packed as load_packed
    from labelkin.training._packing import save_packed as save_packed
    from labelkin.training._partial import WeightedClassify as WeightedClassify
    from labelkin.training._partial import classify as classify
    from labelkin.training._partial import node_positions as node_positions
    from labelkin.training._partial import standardized_dataset as standardized_dataset
    from labelkin.training._progress import Progress as Progress
    from labelkin.training._progress import Silent as Silent
    from labelkin.training._progress import progress_for as progress_for
    from labelkin.training._settings import Settings as Settings
    from labelkin.training._task import Classify as Classify
    from labelkin.training._task import Evaluation as Evaluation
    from labelkin.training._task import Place as Place
    from labelkin.training._task import Task as Task

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "_checkpoint": ["Checkpoint", "State"],
        "_interrupt": ["Diverged", "Interrupted"],
        "_loop": ["Trained", "Trainer"],
        "_model": ["Model"],
        "_settings": ["Settings"],
        "_task": ["Classify", "Place", "Task"],
    },
    internal={
        "_class_table": ["shares_for"],
        "_cost_files": ["CostTable", "costs_for", "costs_in_order", "read_costs"],
        "_imbalance": ["check_logit_adjustment", "class_weights", "logit_offset"],
        "_partial": ["classify", "WeightedClassify", "node_positions", "standardized_dataset"],
        "_build": ["build_model", "context_for", "resolved", "taxonomy_for"],
        "_final_metrics": ["LEAST_SCORE", "PRIOR", "Calibration", "decide_test", "fit_calibration", "final_metrics"],
        "_fabric": ["make_fabric", "place_of"],
        "_fleet": ["Fleet", "FleetMember"],
        "_fleet_check": ["NotBatched", "reason_against"],
        "_frozen": ["WithBackbone", "cpu_batch", "frozen_dataset", "prepared_sides"],
        "_interrupt": ["StopAfterStep"],
        "_loop_checks": ["check_accumulation", "check_mixing", "check_patience"],
        "_optimizer": ["parameter_groups"],
        "_packing": ["is_packed", "load_packed", "save_packed"],
        "_progress": ["Progress", "Silent", "progress_for"],
        "_task": ["Evaluation"],
    },
)
