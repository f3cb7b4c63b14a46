"""From files to graphs: readers, splits, named benchmarks, the embedded example."""
