"""List the kernels on which a fleet of small networks spends the time of its steps, on a GPU.

    python benchmarks/fleet_profile.py --members 36 --backbone 3-layer-1

A fleet is trained once to warm up, and then for 30 steps under `torch.profiler`. The first steps compare ways to compute
convolutions, so the list has kernels of all of them.
"""

import argparse

import torch
from torch.profiler import ProfilerActivity, profile

from labelkin.bench import train_gray_fleet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=36)
    parser.add_argument("--backbone", default="3-layer-1")
    parser.add_argument("--rows", type=int, default=20, help="kernels to list")
    given = parser.parse_args()
    on_gpu = torch.cuda.is_available()
    train_gray_fleet(given.members, given.backbone, steps=30)
    with profile(activities=[ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]) as found:
        way = train_gray_fleet(given.members, given.backbone, steps=30)
    by = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    print(f"Convolutions are computed in the way '{way}'.")
    print(found.key_averages().table(sort_by=by, row_limit=given.rows, max_name_column_width=70))


if __name__ == "__main__":
    main()
