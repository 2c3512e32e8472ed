"""Engines train runs: in this process, in several processes, or on Ray. Each takes jobs and yields events."""

from labelkin.runs._engines.attempt import Event, Job, run_here, train_job
from labelkin.runs._engines.fleet import FleetJobs, fleets_of, run_in_fleets
from labelkin.runs._engines.mps import cuda_mps
from labelkin.runs._engines.processes import run_in_processes
from labelkin.runs._engines.ray import drop_lost_tokens, run_on_ray

ENGINES = ("local", "ray")
__all__ = [
    "ENGINES",
    "Event",
    "FleetJobs",
    "Job",
    "cuda_mps",
    "drop_lost_tokens",
    "fleets_of",
    "run_here",
    "run_in_fleets",
    "run_in_processes",
    "run_on_ray",
    "train_job",
]
