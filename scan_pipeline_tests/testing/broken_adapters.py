"""Adapters that are wrong in the ways people are, over the source that `PAGE_TOKEN_PINNED` is."""

from typing import Any

from scan_pipeline.adapters import (
    Answered,
    ContinuationConsumedError,
    CountFacts,
    End,
    HttpAdapter,
    HttpAdapterFacts,
    Next,
    Position,
    ProtocolError,
    SnapshotExpiredError,
    SnapshotFacts,
    record,
)


@record
class ThingFacts(HttpAdapterFacts):
    """What all of them declare."""

    count: CountFacts | None = CountFacts(at=("total",), exactness="exact")
    snapshot: SnapshotFacts | None = SnapshotFacts(at=("as", "of"), send_as="as_of")


class Right(HttpAdapter[ThingFacts]):
    """Does what the others get wrong."""

    FACTS = ThingFacts
    REVISION = "right/1"

    def ask(self, position: Position) -> Answered:
        return self.read(self.get_json(self.facts.url, params=self.params(position)))

    def params(self, position: Position) -> dict[str, str]:
        sent = {"cursor": position.token, "as_of": position.pin}
        return {name: value for name, value in sent.items() if value is not None}

    def read(self, around: Any) -> Answered:
        if not isinstance(around, dict) or "error" in around:
            raise ProtocolError("error_envelope", "the answer is an error; expected things")
        if "items" not in around:
            raise ProtocolError("records_missing", "found no items")
        return Answered(
            records=around["items"],
            continuation=self.follows(around),
            total=around.get("total"),
            pin=around.get("as", {}).get("of"),
        )

    def follows(self, around: dict[str, Any]) -> Next | End:
        if "next" not in around:
            raise ProtocolError("continuation_missing", "found no next")
        return End(signal="null") if around["next"] is None else Next(token=around["next"])


class EndsWhereTheTokenIsMissing(Right):
    """`if not next: break`."""

    def follows(self, around: dict[str, Any]) -> Next | End:
        token = around.get("next")
        return Next(token=token) if token else End(signal="falsy")


class EndsAtAnEmptyPage(Right):
    """`if not items: break`."""

    def follows(self, around: dict[str, Any]) -> Next | End:
        return super().follows(around) if around["items"] else End(signal="empty")


class EndsOnErrors(Right):
    """`except Exception: return []`."""

    def ask(self, position: Position) -> Answered:
        try:
            return super().ask(position)
        except ProtocolError:
            return Answered(records=[], continuation=End(signal="given up"))


class TakesErrorsForPages(Right):
    """Looks at the records and at nothing else."""

    def read(self, around: Any) -> Answered:
        return super().read({name: value for name, value in around.items() if name != "error"})


class ForgetsThePin(Right):
    """Reports the version and never sends it."""

    def params(self, position: Position) -> dict[str, str]:
        return {name: v for name, v in super().params(position).items() if name != "as_of"}


class KeepsItsPlace(Right):
    """Holds the walk's state itself, so that a new process begins anew."""

    token: str | None = None

    def ask(self, position: Position) -> Answered:
        if position.token is None:
            self.token = None
        answered = super().ask(Position(token=self.token, pin=position.pin))
        follows = answered.continuation
        self.token = follows.token if isinstance(follows, Next) else None
        return answered


class AsksAgainWithASpentToken(Right):
    """Retries by itself what may have been used up."""

    def ask(self, position: Position) -> Answered:
        try:
            return super().ask(position)
        except ContinuationConsumedError:
            return super().ask(position)


class TakesExpiryForTheEnd(Right):
    """`except Gone: break`."""

    def ask(self, position: Position) -> Answered:
        try:
            return super().ask(position)
        except SnapshotExpiredError:
            return Answered(records=[], continuation=End(signal="gone"))


class DropsTheLastRecord(Right):
    """Off by one."""

    def read(self, around: Any) -> Answered:
        return super().read({**around, "items": around["items"][:-1]})


class RaisesWhatNobodyPlanned(Right):
    """Trips over what it did not think of."""

    def follows(self, around: dict[str, Any]) -> Next | End:
        token = around["next"]
        return End(signal="null") if token is None else Next(token=token)


class SaysThePinItWasTold(Right):
    """Reports back what was asked for instead of what was answered."""

    def ask(self, position: Position) -> Answered:
        around = self.get_json(self.facts.url, params=self.params(position))
        told = position.pin or around["as"]["of"]
        return self.read({**around, "as": {"of": told}})
