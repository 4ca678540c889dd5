"""Changes followed round by round, in OData's words: next links, delta links, `@removed`.

A round of changes is what differs between two revisions; a baseline reads the live rows, which may
move meanwhile. What must be remembered fits the links, so that a new process accepts those of an
earlier one. How the feed behaves is asked for with the first request and travels with its links:

- `minted`: `start`, the delta link covers what changed since the round began; `end`, only what
  changes from its last page on, as many a server has it.
- `shown`: `last_page`, or `every_page`, each with a delta link made when it is answered.
- `updates`: `whole` records, or their key and the `changed` members.
- `replays`: `yes` sends the last item of a page again on the next, and changes of the round before.
"""

import base64
import binascii
import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlencode

from scan_pipeline.core.value import record
from scan_pipeline.simulator.answer_faults import Failing
from scan_pipeline.simulator.answers import Answer, RequestRefusedError, compact
from scan_pipeline.simulator.collection import Collection, Selection
from scan_pipeline.simulator.damage import damaged_answer
from scan_pipeline.simulator.faults import (
    CompletionMisreported,
    CursorDropped,
    Fault,
    SnapshotExpired,
)
from scan_pipeline.simulator.pages import first_of
from scan_pipeline.simulator.population import KEY_FIELDS
from scan_pipeline.simulator.principals import Principal, authenticate
from scan_pipeline.simulator.query import Params
from scan_pipeline.simulator.rows import CollectionName
from scan_pipeline.simulator.script import Script

Kind: TypeAlias = Literal["pages", "changes", "delta"]

DELTA_LIFETIME_S: Final = 7 * 24 * 3_600
"""How long a delta link can be followed, in seconds: seven days, as of Graph's directory."""

_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "minted": ("start", "end"),
    "shown": ("last_page", "every_page"),
    "updates": ("whole", "changed"),
    "replays": ("no", "yes"),
}


@record
class _Token:
    """What a link remembers.

    Attributes:
        kind: a page of the baseline, of changes, or the beginning of a round of changes.
        since: revision at which the round began.
        until: revision up to which changes are told.
        after: rows told so far: a number in the baseline, a count among changes.
        page: number of the page, from 1.
        at: when it was made, seconds since 1970.
    """

    kind: Kind
    since: int
    until: int
    after: int
    page: int
    at: int

    def text(self) -> str:
        plain = json.dumps(list(self.__dict__.values())).encode()
        return base64.urlsafe_b64encode(plain).decode()

    @classmethod
    def read(cls, text: str) -> "_Token":
        try:
            values = json.loads(base64.urlsafe_b64decode(text))
            return cls(**dict(zip(cls.__dataclass_fields__, values, strict=True)))
        except (binascii.Error, ValueError, TypeError) as error:
            raise RequestRefusedError(400, "token_invalid", "not given out here") from error


class DeltaFeed:
    """Answers requests for the changes of one collection.

    Args:
        collection: its revisions.
        script: faults by the number of a page; mutations follow pages of the baseline.
        clock: returns an aware moment.
        lifetime_s: seconds that a delta link can be followed.
    """

    def __init__(
        self,
        collection: Collection,
        *,
        script: Script,
        clock: Callable[[], datetime],
        lifetime_s: int = DELTA_LIFETIME_S,
    ) -> None:
        self._collection, self._clock = collection, clock
        self._faults = tuple(f for f in script.faults if f.collection == collection.name)
        self._lifetime = timedelta(seconds=lifetime_s)
        self._attempts: Counter[int] = Counter()

    def page(self, params: Params, authorization: str | None) -> Answer:
        """Answer one request.

        Raises:
            RequestRefusedError: 400 for what was never given out, 410 for what is too old.
        """
        principal = authenticate(authorization)
        asked = _Asked.read(params)
        head = self._collection.head.number
        token = _Token.read(asked.token) if asked.token else self._token("pages", head)
        if token.kind == "delta":
            self._check_age(token, asked)
            since = max(0, token.since - 1) if asked.replays else token.since
            token = self._token("changes", since, until=head)
        self._attempts[token.page] += 1
        rows = self._rows(token, principal, asked)
        shown = rows[: asked.size]
        is_last = len(rows) <= asked.size
        faults = tuple(
            fault
            for fault in self._faults
            if fault.strikes(page=token.page, is_last=is_last, attempt=self._attempts[token.page])
        )
        self._fail(faults, asked)
        body = self._body(token, shown, is_last=is_last, asked=asked, faults=faults)
        if token.kind == "pages":
            self._collection.let_happen(through_page=token.page)
        return damaged_answer(Answer(status=200, body=body), faults=faults)

    def _rows(
        self, token: _Token, principal: Principal, asked: "_Asked"
    ) -> list[tuple[int, bytes]]:
        """Return what is left to tell, each with what `after` is once it was told."""
        selection = Selection(tenant=principal.tenant)
        if token.kind == "pages":
            view = self._collection.head.view(selection)
            return [(row.number, row.raw) for row in view.rows if row.number > token.after]
        told = list(enumerate(self._changes(token, selection, asked), start=1))
        again = 1 if asked.replays and token.after else 0
        return told[token.after - again :]

    def _changes(self, token: _Token, selection: Selection, asked: "_Asked") -> list[bytes]:
        before, now = (
            {row.number: row.raw for row in revision.view(selection).rows}
            for number in (token.since, token.until)
            if (revision := self._collection.revision(number)) is not None
        )
        key = KEY_FIELDS[self._collection.name]
        changes = list[bytes]()
        for number in sorted(before.keys() | now.keys()):
            old, new = before.get(number), now.get(number)
            if new is None:
                gone = {key: json.loads(old or b"{}")[key], "@removed": {"reason": "deleted"}}
                changes.append(compact(gone))
            elif old is None or (old != new and not asked.changed_members):
                changes.append(new)
            elif old != new:
                changes.append(_changed(json.loads(old), json.loads(new), key))
        return changes

    def _body(
        self,
        token: _Token,
        shown: list[tuple[int, bytes]],
        *,
        is_last: bool,
        asked: "_Asked",
        faults: tuple[Fault, ...],
    ) -> bytes:
        links = dict[str, str]()
        of_round = token.until if token.kind == "changes" else token.since
        head = self._collection.head.number
        anew = asked.minted == "end" or asked.every_page
        delta = asked.link(self._token("delta", head if anew else of_round))
        both = first_of(faults, CompletionMisreported) is not None
        if not is_last:
            following = _Token(
                kind=token.kind,
                since=token.since,
                until=token.until,
                after=shown[-1][0],
                page=token.page + 1,
                at=token.at,
            )
            links["@odata.nextLink"] = asked.link(following)
        if is_last or asked.every_page or both:
            links["@odata.deltaLink"] = delta
        if first_of(faults, CursorDropped) is not None:
            links.clear()
        around = compact({"@odata.context": f"$metadata#{self._collection.name}", **links})
        return around[:-1] + b',"value":[' + b",".join(raw for _, raw in shown) + b"]}"

    def _token(self, kind: Kind, since: int, *, until: int = 0) -> _Token:
        at = int(self._clock().timestamp())
        return _Token(kind=kind, since=since, until=until, after=0, page=1, at=at)

    def _check_age(self, token: _Token, asked: "_Asked") -> None:
        if self._clock().timestamp() - token.at > self._lifetime.total_seconds():
            raise _gone(asked)
        if self._collection.revision(token.since) is None:
            raise RequestRefusedError(400, "token_invalid", f"there is no revision {token.since}")

    def _fail(self, faults: tuple[Fault, ...], asked: "_Asked") -> None:
        if first_of(faults, SnapshotExpired) is not None:
            raise _gone(asked)
        if (failing := first_of(faults, Failing)) is not None:
            raise RequestRefusedError(failing.status, failing.code or "failing", "as scripted")


@record
class _Asked:
    """The parameters of a request.

    Attributes:
        path: where the feed is served.
        size: items of a page.
        habits: how the feed behaves, by word.
        token: as sent; empty on the first request of a baseline.
    """

    size: int
    habits: tuple[tuple[str, str], ...]
    token: str

    @classmethod
    def read(cls, params: Params) -> "_Asked":
        sent = dict(params)
        size = sent.pop("page_size", "100")
        token = sent.pop("$token", "")
        for name, word in sent.items():
            if word not in _WORDS.get(name, ()):
                raise RequestRefusedError(400, "invalid_parameter", f"{name} is not known so")
        if not size.isdecimal() or not 1 <= int(size) <= 500:
            raise RequestRefusedError(400, "invalid_parameter", "page_size: expected 1 to 500")
        return cls(size=int(size), habits=tuple(sorted(sent.items())), token=token)

    def _habit(self, name: str) -> str:
        return dict(self.habits).get(name, _WORDS[name][0])

    @property
    def minted(self) -> str:
        return self._habit("minted")

    @property
    def every_page(self) -> bool:
        return self._habit("shown") == "every_page"

    @property
    def changed_members(self) -> bool:
        return self._habit("updates") == "changed"

    @property
    def replays(self) -> bool:
        return self._habit("replays") == "yes"

    def link(self, token: _Token | None) -> str:
        """Return the relative address of a token, with all that was asked for."""
        said = {"page_size": str(self.size), **dict(self.habits)}
        return f"delta?{urlencode(said | ({} if token is None else {'$token': token.text()}))}"


def _changed(old: dict[str, Any], new: dict[str, Any], key: str) -> bytes:
    return compact(
        {name: value for name, value in new.items() if name == key or old.get(name) != value}
    )


def _gone(asked: _Asked) -> RequestRefusedError:
    return RequestRefusedError(
        410,
        "syncStateNotFound",
        "the sync state is not found; synchronize again",
        headers={"location": asked.link(None)},
    )


def feeds(
    collections: Mapping[CollectionName, Collection],
    *,
    script: Script,
    clock: Callable[[], datetime],
) -> dict[CollectionName, DeltaFeed]:
    """Return a feed for each collection."""
    return {
        name: DeltaFeed(collection, script=script, clock=clock)
        for name, collection in collections.items()
    }
