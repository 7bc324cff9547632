"""`python -m cuvil_cli` is `cuvil`."""
import sys

from .main import main

if __name__ == "__main__":
    sys.exit(main())
