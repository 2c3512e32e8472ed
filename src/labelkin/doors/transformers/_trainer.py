"""A `transformers.Trainer` that trains with an objective."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from labelkin._checks import InputError
from labelkin._extras import require
from labelkin.doors._epochs import check_trainable, end_epoch
from labelkin.doors.transformers._model import KinModel
from labelkin.objectives import Objective

if TYPE_CHECKING:
    from transformers import Trainer, TrainerCallback
else:
    transformers = require("transformers", extra="transformers", use="KinTrainer")
    Trainer, TrainerCallback = transformers.Trainer, transformers.TrainerCallback


class KinTrainer(Trainer):
    """A `transformers.Trainer` whose loss is an objective.

    It calls the objective's `begin_epoch`, `refresh` and `synchronize` at the right times, exempts the parameters that the
    objective excludes from weight decay, adds `index` to the samples if the objective needs it, and saves the objective
    beside the model in `objective.safetensors`. With gradient accumulation the loss is the mean of the losses of the
    batches, so batches should have equal size.

    Args:
        model: A Hugging Face model, or a `KinModel`; left out with `model_init=`, a function that returns a `KinModel` and
            is called at the start of every training, as `hyperparameter_search` needs it.
        args: `TrainingArguments`.
        objective: The objective; left out if `model` is a `KinModel`. See `KinModel` for its form.
        pooling: See `KinModel`.
        **options: Further arguments of `transformers.Trainer`, such as `train_dataset` and `compute_metrics`.

    Example:
        >>> import contextlib, io, tempfile
        >>> from transformers import BertConfig, BertModel, TrainingArguments
        >>> from labelkin import LabelEmbedding
        >>> from labelkin.doors.transformers import KinTrainer
        >>> config = BertConfig(
        ...     vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
        ... )
        >>> samples = [{"input_ids": [1, 2, i], "labels": i % 3} for i in range(6)]
        >>> folder = tempfile.TemporaryDirectory()
        >>> args = TrainingArguments(folder.name, num_train_epochs=1, report_to=[], disable_tqdm=True, use_cpu=True)
        >>> objective = LabelEmbedding(3, features=8)
        >>> trainer = KinTrainer(BertModel(config), args, objective=objective, train_dataset=samples)
        >>> with contextlib.redirect_stdout(io.StringIO()):  # the Trainer prints what it logs
        ...     trained = trainer.train()
        >>> trained.global_step
        1
    """

    model: Any
    _signature_columns: Any

    def __init__(
        self,
        model: nn.Module | None = None,
        args: Any = None,
        *,
        objective: Objective | None = None,
        pooling: str = "auto",
        train_dataset: Any = None,
        **options: Any,
    ) -> None:
        if args is None:
            raise InputError("args: expected TrainingArguments, got None.")
        _check_arguments(args)
        super().__init__(_whole(model, objective, pooling, options), args, train_dataset=train_dataset, **options)
        check_trainable(self.objective, args.gradient_accumulation_steps)
        if "index" in self.objective.needs and train_dataset is not None:
            self.train_dataset = Indexed(train_dataset)
        self.add_callback(ObjectiveCallback(lambda: self.model, lambda: self.get_test_dataloader(self.train_dataset)))

    @property
    def objective(self) -> Objective:
        """The objective of the model."""
        found: Objective = self.model.objective
        return found

    def call_model_init(self, trial: Any = None) -> KinModel:
        """Return the `KinModel` that `model_init` returns."""
        made = super().call_model_init(trial)
        if not isinstance(made, KinModel):
            raise InputError(f"model_init: expected a function that returns a KinModel, got {type(made).__name__}.")
        return made

    def compute_loss(
        self, model: nn.Module, inputs: Mapping[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Return the objective's loss of a batch, and the model's outputs if requested."""
        outputs = model(**inputs)
        return (outputs.loss, outputs) if return_outputs else outputs.loss

    def get_decay_parameter_names(self, model: nn.Module) -> list[str]:
        """Return the names of the parameters with weight decay, without those that the objective excludes."""
        spared = {f"objective.{name}" for name in self.objective.no_weight_decay()}
        return [name for name in super().get_decay_parameter_names(model) if name not in spared]

    def _set_signature_columns_if_needed(self) -> None:
        """Keep the columns that the Hugging Face model takes, and not only those that `KinModel` names."""
        super()._set_signature_columns_if_needed()
        taken = inspect.signature(self.model.model.forward).parameters
        self._signature_columns = sorted({*self._signature_columns, *taken})

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        self.objective.synchronize()
        super()._save_checkpoint(model, trial)

    def _save(self, output_dir: str | None = None, state_dict: Mapping[str, Any] | None = None) -> None:
        """Save the files of the Hugging Face model, which `from_pretrained` reads, and the objective beside them."""
        own = (
            None
            if state_dict is None
            else {name.removeprefix("model."): value for name, value in state_dict.items() if name.startswith("model.")}
        )
        with self._without_objective() as whole:
            super()._save(output_dir, state_dict=own)
        if self.args.should_save:
            whole.save_objective(self.args.output_dir if output_dir is None else output_dir)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        with self._without_objective() as whole:
            super()._load_from_checkpoint(resume_from_checkpoint, whole.model)
        whole.load_objective(resume_from_checkpoint)

    @contextmanager
    def _without_objective(self) -> Iterator[KinModel]:
        """Let the Trainer see the Hugging Face model alone, so that files have its form; return the `KinModel`."""
        whole: KinModel = self.model
        self.model = whole.model
        try:
            yield whole
        finally:
            self.model = whole

    def _load_best_model(self) -> None:
        self._load_from_checkpoint(self.state.best_model_checkpoint)


class ObjectiveCallback(TrainerCallback):
    """Calls the objective at the beginning and at the end of every epoch.

    Args:
        find_model: Returns the model; a Trainer with `model_init` creates a new one for every training.
        batches: Returns the batches of the training set, in any order, on any device.
    """

    def __init__(self, find_model: Callable[[], KinModel], batches: Callable[[], Iterable[Mapping[str, Any]]]) -> None:
        self.find_model = find_model
        self.batches = batches
        self.epoch = 0  # the next one

    def on_train_begin(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Start at the epoch of the checkpoint that training resumes from."""
        self.epoch = int((state.epoch or 0) + 1e-6)  # rounding may leave it just below a whole number

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Prepare the objective for the epoch."""
        self.find_model().objective.begin_epoch(self.epoch, max(state.num_train_epochs, self.epoch + 1))
        self.epoch += 1

    def on_epoch_end(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Refresh the objective's state, before the epoch is evaluated and saved."""
        model = self.find_model()
        end_epoch(model, model.objective, lambda: self._outputs(model))

    def _outputs(self, model: KinModel) -> Iterator[tuple[Any, ...]]:
        device = next(model.parameters()).device
        for batch in self.batches():
            inputs = {name: value.to(device) for name, value in batch.items() if isinstance(value, Tensor)}
            target, weight = inputs.pop("labels"), inputs.pop("weight", None)
            inputs = {name: value for name, value in inputs.items() if name not in ("index", "node")}
            outputs = model.objective(model.features(inputs))
            yield (outputs, target) if weight is None else (outputs, target, weight)


class Indexed(torch.utils.data.Dataset[dict[str, Any]]):
    """A data set whose samples carry their position as `index`."""

    def __init__(self, samples: Any) -> None:
        if not hasattr(samples, "__getitem__") or not hasattr(samples, "__len__"):
            raise InputError(
                f"train_dataset: the objective needs the position of each sample, so expected a data set with len() and "
                f"positions, got {type(samples).__name__}."
            )
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, position: int) -> dict[str, Any]:
        return {**self.samples[position], "index": position}


def _whole(
    model: nn.Module | None, objective: Objective | None, pooling: str, options: Mapping[str, Any]
) -> KinModel | None:
    """Return the model with its objective, or None if `model_init` creates it."""
    if model is None and options.get("model_init") is not None:
        if objective is not None:
            raise InputError("objective: expected none beside model_init, whose KinModel already has one.")
        return None
    if isinstance(model, KinModel) and objective is None:
        return model
    if model is None or objective is None or isinstance(model, KinModel):
        raise InputError(
            "objective: expected an objective and a Hugging Face model, or a KinModel without objective, or model_init."
        )
    return KinModel(model, objective, pooling=pooling)


def _check_arguments(args: Any) -> None:
    """Refuse arguments that would bypass the objective."""
    if args.label_smoothing_factor:
        raise InputError(
            f"label_smoothing_factor: expected 0 with an objective, got {args.label_smoothing_factor}; use the objective "
            "LabelSmoothing."
        )
    if args.n_gpu > 1:
        raise InputError(
            f"n_gpu: expected one GPU per process, got {args.n_gpu} in one process, where each would have a separate "
            "objective; start the script with torchrun, or set CUDA_VISIBLE_DEVICES."
        )
