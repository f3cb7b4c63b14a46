"""The peak of memory while something runs: of the process, or on a GPU of the device."""

import resource
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import torch

CLEAR, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")
RESET_PEAK = "5"  # what the kernel takes to forget the peak so far (proc_pid_clear_refs(5))


class PeakMemory:
    """A context: `bytes` is the peak inside it, of all that is in memory and not only of what is
    allocated there. Where the kernel cannot forget earlier peaks, it is the peak so far.
    """

    def __init__(self, device: torch.device) -> None:
        self.device, self.bytes = device, 0

    def __enter__(self) -> "PeakMemory":
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
            torch.cuda.reset_peak_memory_stats(self.device)
        else:
            forget_peak()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.device.type == "cuda":
            self.bytes = torch.cuda.max_memory_reserved(self.device)
        else:
            self.bytes = peak_of_process()


def forget_peak() -> None:
    with suppress(OSError):  # not Linux, or not allowed
        CLEAR.write_text(RESET_PEAK, encoding="utf-8")


def peak_of_process() -> int:
    """The largest resident set so far, or since `forget_peak`, in bytes."""
    if (size := _size_in_status("VmHWM")) is not None:
        return size
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else 1024 * used


def peaks(device: torch.device) -> dict[str, int | None]:
    """The peak of the process so far, and on a GPU that of the device, in bytes."""
    on_device = torch.cuda.max_memory_reserved(device) if device.type == "cuda" else None
    return {"process": peak_of_process(), "device": on_device}


def current_of_process() -> int:
    """The resident set now, in bytes."""
    size = _size_in_status("VmRSS")
    return peak_of_process() if size is None else size


def _size_in_status(key: str) -> int | None:
    try:
        lines = STATUS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    found = [line for line in lines if line.startswith(f"{key}:")]
    return int(found[0].split()[1]) * 1024 if found else None
