# SPDX-License-Identifier: Apache-2.0
"""The parts of tools/reproduce: published experiments, repeated by the two programs.

    __main__.py         the command line; runs the chosen experiments and writes the results
    experiment.py       what an experiment is: its texts, published figures and measured figures
    programs.py         starts clusters and runs shardload, shardquery and shardload-datagen
    pages.py            the results as text, Markdown and HTML
    zipf.py             tests counts of integers against Zipf's law
    mot_microshards.py  and the other modules: one experiment each
"""
