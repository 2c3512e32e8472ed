"""Plans: data x backbones x objectives x seeds, expanded to runs, trained by an engine and kept in a store."""

from labelkin.experiments.plan.execution import Outcome, execute, outlook
from labelkin.experiments.plan.grids import chosen
from labelkin.experiments.plan.model import PROTOCOLS, Arm, Plan, Planned
from labelkin.experiments.plan.reading import read_plan

__all__ = ["PROTOCOLS", "Arm", "Outcome", "Plan", "Planned", "chosen", "execute", "outlook", "read_plan"]
