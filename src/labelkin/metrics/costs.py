"""What predictions cost, under any table of costs or where the classes are quantities."""

from torch import Tensor

from labelkin.metrics.basic import mean_of
from labelkin.metrics.inputs import Numbers, Table, check_pair, numbers, table
from labelkin.metrics.result import Metric


def expected_cost(predicted: Tensor, target: Tensor, costs: Table) -> Metric:
    """The mean of `costs[true class, predicted class]`, in the units of `costs` and within their range; lower is better.

    Costs need not be symmetric, nor 0 on the diagonal, and may be gains below 0. Undefined without samples: NaN, with a
    warning.
    """
    found = table("costs", costs).to(target.device)
    check_pair(predicted, target, len(found))
    return mean_of("expected_cost", found[target.long(), predicted.long()])


def ordinal_mse(predicted: Tensor, target: Tensor, values: Numbers | None = None) -> Metric:
    """The mean squared difference of the predicted and the true class's value: 0 and up, lower is better.

    `values[k]` is the quantity that class k stands for; by default k itself, as 000 has it for the digit that the
    outputs' argmax names. Undefined without samples: NaN, with a warning.
    """
    if values is None:
        check_pair(predicted, target)
        return mean_of("ordinal_mse", (predicted.double() - target.double()).square())
    quantity = numbers("values", values).to(target.device)
    check_pair(predicted, target, len(quantity))
    return mean_of("ordinal_mse", (quantity[predicted.long()] - quantity[target.long()]).square())
