import sys

from deploy.command.main import main

sys.exit(main())
