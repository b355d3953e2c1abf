# SPDX-License-Identifier: Apache-2.0
"""A loader that is killed and resumed again and again, until a run completes, stores exactly the
source.

The times of the kills are drawn from a seed: at one of the commands that the loader sends (from its
first query through placement and batches to the final counts), before or after the server receives
it, or when the journal is written; or some milliseconds later. The resumed loads may use other
numbers of threads and other batch sizes than the first run."""
import random
import signal
import time

import proxy
import resume_case
from fault_case import ROUNDS
from resume_case import ResumeCase

KILLS = 20 * ROUNDS           # for each kind of source
COMMANDS = 90                 # a complete load in small batches sends some 100


class Killed(ResumeCase):
    blocks, batch_size = 6, 10

    def test_killed_at_random_times_and_resumed_it_stores_exactly_the_source(self):
        for wrapping in (resume_case.plain, resume_case.gzipped, resume_case.several,
                         resume_case.tarred, resume_case.zipped):
            with self.subTest(wrapping.__name__):
                folder = self.scratch / wrapping.__name__
                folder.mkdir()
                self.source, self.expected = self.make_source(folder, wrapping)
                self.kill_and_resume(folder, random.Random(wrapping.__name__))

    def kill_and_resume(self, folder, draw):
        kills = loads = 0
        while kills < KILLS:
            loads += 1
            self.work = folder / f"work-{loads}"
            self.client.drop_database(self.database_name)
            outcome = self.run_and_kill(draw)
            while outcome.code == -signal.SIGKILL:
                kills += 1
                outcome = self.run_and_kill(draw, "--resume")
            self.assert_completed(outcome)

    def run_and_kill(self, draw, *more):
        """Runs until the kill, or until the load ends before it."""
        later = draw.choice([0, 0, 0, 0.001, 0.003, 0.01, 0.03])
        journal = draw.random() < 0.5

        def kill(running):
            if journal:
                self.wait_for_journal(1.2)
            time.sleep(later)
            running.signal(signal.SIGKILL)
        return self.load_with_fault(
            kill, *more, command=draw.randint(1, COMMANDS),
            action=proxy.call_after if draw.random() < 0.5 else proxy.call,
            threads=draw.choice([1, 2, 3]),
            size=draw.choice([4, self.batch_size, 30]))
