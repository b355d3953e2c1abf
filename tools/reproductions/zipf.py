# SPDX-License-Identifier: Apache-2.0
"""Tests counts of integers against Zipf's law, as the generator of docs/ycsb.md defines it."""
import math

VALUES, SKEW = 65536, 0.99
LEAST = 5  # expected count of a class of the chi-squared test


def shares():
    weights = [(k + 1) ** -SKEW for k in range(VALUES)]
    total = sum(weights)
    return [weight / total for weight in weights]


def chi_squared(counts):
    """(chi-squared, degrees of freedom, p) of {value: count}. Values are joined in their order until
    each class has an expected count of LEAST."""
    total = sum(counts.values())
    statistic, classes, expected, found = 0.0, 0, 0.0, 0
    law = shares()
    rest = float(total)
    for value, share in enumerate(law):
        expected += share * total
        found += counts.get(value, 0)
        rest -= share * total
        if (expected >= LEAST and rest >= LEAST) or value == VALUES - 1:
            statistic += (found - expected) ** 2 / expected
            classes, expected, found = classes + 1, 0.0, 0
    degrees = classes - 1
    if degrees < 1:
        return statistic, degrees, 1.0
    # The approximation of Wilson and Hilferty.
    z = ((statistic / degrees) ** (1 / 3) - 1 + 2 / (9 * degrees)) / math.sqrt(2 / (9 * degrees))
    return statistic, degrees, math.erfc(z / math.sqrt(2)) / 2
