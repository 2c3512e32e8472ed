# mypy: ignore-errors
"""Triton: 3 x 3 convolutions of many small networks at once, each with its own weights.

Libraries compute them as a grouped convolution, which leaves most of a GPU idle when a group has few channels. Here one program
computes all output channels of some pixels of one image, so inputs are read once and stay in the cache for the nine taps.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

PIXELS = 512  # of one program forward
TILE = 1024  # output channels x pixels of one program for the gradient of the weights
IMAGES = 8  # that one program sums for the gradient of the weights


@triton.jit
def _seen(images, first, pixel, row, column, height, width, inside, down: tl.constexpr, right: tl.constexpr):
    """Return the pixels that one tap sees; beyond the border they are 0."""
    there = inside & (row + down >= 0) & (row + down < height) & (column + right >= 0) & (column + right < width)
    return tl.load(images + first + pixel + down * width + right, mask=there, other=0.0).to(tl.float32)


@triton.jit
def _convolve(
    images, weight, out, per_member, inputs, outputs, height, width, wide: tl.constexpr, block: tl.constexpr
):  # fmt: skip
    """Store all output channels of a block of pixels of one image."""
    image = tl.program_id(0).to(tl.int64)
    member = image // per_member
    pixel = tl.program_id(1) * block + tl.arange(0, block)
    area = height * width
    row, column = pixel // width, pixel % width
    inside = pixel < area
    channel = tl.arange(0, wide)
    known = channel < outputs
    total = tl.zeros((wide, block), tl.float32)
    for of_input in range(inputs):
        first = (image * inputs + of_input) * area
        for tap in tl.static_range(9):
            value = _seen(images, first, pixel, row, column, height, width, inside, tap // 3 - 1, tap % 3 - 1)
            place = ((member * outputs + channel) * inputs + of_input) * 9 + tap
            factor = tl.load(weight + place, mask=known, other=0.0).to(tl.float32)
            total += factor[:, None] * value[None, :]
    at = (image * outputs + channel[:, None]) * area + pixel[None, :]
    tl.store(out + at, total.to(out.dtype.element_ty), mask=known[:, None] & inside[None, :])


@triton.jit
def _weigh(
    images, gradient, out, per_member, chunks, inputs, outputs, height, width, count: tl.constexpr, wide: tl.constexpr,
    block: tl.constexpr,
):  # fmt: skip
    """Store the gradient of the weights of one member and one input channel, summed over `count` images."""
    chunk = tl.program_id(0)
    of_input = tl.program_id(1)
    member = (chunk // chunks).to(tl.int64)
    area = height * width
    channel = tl.arange(0, wide)
    known = channel < outputs
    t0 = tl.zeros((wide, block), tl.float32)
    t1 = tl.zeros((wide, block), tl.float32)
    t2 = tl.zeros((wide, block), tl.float32)
    t3 = tl.zeros((wide, block), tl.float32)
    t4 = tl.zeros((wide, block), tl.float32)
    t5 = tl.zeros((wide, block), tl.float32)
    t6 = tl.zeros((wide, block), tl.float32)
    t7 = tl.zeros((wide, block), tl.float32)
    t8 = tl.zeros((wide, block), tl.float32)
    for number in range(count):
        own = (chunk % chunks) * count + number
        image = member * per_member + own
        first = (image * inputs + of_input) * area
        for start in range(0, area, block):
            pixel = start + tl.arange(0, block)
            row, column = pixel // width, pixel % width
            inside = (pixel < area) & (own < per_member)
            at = (image * outputs + channel[:, None]) * area + pixel[None, :]
            slope = tl.load(gradient + at, mask=known[:, None] & inside[None, :], other=0.0).to(tl.float32)
            t0 += slope * _seen(images, first, pixel, row, column, height, width, inside, -1, -1)[None, :]
            t1 += slope * _seen(images, first, pixel, row, column, height, width, inside, -1, 0)[None, :]
            t2 += slope * _seen(images, first, pixel, row, column, height, width, inside, -1, 1)[None, :]
            t3 += slope * _seen(images, first, pixel, row, column, height, width, inside, 0, -1)[None, :]
            t4 += slope * _seen(images, first, pixel, row, column, height, width, inside, 0, 0)[None, :]
            t5 += slope * _seen(images, first, pixel, row, column, height, width, inside, 0, 1)[None, :]
            t6 += slope * _seen(images, first, pixel, row, column, height, width, inside, 1, -1)[None, :]
            t7 += slope * _seen(images, first, pixel, row, column, height, width, inside, 1, 0)[None, :]
            t8 += slope * _seen(images, first, pixel, row, column, height, width, inside, 1, 1)[None, :]
    place = ((chunk.to(tl.int64) * outputs + channel) * inputs + of_input) * 9
    tl.store(out + place, tl.sum(t0, 1), mask=known)
    tl.store(out + place + 1, tl.sum(t1, 1), mask=known)
    tl.store(out + place + 2, tl.sum(t2, 1), mask=known)
    tl.store(out + place + 3, tl.sum(t3, 1), mask=known)
    tl.store(out + place + 4, tl.sum(t4, 1), mask=known)
    tl.store(out + place + 5, tl.sum(t5, 1), mask=known)
    tl.store(out + place + 6, tl.sum(t6, 1), mask=known)
    tl.store(out + place + 7, tl.sum(t7, 1), mask=known)
    tl.store(out + place + 8, tl.sum(t8, 1), mask=known)


def convolved(images: Tensor, weight: Tensor) -> Tensor:
    """Return the convolutions (members, n, outputs, H, W) of images (members, n, inputs, H, W)."""
    members, per_member, inputs, height, width = images.shape
    outputs = weight.shape[1]
    out = images.new_empty(members, per_member, outputs, height, width)
    wide = triton.next_power_of_2(outputs)
    _convolve[(members * per_member, triton.cdiv(height * width, PIXELS))](
        images.contiguous(), weight.contiguous(), out, per_member, inputs, outputs, height, width, wide, PIXELS
    )
    return out


def weight_gradient(images: Tensor, gradient: Tensor) -> Tensor:
    """Return the gradient of the weights (members, outputs, inputs, 3, 3), in float32."""
    members, per_member, inputs, height, width = images.shape
    outputs = gradient.shape[2]
    chunks = triton.cdiv(per_member, IMAGES)
    parts = torch.empty(members, chunks, outputs, inputs, 3, 3, device=images.device)
    wide = triton.next_power_of_2(outputs)
    _weigh[(members * chunks, inputs)](
        images.contiguous(), gradient.contiguous(), parts, per_member, chunks, inputs, outputs, height, width, IMAGES, wide,
        max(16, TILE // wide),
    )  # fmt: skip
    return parts.sum(1)
