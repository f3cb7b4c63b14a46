"""What a machine offers to a run: memory, threads, and which products are fast."""

import re
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import torch

from nodepiece.errors import InputError

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
BINARY_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
USED_SHARE = 0.8  # of the free memory, unless another amount is asked for
MIN_GAIN = 1.15  # factor by which products must be faster in bfloat16 to use it
CGROUPS = (  # the limit of a container, and what it uses already: version 2, version 1
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


@dataclass(frozen=True)
class Machine:
    """The device of a run, and how much memory it may use there."""

    device: torch.device
    memory: int  # bytes that the process may have at its peak; CUDA: on the device
    is_fast_in_bfloat16: bool


def machine_of(device: torch.device, memory: int | None = None) -> Machine:
    """This machine; `memory` in bytes in place of most of what is free."""
    if memory is None:
        memory = int(USED_SHARE * free_memory(device))
    return Machine(device, memory, is_fast_in_bfloat16(device))


def parse_memory(text: str) -> int:
    """Bytes from such as "8GB", "500 MB", "16GiB" or "8G"."""
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([KMGT]?)(I?)B?\s*", text.upper())
    if found is None:
        raise InputError(f"a memory is a number and a unit, such as 8GB or 500MB, got {text!r}")
    number, unit, binary = found.groups()
    amount = int(float(number) * (BINARY_UNITS if binary else UNITS).get(unit, 1))
    if amount < 1:
        raise InputError(f"a memory must be above 0, got {text!r}")
    return amount


def free_memory(device: torch.device) -> int:
    """Bytes that are free on a device; of the host, within the limit of its container."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free)
    free = _available_on_host()
    for limit, used in CGROUPS:
        numbers = [_number_in(Path(path)) for path in (limit, used)]
        if numbers[0] is not None and numbers[1] is not None:
            free = min(free, max(0, numbers[0] - numbers[1] + _cache_in_cgroup(Path(limit).parent)))
    return free


def _available_on_host() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return 8 * 2**30
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if " kB" in line}
    return sizes.get("MemAvailable", sizes.get("MemFree", 8 * 2**30))


def _number_in(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # there is no such file, or it says "max"
        return None


def _cache_in_cgroup(folder: Path) -> int:
    """The bytes of files in memory, which count as used and can be freed."""
    try:
        lines = (folder / "memory.stat").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    sizes = dict(line.split() for line in lines if len(line.split()) == 2)
    return int(sizes.get("inactive_file", sizes.get("total_inactive_file", 0)))


def is_fast_in_bfloat16(device: torch.device) -> bool:
    """Whether products of matrices are faster in bfloat16; on a CPU they may be much slower."""
    if device.type == "cuda":
        return False  # TF32 is as fast where a step is not one large product
    one, other = torch.ones(256, 128), torch.ones(128, 4096)
    seconds = {}
    for dtype in (torch.float32, torch.bfloat16):
        factors = one.to(dtype), other.to(dtype)
        seconds[dtype] = min(_seconds_of_product(*factors) for _ in range(4))
    return seconds[torch.float32] > MIN_GAIN * seconds[torch.bfloat16]


def _seconds_of_product(one: torch.Tensor, other: torch.Tensor) -> float:
    start = perf_counter()
    one @ other
    return perf_counter() - start
