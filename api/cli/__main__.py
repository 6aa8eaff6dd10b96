"""`python -m api.cli`: the command line without the installed script."""

from api.cli import main

main()
