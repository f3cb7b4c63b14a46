"""Write results/wd50k-curves.json from the folders of the runs, which its commands make again.

python -m scripts.curves runs
"""

import sys
from pathlib import Path

from scripts.write_results import RESULTS

from nodepiece.report.class_curves import CURVES, collect

if __name__ == "__main__":
    text = collect(Path(sys.argv[1]), RESULTS)
    (RESULTS / CURVES).write_text(text, encoding="utf-8")
