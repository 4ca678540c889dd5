"""A walk that is taken up again: is it still one walk, of one principal, over one state?"""

from scan_pipeline.core.findings import finding
from scan_pipeline.core.page import Opening
from scan_pipeline.core.vocabulary import Consistency
from scan_pipeline.sources.source import Source
from scan_pipeline.stages.walking.stopped import Stopped
from scan_pipeline.store.events import Event
from scan_pipeline.store.generations import GenerationStore

CREDENTIAL = "credential"
"""Member of an open event: a keyed digest of who asked, None where the source names none."""


class Asker:
    """Who asks, named by a keyed digest that tells nothing without the scan's data key.

    Two walkers of one generation under two credentials would mix what two principals see; where
    the source does not say who we are, the credential alone can tell.

    Args:
        source: resolves its credential.
        store: the generation's tables and keys.

    Raises:
        ConfigurationError: a secret or the data key is missing.
    """

    def __init__(self, source: Source, store: GenerationStore) -> None:
        self._principal = source.principal()
        self._sealer = store.sealer()
        self._context = f"{store.scan}/{store.generation}/{CREDENTIAL}".encode()

    def digest(self) -> str | None:
        """Return what an open event holds of it."""
        if self._principal is None:
            return None
        return self._sealer.names(self._principal, context=self._context)[0]

    def is_forgotten(self, opened: Event) -> bool:
        """Say whether nobody can tell any more whom a walk was begun by: its key was destroyed."""
        told = self._principal is not None and opened.facts.get(CREDENTIAL) is not None
        return told and self._sealer.has_destroyed and not self.is_same(opened)

    def is_same(self, opened: Event) -> bool:
        """Say whether a walk was begun with this very credential, whatever key named it."""
        told = opened.facts.get(CREDENTIAL)
        if self._principal is None or told is None:
            return self._principal is None and told is None
        return told in self._sealer.names(self._principal, context=self._context)


def changed_since(
    opened: Event, now: Opening, asker: Asker, *, consistency: Consistency
) -> Stopped | None:
    """Say why a walk cannot go on as the one that was begun, None where it can.

    Nothing is asked of the source then: a new generation begins from nothing.

    Args:
        opened: its open event.
        now: what the source says of itself now.
        asker: who asks now.
        consistency: what holds the collection still.
    """
    before = Opening(**opened.facts["before"])
    if asker.is_forgotten(opened):
        told = finding("data_key_destroyed", found="a credential that was named under it")
        return Stopped(traversal="interrupted", stop_reason="data_key_destroyed", findings=(told,))
    if not asker.is_same(opened):
        told = finding(
            "principal_changed", expected="the credential it was begun with", found="another one"
        )
    elif (now.principal, now.tenant) != (before.principal, before.tenant):
        told = finding("principal_changed", expected=before.principal, found=now.principal)
    elif consistency == "change_token" and not now.is_at_token_of(before):
        told = finding("change_token_moved", expected=before.change_token, found=now.change_token)
        return Stopped(traversal="interrupted", stop_reason="change_token_moved", findings=(told,))
    else:
        return None
    return Stopped(traversal="interrupted", stop_reason="principal_changed", findings=(told,))
