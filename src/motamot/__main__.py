"""`python -m motamot` is the command `motamot`."""

from motamot.cli import main

if __name__ == "__main__":
    main()
