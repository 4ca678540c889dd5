"""The next link protocol: used whole, held to what we asked for, and never followed away."""

import json
import socket
import threading
from contextlib import contextmanager

import pytest

from scan_pipeline.core.errors import ContractError, DestinationRefusedError, ProtocolError
from scan_pipeline.core.page import End, Next
from scan_pipeline.sources.catalogue import ScanFileError
from scan_pipeline.sources.http.destinations import Destinations
from scan_pipeline.sources.http.link_header import target_of
from scan_pipeline.sources.http.uri_references import resolved
from scan_pipeline_tests.sources.over_http import Asking, Killed, answered, scan_of, walk

URL = "https://api.test/v1/things"
IN_BODY = {"at": "next", "ends_when": [{"is": "null"}, {"is": "absent"}]}
IN_HEADER = {"relation": "next", "ends_when": [{"is": "no_next_link"}]}
SECRET = {"TOKEN": "the secret itself"}
AUTH = {"bearer": {"env": "TOKEN"}}


def source(following=IN_BODY, **facts):
    return {
        "protocol": "next_link",
        "url": URL,
        "records_at": "items",
        "next": following,
        **facts,
    }


def linking(link, **more):
    """A source whose every page names this link."""
    return lambda _: answered({"items": [{"id": "a"}], "next": link, **more})


@pytest.fixture
def listener():
    """A second server: whoever connects to it is counted, and gets no answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        heard = []

        def listen():
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                heard.append(peer)
                peer.close()

        threading.Thread(target=listen, daemon=True).start()
        yield server.getsockname()[1], heard


@contextmanager
def serving(answer):
    """A first server, on a real port; `answer` makes status, headers and body of a path."""
    asked = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                with peer:
                    head = b""
                    while b"\r\n\r\n" not in head:
                        head += peer.recv(65536)
                    asked.append(head.decode())
                    status, headers, body = answer(head.split()[1].decode())
                    lines = [f"{name}: {value}" for name, value in headers.items()]
                    lines += [f"content-length: {len(body)}", "connection: close"]
                    text = "\r\n".join([f"HTTP/1.1 {status} x", *lines, "", ""])
                    peer.sendall(text.encode() + body)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", asked


# how it advances


@pytest.mark.parametrize(
    "link",
    [
        "https://api.test/v2/other?q=%E3%81%82&p=2",
        "https://api.test/v1/things?$skiptoken=X%2744537%27&sig=a%2Fb+c%3D",
        "https://api.test/v1/a%2Fb;v=1?x=%zz",
    ],
)
def test_link_is_used_whole_and_its_escapes_untouched(link):
    here = Asking(source(), linking(link))
    page = here.fetch()

    here.fetch(page.continuation.token)

    assert page.continuation == Next(token=link)
    assert here.last.url.raw_path.decode() == link.removeprefix("https://api.test")


def test_our_parameters_are_not_added_again_and_our_headers_are():
    here = Asking(
        source(params={"$filter": "a eq 'b'"}, headers={"consistencylevel": "eventual"}),
        linking("/v1/things?$filter=a%20eq%20'b'&page=2"),
    )
    page = here.fetch()

    here.fetch(page.continuation.token)

    assert here.last.url.params.multi_items() == [("$filter", "a eq 'b'"), ("page", "2")]
    assert here.last.headers["consistencylevel"] == "eventual"


@pytest.mark.parametrize(
    ("link", "means"),
    [
        ("?page=2", "https://api.test/v1/things?page=2"),
        ("/v1/things?page=2", "https://api.test/v1/things?page=2"),
        ("things?page=2", "https://api.test/v1/things?page=2"),
        ("../v2/things", "https://api.test/v2/things"),
        ("//api.test/x", "https://api.test/x"),
        ("https://api.test/x#part", "https://api.test/x"),
    ],
)
def test_relative_link_is_resolved_against_the_page_it_came_from(link, means):
    assert Asking(source(), linking(link)).fetch().continuation == Next(token=means)


def test_later_relative_link_is_resolved_against_the_later_page():
    here = Asking(source(), linking("?page=3"))

    page = here.fetch("https://api.test/elsewhere/list?page=2")

    assert page.continuation == Next(token="https://api.test/elsewhere/list?page=3")


RFC_3986 = "http://a/b/c/d;p?q"


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        *[("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/")],
        *[("/g", "http://a/g"), ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y")],
        *[("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q"), (";x", "http://a/b/c/;x")],
        *[("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("..", "http://a/b/")],
        *[("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../../g", "http://a/g")],
        *[("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g.")],
        *[("..g", "http://a/b/c/..g"), ("./g/.", "http://a/b/c/g/"), ("g/../h", "http://a/b/c/h")],
        *[("g;x=1/../y", "http://a/b/c/y"), ("g?y/../x", "http://a/b/c/g?y/../x")],
    ],
)
def test_references_resolve_as_the_examples_of_rfc_3986(reference, target):
    """Section 5.4 of the RFC."""
    assert resolved(reference, base=RFC_3986) == target


@pytest.mark.parametrize(
    ("field", "target"),
    [
        ('<https://api.test/9>; rel="last", </2?a=b&limit=100>;rel="next"', "/2?a=b&limit=100"),
        ("</2>; rel=next", "/2"),
        ('</2>; title="a, <b>; rel=x"; rel="prev next"', "/2"),
        ('</2>; REL="Next"; type="text/html"', "/2"),
        ('</2>; rel="next"; rel="last"', "/2"),
        ('</1>; rel="last"; rel="next"', None),
        ('</2?a,b>; rel="next"', "/2?a,b"),
        ('</2>; rel="next"; anchor="/other"', None),
        (r'</2>; title="say \"hi\", you"; rel="next"', "/2"),
        (' , </2>; rel="next" , ', "/2"),
        ('</1>; rel="prev"', None),
        ("", None),
        (None, None),
    ],
)
def test_link_header_is_read_as_rfc_8288_has_it(field, target):
    assert target_of(field, relation="next") == target


@pytest.mark.parametrize(
    "field",
    ["/2; rel=next", '<unclosed; rel="next"', '</2>; rel="next" more', '</2>; rel="next'],
)
def test_header_that_is_no_link_header_is_not_the_end(field):
    with pytest.raises(ProtocolError) as refused:
        target_of(field, relation="next")

    assert refused.value.code == "continuation_invalid"


def test_two_next_links_are_refused():
    with pytest.raises(ProtocolError, match="2 targets"):
        target_of('</2>; rel="next", </3>; rel="next"', relation="next")


def test_link_header_on_several_lines_is_one_list():
    lines = [("link", '</1>; rel="self"'), ("link", '<?after=x>; rel="next"')]
    here = Asking(source(IN_HEADER), lambda _: answered({"items": []}, headers=lines))

    assert here.fetch().continuation == Next(token=f"{URL}?after=x")


# how it ends


@pytest.mark.parametrize("at", ["@odata.nextLink", ["@odata.nextLink"]])
def test_key_with_a_dot_is_one_key(at):
    here = Asking(
        source({"at": at, "ends_when": [{"is": "absent"}]}),
        lambda _: answered({"items": [], "@odata.nextLink": "?s=2"}),
    )

    assert here.fetch().continuation == Next(token=f"{URL}?s=2")


def test_page_without_a_next_link_is_the_end_where_that_is_declared():
    here = Asking(source(IN_HEADER), lambda _: answered({"items": []}))

    assert here.fetch().continuation == End(signal="no_next_link")


def test_missing_link_is_an_error_where_it_is_not():
    here = Asking(
        source({"at": "next", "ends_when": [{"is": "null"}]}), lambda _: answered({"items": []})
    )

    with pytest.raises(ProtocolError) as refused:
        here.fetch()

    assert refused.value.code == "continuation_missing"


@pytest.mark.parametrize("link", [17, True, {"href": "/2"}, "", "  "])
def test_link_that_is_no_text_is_refused(link):
    with pytest.raises(ProtocolError) as refused:
        Asking(source(), linking(link)).fetch()

    assert refused.value.code == "continuation_invalid"


def test_left_over_self_link_is_ignored_where_a_flag_is_declared_to_bind():
    flag = {"at": "next", "ends_when": [{"at": "more", "is": "false"}]}
    here = Asking(source(flag), linking("?p=2", more=False))

    assert here.fetch().continuation == End(signal="more:false")


def test_links_that_go_round_stop_the_walk(tmp_path):
    pages = {"": ("a", "?p=2"), "p=2": ("b", "?p=3"), "p=3": ("c", "?p=2")}

    def answer(request):
        key, link = pages[request.url.query.decode()]
        return answered({"items": [{"id": key}], "next": link})

    came = walk(source(), answer, tmp_path)

    assert came.verdict[:2] == ("failed", "failed")
    assert "cursor_repeated" in came.codes
    assert came.keys == ["a", "b", "c"]


# what it must not change


@pytest.mark.parametrize(
    "link",
    ["?status=open&p=2", "?p=2&status=open&status=all", "?%73tatus=open&p=2", "?status=&p=2"],
)
def test_link_that_changes_a_parameter_of_ours_is_refused(link):
    here = Asking(source(params={"status": "all"}), linking(link))
    token = here.fetch().continuation.token

    with pytest.raises(ProtocolError) as refused:
        here.fetch(token)

    assert refused.value.code == "request_changed"
    assert len(here.requests) == 1


def test_filter_in_the_address_is_ours_as_well():
    here = Asking(source(url=f"{URL}?status=all"), linking("?status=open&p=2"))
    token = here.fetch().continuation.token

    with pytest.raises(ProtocolError, match="another status"):
        here.fetch(token)


def test_link_may_leave_ours_out_and_may_change_the_page_size():
    here = Asking(
        source(params={"status": "all"}, page_size={"send_as": "limit", "value": 500}),
        linking("?limit=100&token=x"),
    )

    here.fetch(here.fetch().continuation.token)

    assert here.sent == {"limit": "100", "token": "x"}


PINNED = {"snapshot": {"at": "version", "send_as": "version"}}


def test_link_must_repeat_the_pin():
    contract = {"key": ["id"], "consistency": "snapshot"}
    here = Asking(source(**PINNED), linking("?p=2"), contract=contract)

    with pytest.raises(ProtocolError, match="does not repeat version"):
        here.fetch(f"{URL}?p=2", pin="v1")
    with pytest.raises(ProtocolError, match="another version"):
        here.fetch(f"{URL}?p=2&version=v2", pin="v1")
    here.fetch(f"{URL}?p=2&version=v1", pin="v1")
    assert here.sent == {"p": "2", "version": "v1"}


# where it must not lead


@pytest.mark.parametrize(
    "link",
    [
        "http://api.test/v1/things?p=2",
        "https://api.test:8443/v1/things",
        "https://api.test.evil.test/v1/things",
        "https://evil.test/@api.test/",
        "//evil.test/v1/things",
        "https://api.test@evil.test/",
        "https://user:password@api.test/v1/things",
        "file:///etc/passwd",
        "https:///v1/things",
        "javascript:alert(1)",
        "https://api.test\\@evil.test/",
        "https://api.test/\n/x",
    ],
)
def test_link_away_from_the_origin_is_refused_before_anything_is_sent(link):
    here = Asking(source(auth=AUTH), linking(link), environ=SECRET)
    token = here.fetch().continuation.token

    with pytest.raises(DestinationRefusedError):
        here.fetch(token)

    assert len(here.requests) == 1


@pytest.mark.parametrize(
    ("link", "more"),
    [
        ("https://evil.test/k-4711?after=k-4711", {}),
        ("https://k-4711@api.test/v1/things", {}),
        ("https://api.test/k-4711/things?status=open&after=k-4711", {"status": "all"}),
        ("https:///k-4711", {}),
    ],
)
def test_link_that_is_refused_is_told_without_what_it_carries(link, more):
    """A path or query may hold the key of the last record."""
    here = Asking(source(auth=AUTH, params=more), linking(link), environ=SECRET)

    with pytest.raises(ProtocolError) as refused:
        here.fetch(here.fetch().continuation.token)

    assert "4711" not in str(refused.value)


def test_origin_is_the_same_in_another_spelling():
    here = Asking(source(), linking("HTTPS://API.test:443/v1/things?p=2"))

    here.fetch(here.fetch().continuation.token)

    assert here.last.url.host == "api.test"


def test_other_origin_that_the_contract_names_is_followed_without_credentials():
    following = {**IN_BODY, "origins": ["https://pages.test"]}
    here = Asking(
        source(following, auth=AUTH, headers={"x-version": "1"}),
        linking("https://pages.test/2?signed=abc"),
        environ=SECRET,
    )

    here.fetch(here.fetch().continuation.token)

    assert "authorization" in here.requests[0].headers
    assert here.last.url.host == "pages.test"
    assert "authorization" not in here.last.headers
    assert here.last.headers["x-version"] == "1"


@pytest.mark.parametrize(
    ("origin", "kind"),
    [
        ("http://127.0.0.1:9", "loopback"),
        ("http://localhost:9", "loopback"),
        ("http://[::1]:9", "loopback"),
        ("http://[::ffff:127.0.0.1]:9", "loopback"),
        ("http://169.254.169.254", "link-local"),
        ("http://[fe80::1]", "link-local"),
        ("http://10.1.2.3", "private"),
        ("http://192.168.0.1", "private"),
        ("http://[fd00::1]", "private"),
    ],
)
def test_target_inside_our_network_is_refused_even_where_it_is_named(origin, kind):
    here = Asking(source({**IN_BODY, "origins": [origin]}, auth=AUTH), linking(f"{origin}/x"))

    with pytest.raises(DestinationRefusedError, match=kind):
        here.fetch(f"{origin}/x")

    assert here.requests == []


def test_source_inside_our_network_may_link_within_it():
    following = {**IN_BODY, "origins": ["http://10.0.0.2"]}
    here = Asking(source(following, url="http://10.0.0.1/things"), linking("http://10.0.0.2/x"))

    here.fetch(here.fetch().continuation.token)

    assert here.last.url.host == "10.0.0.2"


ADDRESSES = {"inside.test": ("10.0.0.9",), "outside.test": ("93.184.216.34", "2606:2800::1")}


@pytest.mark.parametrize(
    ("home", "target", "told"),
    [
        ("outside.test", "inside.test", "private"),
        ("inside.test", "inside.test", None),
        ("outside.test", "outside.test", None),
        ("outside.test", "unknown.test", None),
    ],
)
def test_named_host_is_looked_up_before_it_is_asked(home, target, told):
    """One without an address is left to the connection, which may go through a proxy."""
    destinations = Destinations(
        f"https://{home}",
        others=(f"https://{target}:8443",),
        resolve=lambda host: ADDRESSES.get(host, ()),
    )

    if told is None:
        assert destinations.is_home(f"https://{target}:8443/x") is False
    else:
        with pytest.raises(DestinationRefusedError, match=told):
            destinations.is_home(f"https://{target}:8443/x")


def test_named_second_server_is_asked_and_given_no_credential(tmp_path):
    last = json.dumps({"items": [{"id": "b"}], "next": None}).encode()

    with serving(lambda _: (200, {}, last)) as (other, heard):
        page = json.dumps({"items": [{"id": "a"}], "next": f"{other}/2?signed=x"}).encode()
        with serving(lambda _: (200, {}, page)) as (base, asked):
            came = walk(
                source({**IN_BODY, "origins": [other]}, url=f"{base}/things", auth=AUTH),
                None,
                tmp_path,
                environ=SECRET,
            )

    assert came.keys == ["a", "b"]
    assert "authorization: bearer the secret itself" in asked[0].lower()
    assert len(heard) == 1
    assert "authorization" not in heard[0].lower()


def test_foreign_link_reaches_no_second_server(tmp_path, listener):
    """Two servers on real ports: the second is named by the first and hears nothing."""
    port, heard = listener
    body = {"items": [{"id": "a"}], "next": f"http://127.0.0.1:{port}/steal"}

    with serving(lambda _: (200, {}, json.dumps(body).encode())) as (base, asked):
        came = walk(source(url=f"{base}/things", auth=AUTH), None, tmp_path, environ=SECRET)

    assert came.verdict == ("failed", "failed", "observed_pages_only")
    assert "destination_refused" in came.codes
    assert came.keys == ["a"]
    assert "the secret itself" in asked[0]
    assert heard == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_reaches_no_second_server(tmp_path, listener, status):
    port, heard = listener
    target = {"location": f"http://127.0.0.1:{port}/steal"}

    with serving(lambda _: (status, target, b"")) as (base, asked):
        came = walk(source(url=f"{base}/things", auth=AUTH), None, tmp_path, environ=SECRET)

    assert "destination_refused" in came.codes
    assert len(asked) == 1
    assert heard == []


def test_message_of_a_refused_link_shows_no_parameter():
    here = Asking(source(), linking("https://evil.test/x?token=abcdef"))
    token = here.fetch().continuation.token

    with pytest.raises(DestinationRefusedError) as refused:
        here.fetch(token)

    assert "abcdef" not in str(refused.value)


# what a scan file may say


@pytest.mark.parametrize(
    "following",
    [
        {**IN_BODY, "relation": "next"},
        {"ends_when": [{"is": "absent"}]},
        {**IN_BODY, "origins": ["pages.test"]},
        {"at": "next", "ends_when": []},
    ],
)
def test_scan_file_that_says_no_one_place_for_the_link_is_refused(following):
    with pytest.raises(ScanFileError):
        scan_of(source(following))


def test_link_is_not_followed_by_post():
    with pytest.raises(ContractError, match="GET"):
        scan_of(source(method="POST", body={"a": 1}))


# what is taken up again


def test_walk_that_was_killed_goes_on_from_its_stored_link(tmp_path):
    asked = []

    def answer(request):
        number = int(dict(request.url.params).get("p", "1"))
        asked.append(number)
        if asked == [1, 2, 3]:
            raise Killed
        link = f"?p={number + 1}" if number < 4 else None
        return answered({"items": [{"id": f"k{number}"}], "next": link})

    one_by_one = {"commit_pages": 1}
    with pytest.raises(Killed):
        walk(source(), answer, tmp_path, operation=one_by_one)
    came = walk(source(), answer, tmp_path, operation=one_by_one)

    assert came.keys == ["k1", "k2", "k3", "k4"]
    assert came.verdict[0] == "finished"
    assert asked[3:] in ([2, 3, 4], [1, 2, 3, 4])


def test_response_is_asked_for_with_the_coding_whose_end_we_check():
    here = Asking(source(), linking(None))

    here.fetch()

    assert here.last.headers["accept-encoding"] == "gzip"
