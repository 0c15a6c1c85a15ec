"""Whether a computed number becomes a printed one by rounding: the rule for every comparison."""

import math

EXACT = 1e-9  # float noise


def stands_for(printed: float, unit: float, computed: float, slack: float = 0.0) -> str:
    """How `computed` becomes `printed`: "rounded", "cut off" after its last digit, or "".

    Args:
        unit: the value of one in the last printed digit.
        slack: how far the true number may be from `computed`, which itself comes from printed
            digits.
    """
    if abs(computed - printed) <= unit / 2 + slack + EXACT:
        return "rounded"
    # a printed 0 has either side
    beyond = (computed - printed) * math.copysign(1, printed or computed)
    return "cut off" if 0 < beyond < unit + slack - EXACT else ""
