# SPDX-License-Identifier: Apache-2.0
"""What tools/mutants and tools/campaign are made of."""
