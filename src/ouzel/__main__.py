"""`python -m ouzel` is the `ouzel` command."""

import sys

from ouzel.cli.app import main

sys.exit(main())
