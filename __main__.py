"""`python -m incarnate` is the command `incarnate`."""

from incarnate.cli import main

if __name__ == "__main__":
    main()
