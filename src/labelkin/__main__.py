"""`python -m labelkin`."""

from labelkin.cli import main

if __name__ == "__main__":
    main()
