"""Global attention with the "general" score (Luong et al. 2015)."""

import torch
from torch import Tensor, nn


class GeneralAttention(nn.Module):
    """Attend to all source positions with a bilinear score.

    Computes `score(h, s) = h^T W s`, a softmax over the source, and `tanh(W_c [context; h])` (Luong et al. 2015, Eq. 5, 7, 8).

    Args:
        width: Size of the states of encoder and decoder.

    Example:
        >>> import torch
        >>> from labelkin.models.attention import GeneralAttention
        >>> attention = GeneralAttention(4)
        >>> hidden, memory = torch.zeros(2, 3, 4), torch.zeros(2, 5, 4)
        >>> attention(hidden, memory, attention.keys(memory), torch.ones(2, 5, dtype=torch.bool)).shape
        torch.Size([2, 3, 4])
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, width, bias=False)
        self.combine = nn.Linear(2 * width, width, bias=False)

    def keys(self, memory: Tensor) -> Tensor:
        """Return `W s` of all source positions, (B, S, H); compute it once per sentence."""
        keys: Tensor = self.score(memory)
        return keys

    def forward(self, hidden: Tensor, memory: Tensor, keys: Tensor, real: Tensor) -> Tensor:
        """Map decoder states (B, T, H) to attentional states (B, T, H); `real` (B, S) is false on padding."""
        scores = torch.bmm(hidden, keys.transpose(1, 2))  # (B, T, S)
        scores = scores.masked_fill(~real.unsqueeze(1), torch.finfo(scores.dtype).min)
        context = torch.bmm(torch.softmax(scores, -1).to(memory.dtype), memory)
        return torch.tanh(self.combine(torch.cat([context, hidden.to(context.dtype)], -1)))
