"""`python -m fitladder`: the command line, as the installed `fitladder`."""

from fitladder.cli.main import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
