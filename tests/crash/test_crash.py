from pathlib import Path

from tests.crash.kills import kill_many


def test_processes_killed_at_random_instants_leave_the_old_or_the_new_state(tmp_path: Path) -> None:
    summary = kill_many(0, 12, tmp_path, lambda line: None)
    assert not summary.found
    assert summary.kills.total() == 12 and len(summary.kills) == 4
