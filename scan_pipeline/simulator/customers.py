"""The customers of the registry: fictional, and the same in every process.

Numbers run from the most recent customer upwards into the past. The newest all went through the
new write path and carry schema version 3; thousands of older ones do not, and no early page says
so.
"""

import json
from typing import Final

from scan_pipeline.simulator.rows import EPOCH, Traits, draws, instant

CUSTOMERS: Final = 8_742
"""How many customers the registry has before anything happens to it."""

NEWEST_MIGRATED: Final = 640
"""Customers 1 to 640 all carry schema version 3: even a first page of 500 looks clean."""

_HOUR: Final = 3_600
_WEEK: Final = 7 * 24 * _HOUR

# One byte of hash picks from a table of 20: the share of a region is its share of the table.
_REGIONS: Final = ("eu",) * 8 + ("us",) * 6 + ("apac",) * 3 + ("latam",) * 2 + ("mea",)
_STATUSES: Final = ("active",) * 13 + ("suspended",) * 3 + ("closed",) * 4

# first name, family name
_FIRST: Final = (
    "Ana", "Zoë", "Łukasz", "Søren", "José", "Olena", "Jürgen", "Amélie", "Wei", "Priya", "Kwame",
    "Noah", "Mia", "Chloé", "Björn", "Fatima", "Hannah", "Diego", "Yuki", "Omar", "Ingrid", "Tomás",
    "Grace", "Ivan", "Élodie", "Rahul", "Sara", "Mateo", "Leila", "Peter", "Nguyễn", "Márta",
)  # fmt: skip
_FAMILY: Final = (
    "Silva", "Müller", "Kowalski", "Ørsted", "García", "Шевченко", "Dubois", "Chen", "Patel",
    "Mensah", "Johnson", "Novák", "Lindqvist", "Haddad", "O'Brien", "Tanaka", "Rossi", "Smith",
    "Popescu", "Nowak", "Fernández", "Kim", "Weiß", "Jensen", "Öztürk", "Santos", "Brown", "山田",
    "Andersson", "Ferreira", "van Dijk", "Ndlovu",
)  # fmt: skip

# city, postcode prefix, country, street
_CITIES: Final[dict[str, tuple[tuple[str, str, str, str], ...]]] = {
    "eu": (
        ("Lyon", "690", "FR", "Rue de l'Église"),
        ("München", "803", "DE", "Schäfflerstraße"),
        ("Kraków", "310", "PL", "ulica Długa"),
        ("Malmö", "211", "SE", "Östergatan"),
    ),
    "us": (
        ("Portland", "972", "US", "Alder Street"),
        ("Austin", "787", "US", "Congress Avenue"),
        ("Columbus", "432", "US", "High Street"),
    ),
    "apac": (
        ("東京", "100", "JP", "千代田"),
        ("Pune", "411", "IN", "M.G. Road"),
        ("Đà Nẵng", "550", "VN", "Trần Phú"),
    ),
    "latam": (
        ("São Paulo", "013", "BR", "Rua Augusta"),
        ("Bogotá", "110", "CO", "Carrera Séptima"),
    ),
    "mea": (
        ("Accra", "002", "GH", "Oxford Street"),
        ("İzmir", "350", "TR", "Atatürk Caddesi"),
    ),
}

_TAGS: Final = ("newsletter", "vip", "reseller", "paper-invoice", "beta", "net-30", "überprüft")

# JSON literals. One is written with escapes on purpose: equal in meaning, other in bytes.
_NOTES: Final = tuple(
    json.dumps(text, ensure_ascii=ascii_only)
    for text, ascii_only in (
        ("Asked for invoices by post.", False),
        ("Prefers to be called after 15:00.", False),
        ('Says the portal shows "access denied" on Mondays.', False),
        ("Two contacts:\n- accounting\n- the owner", False),
        ("Überweisung statt Lastschrift gewünscht.", False),
        ("Moved from the old billing system; 50 % discount until renewal.", False),
        ("Crème brûlée für alle: the café account.", True),
        ("Path on their share: C:\\exports\\daily", False),
        ("Happy with support 🙂", False),
    )
)


class CustomerMaker:
    """Makes customers out of their numbers."""

    def traits(self, number: int) -> Traits:
        """Return the traits a customer is born with.

        Four customers share each moment of creation, and a nightly job stamped whole groups of
        older ones at once: timestamps tie across page edges.
        """
        drawn = draws("customer", number)
        created = EPOCH - 18 * _HOUR - (number // 4) * 5 * _HOUR
        nightly = EPOCH - 7 * _HOUR - (drawn[4] % 60) * _WEEK
        return Traits(
            tenant="acme" if drawn[0] % 5 < 3 else "globex",
            region=_REGIONS[drawn[1] % 20],
            status=_STATUSES[drawn[2] % 20],
            schema_version=_schema_version(number, drawn[3]),
            created=created,
            updated=max(created, nightly),
        )

    def render(self, number: int, traits: Traits) -> bytes:
        """Return a customer as compact JSON."""
        drawn = draws("customer", number)
        first, family = _FIRST[drawn[5] % 32], _FAMILY[drawn[6] % 32]
        city, postcode, country, street = _CITIES[traits.region][
            drawn[7] % len(_CITIES[traits.region])
        ]
        cents = int.from_bytes(drawn[8:11], "big") - 1_500_000
        balance = f"{'-' if cents < 0 else ''}{abs(cents) // 100}.{abs(cents) % 100:02d}"
        limit = "null" if drawn[11] % 4 == 0 else f'"{drawn[11] * 250}.00"'
        # Above 2^53, where a double cannot tell neighbours apart, and within signed 64 bits.
        external = 2**53 + 1 + int.from_bytes(drawn[12:19], "big") * 127
        notes = _NOTES[drawn[19] % len(_NOTES)] if drawn[20] % 5 < 2 else "null"
        tags = ",".join(
            f'"{_TAGS[(drawn[21] + step) % len(_TAGS)]}"' for step in range(drawn[22] % 4)
        )
        return (
            f'{{"customer_id":"customer-{number}","tenant":"{traits.tenant}",'
            f'"region":"{traits.region}","status":"{traits.status}",'
            f'"schema_version":{traits.schema_version},"name":"{first} {family}",'
            f'"email":"{first.lower()}.{number}@example.com","balance":{balance},'
            f'"credit_limit":{limit},"external_id":{external},'
            f'"created_at":"{instant(traits.created)}","updated_at":"{instant(traits.updated)}",'
            f'"address":{{"street":"{drawn[23] % 90 + 1} {street}","city":"{city}",'
            f'"postcode":"{postcode}{drawn[24] % 100:02d}","country":"{country}"}},'
            f'"notes":{notes},"tags":[{tags}]}}'
        ).encode()


def _schema_version(number: int, drawn: int) -> int:
    if number <= NEWEST_MIGRATED:
        return 3
    if drawn in {7, 77, 107, 207} and number > 5_000:
        return 1
    share_left = 25 + 50 * min(number, CUSTOMERS) // CUSTOMERS
    return 2 if drawn % 100 < share_left else 3
