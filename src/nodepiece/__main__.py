"""python -m nodepiece"""

from nodepiece.cli import main

main()
