"""Engines train runs: in this process, in several processes, or on Ray. Each takes jobs and yields events."""

from labelkin.experiments.engines.attempt import Event, Job, attempt
from labelkin.experiments.engines.here import run_here
from labelkin.experiments.engines.processes import run_in_processes
from labelkin.experiments.engines.ray import run_on_ray

ENGINES = ("local", "ray")
__all__ = ["ENGINES", "Event", "Job", "attempt", "run_here", "run_in_processes", "run_on_ray"]
