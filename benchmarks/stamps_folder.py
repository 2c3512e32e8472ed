"""Make a folder of photos with a tree from the stamps of Tux Paint (Debian package `tuxpaint-stamps-default`, GPL-2 or later).

    apt-get download tuxpaint-stamps-default && dpkg-deb -x tuxpaint-stamps-default_*.deb stamps
    python benchmarks/stamps_folder.py stamps/usr/share/tuxpaint/stamps data/stamps
    labelkin compare data/stamps --backbone efficientnet-lite0 --freeze --objectives one-hot,kin --folds 5 --seeds 0,1,2,3,4

The stamps are photos of single things, cut out; folders named "cartoon" hold drawings and are left out. The class of a photo is
its kind, such as birds or fruit, and the group of the class is the folder above it.
"""

import argparse
import shutil
from pathlib import Path

KINDS = {
    "animals": ("birds", "fish", "insects", "mammals"),
    "food": ("fruit", "vegetables"),
    "plants": ("flowers", "trees"),
    "things": ("household", "vehicles"),  # clothes are drawn
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("stamps", type=Path, help="the folder `stamps` of the package")
    arguments.add_argument("out", type=Path, help="the folder to make")
    given = arguments.parse_args()
    for group, kinds in KINDS.items():
        for kind in kinds:
            source = given.stamps / kind if group == "things" else given.stamps / group / kind
            target = given.out / group / kind
            target.mkdir(parents=True)
            for photo in sorted(source.rglob("*.png")):
                if "cartoon" not in photo.parts:
                    shutil.copyfile(photo, target / "-".join(photo.relative_to(source).parts))
            print(f"{group}/{kind}: {len(list(target.iterdir()))}")


if __name__ == "__main__":
    main()
