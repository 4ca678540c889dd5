"""The support cases of the registry: fictional free text in which a few defects keep recurring.

Which case tells of which defect is known here and not written into the record, so that an
analysis can be measured against it.
"""

import json
from typing import Final

from scan_pipeline.simulator.customers import CUSTOMERS, CustomerMaker
from scan_pipeline.simulator.rows import EPOCH, Traits, draws, instant

SUPPORT_CASES: Final = 1_200
"""How many support cases the registry has before anything happens to it."""

_STATUSES: Final = ("open",) * 9 + ("pending",) * 3 + ("resolved",) * 5 + ("closed",) * 3
_PRIORITIES: Final = ("low", "normal", "normal", "normal", "high", "urgent")
_PRODUCTS: Final = ("billing", "portal", "exports", "mobile", "api")

# defect -> (product, subjects, what was seen, detail)
_DEFECTS: Final[
    dict[str, tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]]
] = {
    "invoice_charged_twice": (
        "billing",
        ("Charged twice for one invoice", "Duplicate charge on our card", "Invoice paid two times"),
        (
            "The same invoice was charged to our card twice within a few minutes.",
            "Our bank shows two identical charges for a single invoice.",
            "After the payment page timed out we were billed a second time for the same invoice.",
        ),
        (
            "Both charges carry the same invoice number.",
            "It happened after we pressed retry on the payment page.",
            "Only one of the two payments appears in the billing history.",
        ),
    ),
    "export_stops_at_first_page": (
        "exports",
        ("CSV export is incomplete", "Export contains only 100 rows", "Rows missing from export"),
        (
            "The customer export ends after exactly 100 rows although we have thousands.",
            "Our nightly export file stops at the first page of results.",
            "The CSV download leaves out everything after the first hundred rows.",
        ),
        (
            "No error is shown and the job says success.",
            "The row count on screen is right, the file is not.",
            "Last month the same export was complete.",
        ),
    ),
    "login_loop_after_sso": (
        "portal",
        ("SSO login loops for ever", "Cannot sign in after SSO change", "Redirect loop at sign-in"),
        (
            "After single sign-on the portal sends us back to the login page again and again.",
            "Signing in with SSO ends in a redirect loop.",
            "Users come back from the identity provider and land on the login form once more.",
        ),
        (
            "A private window does not help.",
            "Local accounts can sign in without trouble.",
            "It began when the session cookie setting was changed.",
        ),
    ),
    "timezone_shifts_dates": (
        "portal",
        ("Dates are off by one day", "Renewal date shows the day before", "Wrong day in reports"),
        (
            "Renewal dates in the portal are one day early for users west of Greenwich.",
            "The report shows every date shifted back by one day.",
            "Appointments near midnight appear on the day before.",
        ),
        (
            "The API returns the right timestamp in UTC.",
            "Changing the profile time zone makes no difference.",
            "Our office is in UTC-5.",
        ),
    ),
    "umlauts_broken_in_pdf": (
        "billing",
        ("Broken characters in PDF invoice", "Umlaute fehlen im PDF", "Name garbled on invoice"),
        (
            "Names with umlauts or accents come out as question marks on the PDF invoice.",
            "Auf der PDF-Rechnung wird aus »Müller« ein »M?ller«.",
            "The PDF invoice replaces every non-ASCII letter of our company name.",
        ),
        (
            "The portal itself shows the name correctly.",
            "Our tax office refuses these invoices.",
            "Plain ASCII names are fine.",
        ),
    ),
    "mobile_push_missing": (
        "mobile",
        ("No push notifications", "App stays silent", "Alerts do not arrive on the phone"),
        (
            "Since the last app update no push notification arrives on Android phones.",
            "The mobile app no longer alerts us when a case changes.",
            "Push messages stopped arriving after the update, on several devices.",
        ),
        (
            "Notifications are allowed in the system settings.",
            "E-mail alerts still work.",
            "Installing the app anew helps for one day.",
        ),
    ),
}  # fmt: skip

_SINGLES: Final = (
    ("Question about our contract", "Which notice period applies to our plan?"),
    ("Please add a user", "We need an additional account for a colleague in accounting."),
    ("Change of address", "Our registered office has moved; please update the billing address."),
    ("Feature wish: dark mode", "Several of us would like a dark theme in the portal."),
    ("How do I rotate an API key?", "The guide mentions a rotation page that I cannot find."),
    ("Feedback on the webinar", "The session on reports was helpful, thank you."),
    ("Request for a data processing agreement", "Our auditor asks for a signed agreement."),
    ("Slow dashboard on Friday", "On Friday afternoon the dashboard took a while to load."),
    ("Training for new staff", "Do you offer an introduction for people who start next month?"),
    ("VAT number missing", "Please print our VAT number on future invoices."),
    ("Cancel the reseller option", "We no longer resell and would like to leave the program."),
    ("Sandbox access", "Could you open a sandbox for our integration tests?"),
)
_OPENINGS: Final = ("Hello,", "Good morning,", "Hi team,", "Guten Tag,", "Bonjour,", "Hello again,")
_CLOSINGS: Final = (
    "Could you look into this?",
    "We would be glad of a quick answer.",
    "Screenshots are attached.",
    "Thank you for your help.",
    "This blocks our month-end closing.",
    "Please keep our reference in the subject.",
)


class SupportCaseMaker:
    """Makes support cases out of their numbers; case 1 is the oldest."""

    def traits(self, number: int) -> Traits:
        """Return the traits a case is born with; tenant and region are its customer's."""
        drawn = draws("case", number)
        customer = CustomerMaker().traits(_customer(drawn))
        # Three cases share a moment, so that timestamps tie here as well.
        created = EPOCH - 3_600 * (4_100 - 10 * (min(number, SUPPORT_CASES) // 3))
        return Traits(
            tenant=customer.tenant,
            region=customer.region,
            status=_STATUSES[drawn[3] % 20],
            schema_version=1,
            created=created,
            updated=created + 3_600 * (drawn[4] % 24),
        )

    def render(self, number: int, traits: Traits) -> bytes:
        """Return a case as compact JSON."""
        drawn = draws("case", number)
        product, subject, body = _text(number, drawn)
        return json.dumps(
            {
                "case_id": f"case-{number}",
                "customer_id": f"customer-{_customer(drawn)}",
                "tenant": traits.tenant,
                "region": traits.region,
                "status": traits.status,
                "schema_version": traits.schema_version,
                "priority": _PRIORITIES[drawn[5] % len(_PRIORITIES)],
                "product": product,
                "subject": subject,
                "body": body,
                "created_at": instant(traits.created),
                "updated_at": instant(traits.updated),
            },
            ensure_ascii=False,
            separators=(",", ":"),
        ).encode()


def defect_of(number: int) -> str | None:
    """Return the recurring defect a case tells of, or None where it stands alone."""
    picked = draws("case", number)[6] % 20
    # Uneven on purpose: the first is the commonest, the last the rarest.
    bounds = (3, 5, 7, 8, 9, 10)
    for name, bound in zip(_DEFECTS, bounds, strict=True):
        if picked < bound:
            return name
    return None


def _text(number: int, drawn: bytes) -> tuple[str, str, str]:
    opening = _OPENINGS[drawn[7] % len(_OPENINGS)]
    closing = _CLOSINGS[drawn[8] % len(_CLOSINGS)]
    defect = defect_of(number)
    if defect is None:
        subject, text = _SINGLES[drawn[9] % len(_SINGLES)]
        return _PRODUCTS[drawn[10] % len(_PRODUCTS)], subject, f"{opening}\n{text} {closing}"
    product, subjects, seen, details = _DEFECTS[defect]
    text = f"{seen[drawn[9] % 3]} {details[drawn[10] % 3]}"
    return product, subjects[drawn[11] % 3], f"{opening}\n{text} {closing}"


def _customer(drawn: bytes) -> int:
    return int.from_bytes(drawn[:3], "big") % CUSTOMERS + 1
