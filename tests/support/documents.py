"""Results files made by hand, and the lines of the documents that follow from them."""

import json

from labelkin.papers import documents
from labelkin.training import Settings


def run(
    objective, accuracy, seed=0, *, data="cifar100", backbone="resnet-18-double", options=None, final=None, **settings
):
    training = {"epochs": 100, "batch_size": 128, "schedule": "step", "gamma": 0.2, "milestones": [40, 80]}
    training |= {"augment": ["flip", "pad-crop:4"], "calibration": 0.0, "seed": seed, **settings}
    plain = {name: getattr(Settings.of(**training), name) for name in Settings.__dataclass_fields__}
    label = " ".join([objective, *(f"{name}={value}" for name, value in (options or {}).items())])
    return {
        "id": f"{objective}-{seed}",
        "label": label,
        "objective": objective,
        "data": data,
        "data_options": {},
        "backbone": backbone,
        "taxonomy": None,
        "tree": "own",
        "seed": seed,
        "options": options or {},
        "settings": plain,
        "environment": {"device": "cpu"},
        "final": {"accuracy": accuracy, **(final or {})},
        "seconds": 10.0 if objective == "one-hot" else 12.0,
        "curve": [accuracy - 0.1, accuracy],
    }


def written(folder, *runs, recipe=None, name="some", **more):
    told = {"name": name, "recipe": recipe, "command": "labelkin compare plan.yaml", "machine": "one H200"}
    told |= {"date": "2026-11-15", "missing": [], "runs": list(runs), **more}
    (folder / f"{name}.json").write_text(json.dumps(told))
    return documents(folder)


def line_of(text, *words):
    (found,) = [line for line in text.splitlines() if line.startswith("|") and all(word in line for word in words)]
    return [cell.strip() for cell in found.strip("|").split("|")]
