"""``python -m tracetool``."""

from tracetool.cli import main

if __name__ == "__main__":
    main()
