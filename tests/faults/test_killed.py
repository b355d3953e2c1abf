# SPDX-License-Identifier: Apache-2.0
"""The loader is killed, at any moment, and resumed, and killed again, until it comes to its end:
then exactly the source is there.

The moments are drawn from a seed: at a command that the loader sends, before the server sees it or
while the server is at work on it, or when the journal is being written; or some milliseconds after
that. Commands are all it says, from the first question over the placing of ranges and the batches
to the final counts. Some of the resumed loads have other threads and batches than the first."""
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import proxy  # noqa: E402
import resume_case  # noqa: E402
from fault_case import ROUNDS  # noqa: E402
from resume_case import BATCH, ResumeCase  # noqa: E402

KILLS = 20 * ROUNDS           # of each wrapping
COMMANDS = 90                 # a whole load in small batches has some 100


class Killed:
    def test_at_random_moments(self):
        draw = random.Random(self.wrapping.__name__)
        kills = loads = 0
        while kills < KILLS:
            loads += 1
            self.work = self.scratch / f"work-{loads}"
            self.client.drop_database(self.database_name)
            outcome = self.one_slice(draw)
            while outcome.code == -signal.SIGKILL:
                kills += 1
                outcome = self.one_slice(draw, "--resume")
            self.assert_completed(outcome)

    def one_slice(self, draw, *more):
        """Until it is killed, or comes to its end before."""
        later = draw.choice([0, 0, 0, 0.001, 0.003, 0.01, 0.03])
        journal = draw.random() < 0.5

        def kill(running):
            if journal:
                self.wait_for_journal(1.2)
            time.sleep(later)
            running.signal(signal.SIGKILL)
        return self.struck(kill, *more, command=draw.randint(1, COMMANDS),
                           action=proxy.call_after if draw.random() < 0.5 else proxy.call,
                           threads=draw.choice([1, 2, 3]),
                           size=draw.choice([7, BATCH, 60]))


class Plain(Killed, ResumeCase):
    wrapping = staticmethod(resume_case.plain)


class Gzip(Killed, ResumeCase):
    wrapping = staticmethod(resume_case.gzipped)


class Folder(Killed, ResumeCase):
    wrapping = staticmethod(resume_case.several)


class Tar(Killed, ResumeCase):
    wrapping = staticmethod(resume_case.tarred)


class Zip(Killed, ResumeCase):
    wrapping = staticmethod(resume_case.zipped)


if __name__ == "__main__":
    import tap
    tap.main()
