"""The opening of the page: better or worse than what one would use instead, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from latentmetric.characters import in_a_sentence
from latentmetric.core.votes import n_voters
from latentmetric.evaluation.significance import Paired, paired
from latentmetric.validation.parameters import VOTING, validated_copy
from latentmetric.viz.report.advice import next_steps
from latentmetric.viz.report.bars import Bar, bar_chart
from latentmetric.viz.report.baselines import SUPPORT, SUPPORT_CLASSES, Baseline
from latentmetric.viz.report.context import Context, figure, head_cell, paragraph, section, table
from latentmetric.viz.report.evidence import EUCLID, Evidence, Vote
from latentmetric.viz.report.markup import (
    Content,
    Html,
    code,
    counted,
    percent,
    points,
    tag,
)

EVEN = "too close to tell from"
"""What is said of a difference that may be chance."""


@dataclass(frozen=True)
class Line:
    """One method in the comparison."""

    name: str
    error: float
    n_wrong: int
    against: Paired | None
    """The model beside this method, row by row; None for the model itself."""
    about: str
    kind: str
    rival: bool
    """Whether one would use it instead of the model."""
    fitted: str = ""
    """How many of the training rows it was fitted on, if not all."""

    @property
    def called(self) -> str:
        """Its name, with the rows it was fitted on if these are fewer than the model's."""
        return f"{self.name}, {self.fitted}" if self.fitted else self.name


def verdict_section(evidence: Evidence, context: Context) -> Html:
    """The verdict in words, the errors as bars, advice, and the numbers behind it."""
    lines = compared(evidence)
    steps = next_steps(evidence, context)
    return section(
        "verdict",
        headline(evidence, lines),
        *_warnings(evidence),
        tag(
            "div",
            tag("div", *_words(evidence, lines), class_="said"),
            figure("errors", _bars(evidence, lines)),
            tag("div", tag("h3", "What to do next"), tag("ul", *(tag("li", *s) for s in steps)),
                class_="next"),
            class_="verdict",
        ),
        *_basis(evidence),
        _table(evidence, lines),
        paragraph(_legend(evidence), class_="caption"),
    )  # fmt: skip


def compared(evidence: Evidence) -> list[Line]:
    """The model first, then rivals, then what the paper compares it with."""
    verdict = evidence.verdict
    others = [vote for vote in evidence.votes if vote is not verdict]
    return [
        _line(evidence, verdict),
        *(_line(evidence, baseline) for baseline in evidence.baselines),
        *(_line(evidence, vote) for vote in others),
    ]


def _line(evidence: Evidence, method: Vote | Baseline) -> Line:
    right = method.predicted == evidence.true
    own = method is evidence.verdict
    rival = isinstance(method, Baseline)
    return Line(
        method.name,
        float((~right).mean()),
        int((~right).sum()),
        None if own else paired(evidence.right, right),
        _fitted(method, evidence) if isinstance(method, Baseline) else f"{voters(method)} vote",
        "" if own else "base" if rival or method.name == EUCLID else "alternative",
        rival,
        _fewer_rows(method, evidence) if isinstance(method, Baseline) else "",
    )


def voters(vote: Vote) -> str:
    """How many references of which kind voted."""
    kinds = {"latent": "latent example", "original": "original row", "own": "stored row"}
    return counted(vote.n_references, kinds[vote.voters])


def _fitted(baseline: Baseline, evidence: Evidence) -> str:
    n_rows = _fewer_rows(baseline, evidence) or f"{baseline.n_rows:,} training rows"
    return f"{baseline.chosen}; {n_rows}"


def _fewer_rows(baseline: Baseline, evidence: Evidence) -> str:
    n_all = len(evidence.originals)
    return f"{baseline.n_rows:,} of {n_all:,} training rows" if baseline.n_rows < n_all else ""


def headline(evidence: Evidence, lines: list[Line]) -> str:
    """The verdict in one line."""
    name, rivals = evidence.verdict.name, [line for line in lines if line.rival]
    if not evidence.has_training_rows:
        return "No verdict yet: the training rows are missing"
    if not evidence.is_test:
        return "No verdict: most of the tested rows are training rows"
    if not rivals:
        return f"{name} misclassifies {percent(lines[0].error)}; no verdict yet"
    named: dict[str, list[str]] = {"worse than": [], "better than": [], EVEN: []}
    for line in rivals:
        some = f" ({line.fitted})" if line.fitted else ""
        named[_relation(line)].append(line.name.split(",")[0] + some)
    said = [f"{how} {in_a_sentence(whom)}" for how, whom in named.items() if whom]
    return f"{name} is {', '.join(said)}"


def _relation(line: Line) -> str:
    assert line.against is not None
    if not line.against.beyond_chance:
        return EVEN
    return "better than" if line.against.fewer > 0 else "worse than"


def _words(evidence: Evidence, lines: list[Line]) -> list[Html]:
    """The error, and a sentence for each rival: by how much, and whether that is chance."""
    name, n_queries = evidence.verdict.name, len(evidence.queries)
    first = (
        f"{name} misclassifies {percent(lines[0].error)} of {counted(n_queries, 'row')}, with "
        f"{voters(evidence.verdict)}."
    )
    rivals = [line for line in lines if line.rival]
    if rivals:
        said = [_sentence(line, evidence.is_test) for line in rivals]
        return [paragraph(first), *map(paragraph, said)]
    missing: tuple[Content, ...]
    if evidence.has_training_rows:
        missing = ("k-NN, logistic regression and SVC were left out, so there is no verdict.",)
    else:
        missing = (
            "Whether that is better than k-NN, logistic regression or SVC can only be said with "
            "the training rows: pass them (X_train and y_train, or ",
            code("--train"),
            "), and all three are tuned on them.",
        )
    euclid = [line for line in lines if line.name == EUCLID and line.against]
    said = [_sentence(line, evidence.is_test) for line in euclid]
    return [paragraph(first), paragraph(*missing), *map(paragraph, said)]


def _sentence(line: Line, is_test: bool) -> str:
    """By how much a method differs from the model and, in a test, whether that is chance."""
    match = line.against
    assert match is not None
    if match.gained == match.lost:
        return (
            f"{line.called}: {percent(line.error)}, as many errors. Each gets "
            f"{counted(match.gained, 'row')} right that the other gets wrong."
        )
    more, sign = ("higher", 1) if match.fewer > 0 else ("lower", -1)
    low, high = sorted(max(0.0, sign * end) for end in match.interval)
    if not is_test:
        sure = ""
    elif match.beyond_chance:
        sure = (
            f" Beyond chance ({_chance(match)}; 95\N{NO-BREAK SPACE}% interval: {100 * low:.2f} to "
            f"{100 * high:.2f})."
        )
    else:
        sure = f" That may be chance ({_chance(match)})."
    return f"{line.called}: {percent(line.error)}, {points(match.fewer)} {more}.{sure}"


def _chance(match: Paired) -> str:
    said = _p(match)
    sign = "" if said.startswith("<") else "= "
    return f"p {sign}{said}".replace(" ", "\N{NO-BREAK SPACE}")


def _p(match: Paired) -> str:
    return f"{match.p_value:.2g}" if match.p_value >= 1e-4 else "< 0.0001"


def _bars(evidence: Evidence, lines: list[Line]) -> Html:
    n_queries = len(evidence.queries)
    bars = [
        Bar(line.called, line.error, percent(line.error),
            sqrt(line.error * (1 - line.error) / n_queries), line.kind)
        for line in lines
    ]  # fmt: skip
    described = ", ".join(f"{bar.name} {bar.said}" for bar in bars)
    return bar_chart(f"Error on {counted(n_queries, 'row')}", described, bars)


def _table(evidence: Evidence, lines: list[Line]) -> Html:
    head = [
        head_cell("method"),
        head_cell("error", "number"),
        head_cell("wrong", "number"),
        head_cell("only the model right", "number"),
        head_cell("only this right", "number"),
        *([head_cell("p", "number")] if evidence.is_test else []),
        head_cell("what it is"),
    ]
    body = [
        [
            tag("th", line.name, scope="row", class_="whole"),
            tag("td", percent(line.error), class_="number", data_value=repr(line.error)),
            tag("td", f"{line.n_wrong:,}", class_="number", data_value=line.n_wrong),
            *_match_cells(line.against, evidence.is_test),
            tag("td", line.about, class_="words"),
        ]
        for line in lines
    ]
    return table("errors", head, body, aria_label="Error of each method")


def _match_cells(match: Paired | None, is_test: bool) -> list[Html]:
    if match is None:
        return [tag("td", "–", class_="number")] * (3 if is_test else 2)
    cells = [
        tag("td", f"{match.gained:,}", class_="number", data_value=match.gained),
        tag("td", f"{match.lost:,}", class_="number", data_value=match.lost),
    ]
    if is_test:
        cells.append(tag("td", _p(match), class_="number", data_value=repr(match.p_value)))
    return cells


def _basis(evidence: Evidence) -> list[Html]:
    """What the errors were measured on; without training rows, the warnings say it."""
    if not evidence.has_training_rows:
        return []
    said = (
        f"Measured on {counted(len(evidence.queries), 'row')}{_of_all(evidence)}, given separately "
        f"from the {counted(len(evidence.originals), 'training row')}."
    )
    return [paragraph(said), *_sampled(evidence)]


def _of_all(evidence: Evidence) -> str:
    n_queries, n_given = len(evidence.queries), len(evidence.given)
    return "" if n_queries == n_given else f" of the {n_given:,} (a stratified sample)"


def _warnings(evidence: Evidence) -> list[Html]:
    """A warning where the errors are, or may be, training errors."""
    if evidence.has_training_rows:
        return _seen(evidence)
    if len(evidence.references):
        held_out = (
            f"No training rows were given, so {counted(len(evidence.queries), 'row')}"
            f"{_of_all(evidence)} are classified, and the other {len(evidence.references):,} serve "
            "as original rows that vote. "
        )
    else:
        held_out = "No training rows were given, and there are too few rows to hold some out. "
    warning = (
        f"If {type(evidence.model).__name__} was fitted on these same rows, its errors here are "
        "training errors: expect more errors on new rows."
    )
    return [paragraph(held_out, warning, class_="notice")]


def _seen(evidence: Evidence) -> list[Html]:
    """A warning where test rows are training rows."""
    if not evidence.n_seen:
        return []
    alike = "" if evidence.piped.steps is None else " after the steps"
    warning = (
        f"{evidence.n_seen:,} of the {len(evidence.queries):,} tested rows are also among the "
        f"training rows{alike}. For these the error is a training error: expect more errors on new "
        "rows."
    )
    return [paragraph(warning, class_="notice")]


def _sampled(evidence: Evidence) -> list[Html]:
    """A warning where a rival had fewer training rows than the model, or was left out."""
    n_all = len(evidence.originals)
    short = [baseline for baseline in evidence.baselines if baseline.n_rows < n_all]
    said = [
        paragraph(
            f"To save time, {baseline.name} was fitted on {baseline.n_rows:,} of the {n_all:,} "
            "training rows. With all of them it may be better than shown.",
            class_="notice",
        )
        for baseline in short
    ]
    if evidence.baselines and all(baseline.name != SUPPORT for baseline in evidence.baselines):
        said.append(
            paragraph(
                f"To save time, SVC was left out: there are more than {SUPPORT_CLASSES:,} classes.",
                class_="notice",
            )
        )
    return said


def _after_steps(evidence: Evidence) -> str:
    if evidence.piped.steps is None:
        return ""
    return ", after the same steps of the pipeline as the model's"


def _legend(evidence: Evidence) -> str:
    said = "Whiskers show one standard error."
    if evidence.baselines:
        names = in_a_sentence([baseline.name for baseline in evidence.baselines])
        said += f" The parameters of {names} are chosen by cross-validation on training rows"
        said += f"{_after_steps(evidence)}."
    if evidence.is_test:
        said += (
            " p is the chance of a difference this large, or larger, between two methods that are "
            "equally good (McNemar's exact test on the same rows)."
        )
    if any(vote.name == EUCLID for vote in evidence.votes):
        said += f" Euclid learns nothing: under the Euclidean distance, {_nearest(evidence)}."
    if evidence.latent_model is not None:
        said += (
            " MaPML votes with its latent examples, MaPML-O with original rows under the same "
            "metric."
        )
    return said


def _nearest(evidence: Evidence) -> str:
    """Which rows vote in Euclid: as many as in the model, with the same weights."""
    vote = next(vote for vote in evidence.votes if vote.name == EUCLID)
    estimator = validated_copy(evidence.model, VOTING)
    n_nearest = n_voters(estimator.weights, estimator.n_neighbors, vote.n_references)
    if n_nearest == 1:
        return "the nearest row decides"
    weights = "equal weights" if estimator.weights == "uniform" else "more weight for nearer ones"
    return f"the {n_nearest:,} nearest rows vote, with {weights}"
