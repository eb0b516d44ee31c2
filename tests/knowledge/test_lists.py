"""robots.txt and sitemaps: what a site lets be read, and what it lists."""

from __future__ import annotations

import time

import pytest

from motamot.knowledge.article import Unreadable
from motamot.knowledge.robots import Robots
from motamot.knowledge.sitemap import looks_like_one, parse

NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


@pytest.mark.parametrize(
    ("rules", "path", "allowed"),
    [
        ("", "/a", True),
        ("User-agent: *\nDisallow: /", "/a", False),
        ("User-agent: *\nDisallow:", "/a", True),
        ("User-agent: *\nDisallow: /private", "/private/a", False),
        ("User-agent: *\nDisallow: /private", "/public", True),
        ("User-agent: *\nDisallow: /\nAllow: /help", "/help/a", True),
        ("User-agent: *\nAllow: /help\nDisallow: /help/old", "/help/old/a", False),
        ("User-agent: *\nAllow: /same\nDisallow: /same", "/same", True),
        ("User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf", False),
        ("User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf?x", True),
        ("User-agent: *\nDisallow: /*?print", "/a?print=1", False),
        ("User-agent: *\nDisallow: /r%C3%A9serv", "/réserver", False),
        ("User-agent: other\nDisallow: /", "/a", True),
        ("User-agent: motamot\nDisallow: /a\n\nUser-agent: *\nDisallow: /", "/b", True),
        ("User-agent: other\nUser-agent: Motamot\nDisallow: /a # no\n", "/a", False),
        ("user-agent:*\r\ndisallow:/a\r", "/a", False),
        ("\ufeffUser-agent: *\nDisallow: /a", "/a", False),
        ("nonsense\n:::\nDisallow: /a", "/a", True),
    ],
)
def test_robots_txt_is_followed(rules: str, path: str, allowed: bool) -> None:
    assert Robots.parse(rules).allows(f"https://help.example{path}") is allowed


def test_hostile_robots_take_no_long_time() -> None:
    began = time.process_time()
    robots = Robots.parse("User-agent: *\n" + f"Disallow: /{'*a' * 400}$\n" * 500)
    assert not robots.allows("https://help.example/" + "a" * 1_900)
    assert time.process_time() - began < 5


def test_a_sitemap_lists_pages_and_an_index_lists_sitemaps() -> None:
    pages = f"<urlset {NS}><url><loc> https://a.example/1?a=1&amp;b=2 </loc><lastmod>x</lastmod></url></urlset>"
    assert parse(pages.encode()).pages == ["https://a.example/1?a=1&b=2"]
    index = f"<sitemapindex {NS}><sitemap><loc>https://a.example/s.xml.gz</loc></sitemap></sitemapindex>"
    assert parse(index.encode()).sitemaps == ["https://a.example/s.xml.gz"]
    latin = '<?xml version="1.0" encoding="iso-8859-1"?><urlset><url><loc>https://a.example/é</loc></url></urlset>'
    assert parse(latin.encode("latin-1")).pages == ["https://a.example/é"]


def test_pictures_of_a_sitemap_are_no_pages() -> None:
    image = 'xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"'
    text = f"<urlset {NS} {image}><url><loc>https://a.example/1</loc>"
    text += "<image:image><image:loc>https://a.example/1.png</image:loc></image:image></url></urlset>"
    assert parse(text.encode()).pages == ["https://a.example/1"]


@pytest.mark.parametrize(
    "body",
    [
        b"<urlset><url><loc>https://a.example/1</loc></url>",
        b"<urlset><url></urlset>",
        b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><urlset>&b;</urlset>',
        b'<!DOCTYPE x SYSTEM "file:///etc/passwd"><urlset></urlset>',
        b'<?xml version="1.0" encoding="klingon"?><urlset></urlset>',
        b"<a>" * 100_000,
        b"",
    ],
)
def test_what_is_no_sitemap_is_told(body: bytes) -> None:
    with pytest.raises(Unreadable):
        parse(body)


def test_a_sitemap_is_known_by_its_first_element() -> None:
    assert looks_like_one(b'\xef\xbb\xbf<?xml version="1.0"?>\n<?xml-stylesheet href="x"?><urlset>')
    assert looks_like_one(b"<sitemapindex>")
    assert not looks_like_one(b"<!doctype html><p>Our urlset</p>")
    assert not looks_like_one(b"User-agent: *")
