"""Runs: specification, identity, run folders and the store, training, prediction, evaluation, export and engines.

Names are imported on first use, so listing a store needs no torch.
"""

from typing import TYPE_CHECKING

from labelkin._lazy import lazy_exports

if TYPE_CHECKING:
    from labelkin.runs._compatibility import NOT_OF_THE_TEST_SET as NOT_OF_THE_TEST_SET
    from labelkin.runs._compatibility import complete_settings as complete_settings
    from labelkin.runs._compatibility import current_options as current_options
    from labelkin.runs._compatibility import settings_that_count as settings_that_count
    from labelkin.runs._decisions import Decisions as Decisions
    from labelkin.runs._decisions import Outcomes as Outcomes
    from labelkin.runs._engines import ENGINES as ENGINES
    from labelkin.runs._engines.attempt import Event as Event
    from labelkin.runs._engines.attempt import Job as Job
    from labelkin.runs._engines.attempt import run_here as run_here
    from labelkin.runs._engines.attempt import train_job as train_job
    from labelkin.runs._engines.fleet import FleetJobs as FleetJobs
    from labelkin.runs._engines.fleet import fleets_of as fleets_of
    from labelkin.runs._engines.fleet import run_in_fleets as run_in_fleets
    from labelkin.runs._engines.mps import cuda_mps as cuda_mps
    from labelkin.runs._engines.processes import run_in_processes as run_in_processes
    from labelkin.runs._engines.ray import drop_lost_tokens as drop_lost_tokens
    from labelkin.runs._engines.ray import run_on_ray as run_on_ray
    from labelkin.runs._evaluate import Evaluated as Evaluated
    from labelkin.runs._evaluate import evaluate as evaluate
    from labelkin.runs._export_model import Exported as Exported
    from labelkin.runs._export_model import export_model as export_model
    from labelkin.runs._first_choice import first_choice as first_choice
    from labelkin.runs._folder import RunFolder as RunFolder
    from labelkin.runs._identity import check_contents as check_contents
    from labelkin.runs._identity import check_unchanged as check_unchanged
    from labelkin.runs._identity import data_id as data_id
    from labelkin.runs._identity import folder_name as folder_name
    from labelkin.runs._identity import run_id as run_id
    from labelkin.runs._identity import run_name as run_name
    from labelkin.runs._kinds import kind_in as kind_in
    from labelkin.runs._kinds import kind_name as kind_name
    from labelkin.runs._option_help import explain_objective as explain_objective
    from labelkin.runs._pack import Unpacked as Unpacked
    from labelkin.runs._pack import pack_runs as pack_runs
    from labelkin.runs._pack import unpack_runs as unpack_runs
    from labelkin.runs._places import check_no_overwrite as check_no_overwrite
    from labelkin.runs._places import located as located
    from labelkin.runs._places import started_in as started_in
    from labelkin.runs._prediction import Prediction as Prediction
    from labelkin.runs._predictor import Predictor as Predictor
    from labelkin.runs._predictor import calibration_of as calibration_of
    from labelkin.runs._predictor import existing_run_folder as existing_run_folder
    from labelkin.runs._predictor import load_run as load_run
    from labelkin.runs._predictor import run_spec as run_spec
    from labelkin.runs._results_file import Results as Results
    from labelkin.runs._results_file import export_runs as export_runs
    from labelkin.runs._results_file import read_results as read_results
    from labelkin.runs._run_files import MEASURES as MEASURES
    from labelkin.runs._run_files import is_finished_run as is_finished_run
    from labelkin.runs._run_files import locked as locked
    from labelkin.runs._run_files import read_measures as read_measures
    from labelkin.runs._run_rule import caveats as caveats
    from labelkin.runs._run_rule import reasons_of_run as reasons_of_run
    from labelkin.runs._setup import check_machine as check_machine
    from labelkin.runs._setup import environment as environment
    from labelkin.runs._setup import fastest_device as fastest_device
    from labelkin.runs._setup import is_other_process as is_other_process
    from labelkin.runs._setup import restored_context as restored_context
    from labelkin.runs._setup import tensorboard_log as tensorboard_log
    from labelkin.runs._spec import ARRAY_OPTIONS as ARRAY_OPTIONS
    from labelkin.runs._spec import RunSpec as RunSpec
    from labelkin.runs._spec import accepted_options as accepted_options
    from labelkin.runs._spec import check_options_are_used as check_options_are_used
    from labelkin.runs._spec import check_relation_name as check_relation_name
    from labelkin.runs._spec import describe_objectives as describe_objectives
    from labelkin.runs._spec import option_names as option_names
    from labelkin.runs._store import Record as Record
    from labelkin.runs._store import Store as Store
    from labelkin.runs._store import label_for as label_for
    from labelkin.runs._store import read_record as read_record
    from labelkin.runs._train import TrainedRun as TrainedRun
    from labelkin.runs._train import check_run as check_run
    from labelkin.runs._train import is_unfinished as is_unfinished
    from labelkin.runs._train import train as train
    from labelkin.runs._train import train_run as train_run
    from labelkin.runs._workspace import DataCache as DataCache
    from labelkin.runs._workspace import DataWorkspace as DataWorkspace
    from labelkin.runs._write_predictions import predict_files as predict_files
    from labelkin.runs._write_predictions import write_predictions as write_predictions

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "_train": ["TrainedRun", "train", "train_run"],
        "_decisions": ["Decisions", "Outcomes"],
        "_evaluate": ["Evaluated", "evaluate"],
        "_export_model": ["Exported", "export_model"],
        "_folder": ["RunFolder"],
        "_prediction": ["Prediction"],
        "_predictor": ["Predictor", "load_run", "run_spec"],
        "_spec": ["RunSpec"],
        "_store": ["Record", "Store"],
        "_workspace": ["DataCache", "DataWorkspace"],
        "_write_predictions": ["write_predictions"],
    },
    internal={
        "_compatibility": ["NOT_OF_THE_TEST_SET", "complete_settings", "current_options", "settings_that_count"],
        "_engines": ["ENGINES"],
        "_engines.attempt": ["Event", "Job", "run_here", "train_job"],
        "_engines.fleet": ["FleetJobs", "fleets_of", "run_in_fleets"],
        "_engines.mps": ["cuda_mps"],
        "_engines.processes": ["run_in_processes"],
        "_engines.ray": ["drop_lost_tokens", "run_on_ray"],
        "_first_choice": ["first_choice"],
        "_identity": ["check_contents", "check_unchanged", "data_id", "folder_name", "run_id", "run_name"],
        "_kinds": ["kind_in", "kind_name"],
        "_option_help": ["explain_objective"],
        "_places": ["check_no_overwrite", "located", "started_in"],
        "_pack": ["Unpacked", "pack_runs", "unpack_runs"],
        "_predictor": ["calibration_of", "existing_run_folder"],
        "_run_files": ["MEASURES", "is_finished_run", "locked", "read_measures"],
        "_run_rule": ["caveats", "reasons_of_run"],
        "_results_file": ["Results", "export_runs", "read_results"],
        "_setup": [
            "check_machine",
            "environment",
            "fastest_device",
            "is_other_process",
            "restored_context",
            "tensorboard_log",
        ],
        "_spec": [
            "ARRAY_OPTIONS",
            "check_options_are_used",
            "check_relation_name",
            "describe_objectives",
            "accepted_options",
            "option_names",
        ],
        "_store": ["label_for", "read_record"],
        "_train": ["check_run", "is_unfinished"],
        "_write_predictions": ["predict_files"],
    },
    deprecated={"load": "load_run"},
)
