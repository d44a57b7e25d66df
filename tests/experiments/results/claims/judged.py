"""What the committed tables say of each claim, judged once in a process for all tests."""

from functools import cache

from experiments.results.claims.claim import collected, every
from experiments.results.claims.judgement import Judgement, judge

IDS = tuple(collected())
CLAIMS = {claim.id: claim for claim in (*every(collected()), *collected().values())}


@cache
def judged(name: str) -> Judgement:
    """The judgement of a claim, or of a part of one."""
    return judge(CLAIMS[name])
