"""Articles in HTML: the text a reader came for, of pages that are whole, broken and hostile."""

from __future__ import annotations

import time

import pytest

from motamot.knowledge import bounds, html
from motamot.knowledge.article import Unreadable

DOCUSAURUS = """<!doctype html><html lang="en"><head><meta charset="UTF-8"><title>Booking | Bus</title>
<link rel="canonical" href="https://bus.example/docs/booking"><script>window.x = "<p>not text</p>"</script>
<style>.a{color:red}</style></head><body><a class="skip-link" href="#m">Skip to content</a>
<nav class="navbar"><a href="/">Home</a> <a href="/p">Prices</a></nav>
<aside class="theme-doc-sidebar-container"><ul><li><a>Everything else</a></li></ul></aside>
<main id="m"><div class="row"><article><nav class="breadcrumbs"><ul><li>Docs</li></ul></nav>
<div class="theme-doc-markdown markdown"><header><h1>Booking a seat</h1></header>
<p>You can book&nbsp;<strong>two</strong> seats,
online.</p>
<ul><li>First</li><li>Then <em>this</em><ul><li>and that</li></ul></li></ul>
<h2 id="prices">Prices<a class="hash-link" href="#prices">#</a></h2>
<table><thead><tr><th>Who</th><th>How much</th></tr></thead><tbody><tr><td>Adult</td><td>3 &euro;</td></tr>
<tr><td>Child</td><td>1 &euro;</td></tr></tbody></table>
<pre><code>$ bus book
  --seats 2</code></pre>
<aside class="admonition"><p>Bring your card.</p></aside>
<details><summary>More</summary><p>Folded text.</p></details>
<div role="tabpanel" hidden><p>In a tab.</p></div></div>
<footer><a>Edit this page</a></footer></article>
<div class="table-of-contents"><a>Prices</a></div></div></main>
<footer class="footer">Imprint</footer><div hidden>Cookies?</div></body></html>"""

AFTER = "Bring your card.\n\nMore\n\nFolded text.\n\nIn a tab."

SPHINX = """<html><head><title>Booking &#8212; Bus 1.0</title></head><body>
<div class="related" role="navigation">next</div>
<div class="document"><div class="body" role="main"><section id="booking"><h1>Booking<a class="headerlink" href="#b">¶
</a></h1><p>You can book two seats, online, until one hour before.</p></section></div></div>
<div class="sphinxsidebar" role="navigation"><h3>Table of Contents</h3></div><div class="footer">by Sphinx</div>
</body></html>"""

WORDPRESS = """<html><head><title>Réserver &#8211; Bus</title></head><body><header id="masthead"><h1>Bus</h1></header>
<div id="content"><article class="post"><h1 class="entry-title">Réserver</h1><div class="entry-content">
<p>On r&eacute;serve une place en ligne jusqu&rsquo;&agrave; une heure avant le d&eacute;part.</p></div>
<div class="sharedaddy">Partager</div></article></div><aside id="secondary"><h2>Articles</h2></aside>
<form><input><button>Envoyer</button></form></body></html>"""


def text(page: str) -> str:
    return "\n".join(f"{one.headings}: {one.text}" for one in html.read(page).passages)


def test_of_a_page_of_docusaurus_the_article_is_read() -> None:
    page = html.read(DOCUSAURUS)
    assert (page.title, page.url) == ("Booking a seat", "https://bus.example/docs/booking")
    assert [(one.headings, one.text) for one in page.passages] == [
        ("", "You can book two seats, online.\n\n- First\n- Then this\n- and that"),
        (
            "Prices",
            f"Who | How much\nAdult | 3 €\nChild | 1 €\n\n$ bus book\n  --seats 2\n\n{AFTER}",
        ),
    ]


def test_of_a_page_of_sphinx_the_article_is_read() -> None:
    page = html.read(SPHINX)
    assert page.title == "Booking"
    assert text(SPHINX) == ": You can book two seats, online, until one hour before."


def test_of_a_page_of_wordpress_the_article_is_read() -> None:
    page = html.read(WORDPRESS)
    assert page.title == "Réserver"
    assert text(WORDPRESS) == ": On réserve une place en ligne jusqu’à une heure avant le départ."


def test_the_sites_own_name_is_no_title() -> None:
    page = html.read(
        "<title>Prices</title><div><h1>Bus</h1></div><main><p>A ticket for the whole day is three euros.</p></main>"
    )
    assert page.title == "Prices"


def test_a_heading_of_the_second_level_with_which_the_title_begins_is_the_title() -> None:
    page = html.read("<title>Prices - Bus</title><main><h2>Prices</h2><p>Three euros.</p></main>")
    assert (page.title, page.passages[0].headings) == ("Prices", "")


def test_a_main_part_without_text_is_not_filled_with_what_stands_around_it() -> None:
    assert (
        html.read("<main><h1>Empty</h1></main><div><h2>Keys</h2><p>Press S to search this book.</p></div>").passages
        == ()
    )


def test_a_page_without_any_structure_is_read_too() -> None:
    page = html.read("<title>Old page</title>Welcome<br>to our <b>help</b>.<p>Call us<p>or write")
    assert page.title == "Old page"
    assert page.passages[0].text == "Welcome\nto our help.\n\nCall us\n\nor write"


def test_tags_left_open_lose_nothing() -> None:
    page = "<main><h1>T</h1><ul><li>one<li>two</ul><table><tr><td>a<td>b<tr><td>c<td>d</table><p>end"
    assert text(page) == ": - one\n- two\n\na | b\nc | d\n\nend"
    assert "kept" in text("<body><nav>around<main><p>kept, though the nav was never closed, as it should have been")


def test_a_frame_that_scripts_fill_has_no_text() -> None:
    page = (
        '<title>App</title><body><div id="root"></div><script src="app.js"></script><noscript>Enable scripts</noscript>'
    )
    assert html.read(page).passages == ()


def test_an_empty_main_part_does_not_hide_the_text_beside_it() -> None:
    page = "<main></main><div><p>The text stands outside of the main part of this page, for some reason.</p></div>"
    assert "outside of the main part" in text(page)


@pytest.mark.parametrize("href", ["/relative", "javascript:alert(1)", "https://a b.example/", ""])
def test_a_canonical_address_counts_only_if_it_is_one(href: str) -> None:
    assert html.read(f'<link rel="canonical" href="{href}"><p>text</p>').url is None


@pytest.mark.parametrize(
    "part",
    [
        "<div>",
        "<",
        "<!--",
        "<a b=",
        "</p>",
        "<p ",
        "&",
        "&#",
        "<![CDATA[",
        "<?",
        "<!",
        "<b></i>",
        "<pre>",
        "<td>",
        "<svg/>",
    ],
)
def test_hostile_pages_take_no_long_time(part: str) -> None:
    began = time.thread_time()
    try:
        html.read(part * (bounds.PAGE_BYTES // 4 // len(part)))
    except Unreadable as error:
        assert "seconds" in error.why
    assert time.thread_time() - began < bounds.PAGE_CPU_SECONDS + 5


def test_a_page_nested_without_end_keeps_its_text() -> None:
    assert text("<div>" * 100_000 + "deep" + "</div>" * 100_000 + "<p>and on</p>") == ": deep\n\nand on"


def test_text_is_no_markup_again() -> None:
    assert text("<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>") == ": <script>alert(1)</script>"
