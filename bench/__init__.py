"""Speed and memory beside a plain reference in the same run; one thread unless a bench says otherwise."""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # read when NumPy is imported, so it stands before everything else
