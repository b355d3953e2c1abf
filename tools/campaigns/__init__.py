# SPDX-License-Identifier: Apache-2.0
"""The modules of tools/mutants and tools/campaign."""
