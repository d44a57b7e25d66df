"""What the committed tables say of each claim, judged once in a process for all tests."""

from functools import cache

from experiments.results.claims.judgement import Judgement, judge
from experiments.results.claims.reading import every, read

CLAIMS = {claim.id: claim for claim in (*every(read()), *read().values())}


@cache
def judged(name: str) -> Judgement:
    """The judgement of a claim, or of a part of one."""
    return judge(CLAIMS[name])
