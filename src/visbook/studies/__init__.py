"""Many runs: grids, sweeps, statistics, renewal, the bench, and what fitted methods show beyond
their accuracy."""
