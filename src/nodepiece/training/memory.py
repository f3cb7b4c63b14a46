"""Memory that one step of training gives back is what the next one asks for."""

import ctypes
import sys

TRIM_THRESHOLD, MMAP_MAX = -1, -4  # of mallopt(3)
NEVER = 2**31 - 1  # bytes free at the end of the heap before it shrinks


def keep_freed_memory() -> None:
    """Let the C library keep freed blocks instead of handing them back to the system.

    A step frees and asks again for arrays of tens of megabytes; without this the system clears
    every page of them anew each time: 12 % of a step of fb15k-237-paper on one core, 18 % of one
    of wn18rr-paper. For the whole process, and only where the library is glibc; elsewhere nothing
    happens. Memory may fragment: for arrays of gigabytes that come and go it is the wrong choice.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # musl has none
        return
    mallopt(MMAP_MAX, 0)  # no block is a mapping of its own, which ends with the block
    mallopt(TRIM_THRESHOLD, NEVER)
