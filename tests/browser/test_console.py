"""The console as a person uses it: the mission's scenario, every way to search, sources, languages, keys, hostile text."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser, Error, Page, expect

from tests.browser.conftest import NewPage
from tests.support.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="session")]

LIKES = "我喜欢路小雨"
VISIT = "我今天去了上海博物馆，看到了青铜器展览"
PLAN = "下周六我打算带妈妈再去看一次"


async def owned_by(page: Page, name: str) -> None:
    """Choose the owner, and wait until the page shows that it has nothing yet."""
    await page.fill("#owner [name=owner]", name)
    await expect(page.locator("#messages .empty")).to_be_visible()


async def send(page: Page, text: str) -> None:
    await page.fill("#content", text)
    await page.click("#send")
    await expect(page.locator("#messages .message p").first).to_have_text(text)


async def flush(page: Page) -> None:
    await page.click("#flush")
    await expect(page.locator("#write-notice .notice.good")).to_contain_text("MemCell")


async def search(page: Page, query: str, method: str = "hybrid") -> None:
    async with page.expect_response("**/memories/search") as answered:
        await page.fill("#query", query)
        await page.press("#query", "Enter")
        await answered.value
    if not await page.is_checked(f"[name=method][value={method}]"):
        async with page.expect_response("**/memories/search") as answered:
            await page.check(f"[name=method][value={method}]")
            await answered.value


async def delta(page: Page, counter: str, said: str | re.Pattern[str]) -> None:
    await expect(page.locator(f"[data-counter={counter}] .delta")).to_have_text(said)


async def no_delta(page: Page, counter: str) -> None:
    await expect(page.locator(f"[data-counter={counter}] .delta")).to_have_count(0)


async def test_the_missions_table_of_counters_and_its_searches(server: Server, new_page: NewPage) -> None:
    """发送 -> raw_messages +1; Flush -> memcells +1, the others +N, raw_messages -N; the searches find what was said."""
    some = re.compile(r"\+[1-9]\d*")
    async with new_page(server.url) as page:
        await owned_by(page, "table")
        await send(page, LIKES)
        await expect(page.locator("#write-notice")).to_contain_text("accumulated")
        await expect(page.locator("#messages [data-state=accumulated]")).to_have_count(1)
        await delta(page, "raw_messages", "+1")
        for counter in ("memcells", "episodic_memories", "atomic_facts", "milvus"):
            await no_delta(page, counter)

        await send(page, VISIT)
        await delta(page, "raw_messages", "+1")
        await flush(page)
        await delta(page, "memcells", "+1")
        await delta(page, "episodic_memories", "+1")
        for counter in ("atomic_facts", "milvus", "elasticsearch"):
            await delta(page, counter, some)
        await delta(page, "raw_messages", "−2")
        await expect(page.locator("#messages [data-state=consumed]")).to_have_count(2)

        await search(page, "博物馆")
        await expect(page.locator("#hits .card").first).to_contain_text("上海博物馆")
        await expect(page.locator("#hits .card .score").first).to_have_text(re.compile(r"[01]\.\d\d"))
        await expect(page.locator("#hits [data-type=episodic_memory]")).to_contain_text("青铜器")
        await search(page, "我喜欢谁")
        await expect(page.locator("#hits .card").first).to_contain_text(LIKES)


async def test_text_typed_while_a_message_is_sent_stays(server: Server, new_page: NewPage) -> None:
    async with new_page(server.url) as page:
        await owned_by(page, "typist")
        await page.fill("#content", LIKES)
        await page.click("#send")
        await page.fill("#content", VISIT)
        await expect(page.locator("#messages .message p").first).to_have_text(LIKES)
        await expect(page.locator("#content")).to_have_value(VISIT)


@pytest.mark.parametrize("method", ["keyword", "vector", "hybrid", "agentic"])
async def test_every_method_answers(server: Server, new_page: NewPage, method: str) -> None:
    async with new_page(server.url) as page:
        await owned_by(page, f"methods-{method}")
        await send(page, LIKES)
        await send(page, VISIT)
        await flush(page)
        await search(page, "上海博物馆的展览", method)
        await expect(page.locator("#hits .card").first).to_contain_text("博物馆")
        parts = page.locator("#hits .parts").first
        await expect(parts).to_contain_text("keyword" if method == "keyword" else "vector")
        degraded = page.locator("#search-notice .notice.warn")
        if method == "agentic":  # no language model here, and the page says what stood in for it
            await expect(degraded).to_contain_text("agentic")
        else:
            await expect(degraded).to_have_count(0)


async def test_a_memory_opens_at_its_sources(server: Server, new_page: NewPage) -> None:
    async with new_page(server.url) as page:
        await owned_by(page, "sources")
        for text in (LIKES, VISIT, PLAN):
            await send(page, text)
        await flush(page)
        await page.click("#tab-browse")
        await page.select_option("#browse [name=type]", "atomic_fact")
        await expect(page.locator("#rows .card")).to_have_count(3)
        await page.locator("#rows .card", has_text="青铜器").get_by_role("button").click()
        drawer = page.locator("#memory")
        await expect(drawer.locator(".message.source p")).to_have_text([VISIT])
        await expect(drawer.locator(".message.source header")).to_contain_text("sources")
        await expect(drawer.locator(".message.context p")).to_have_text([LIKES, PLAN])
        await expect(drawer).to_contain_text("memcell_id")
        await drawer.locator(".facts .link").click()  # the parent: the episode
        await expect(drawer.locator(".message.source p")).to_have_text([LIKES, VISIT, PLAN])
        await page.keyboard.press("Escape")
        await expect(drawer).to_be_hidden()

        await page.select_option("#browse [name=type]", "raw_message")
        await page.select_option("#browse [name=order]", "asc")
        await expect(page.locator("#rows .card p")).to_have_text([LIKES, VISIT, PLAN])
        await expect(page.locator("#place")).to_contain_text("1–3")


async def test_pages_turn(server: Server, new_page: NewPage) -> None:
    async with new_page(server.url) as page:
        await owned_by(page, "pages")
        for number in range(11):
            await send(page, f"第 {number} 条")
        await page.click("#tab-browse")
        await page.select_option("#browse [name=type]", "raw_message")
        await expect(page.locator("#rows .card")).to_have_count(10)
        await expect(page.locator("#back")).to_be_disabled()
        await page.click("#on")
        await expect(page.locator("#rows .card")).to_have_text([re.compile("第 0 条")])
        await expect(page.locator("#on")).to_be_disabled()
        await page.locator("#rows .card").get_by_role("button").click()
        await expect(page.locator("#memory .notice")).to_contain_text("Flush")  # in no topic yet


async def test_a_group(server: Server, new_page: NewPage) -> None:
    async with new_page(server.url) as page:
        await page.check("[name=scene][value=group]")
        await owned_by(page, "hikers")
        await page.fill("#content", "我对芒果过敏")
        await page.click("#send")
        await expect(page.locator("#write-notice .notice.warn")).to_contain_text("sender_id")
        await expect(page.locator("#write [name=sender]")).to_be_focused()
        await page.fill("#write [name=sender]", "小林")
        await send(page, "我对芒果过敏")
        await expect(page.locator("#messages .message b")).to_have_text("小林")
        await flush(page)
        await search(page, "谁不能吃芒果")
        await expect(page.locator("#hits .card").first).to_contain_text("芒果")


async def test_hostile_text_stays_text(server: Server, new_page: NewPage) -> None:
    hostile = '<img src=x onerror="window.ran=1"><script>window.ran=1</script>'
    async with new_page(server.url) as page:
        await owned_by(page, "hostile <b>")
        await send(page, hostile)
        await flush(page)
        await search(page, "onerror")
        await expect(page.locator("#hits .card").first).to_contain_text("onerror")
        await page.locator("#hits .card .open").first.click()
        await expect(page.locator("#memory .message p")).to_have_text(hostile)
        assert await page.locator("main img, main script, dialog img, dialog script").count() == 0
        assert await page.evaluate("window.ran") is None


async def test_the_browser_itself_refuses_markup_made_of_text(server: Server, browser: Browser) -> None:
    page = await browser.new_page()
    await page.goto(f"{server.url}/console")
    with pytest.raises(Error, match="TrustedHTML"):
        await page.evaluate("document.body.innerHTML = '<p>'")
    await page.close()


async def test_the_language_is_the_browsers_until_it_is_chosen(server: Server, new_page: NewPage) -> None:
    async with new_page(server.url, locale="en-US") as page:
        await expect(page.locator("#send")).to_have_text("Send")
        await expect(page.locator("html")).to_have_attribute("lang", "en")
        await page.select_option("#language", "zh")
        await expect(page.locator("#send")).to_have_text("发送")
        await page.reload()
        await expect(page.locator("#send")).to_have_text("发送")
        words = await page.evaluate(
            "import('./console/words.js').then(({WORDS}) => [Object.keys(WORDS.zh).sort(), Object.keys(WORDS.en).sort()])"
        )
        assert words[0] == words[1]
        assert all(await page.locator("[data-t]").all_text_contents())
    async with new_page(server.url, locale="zh-TW") as page:
        await expect(page.locator("#send")).to_have_text("发送")


async def test_the_keyboard_is_enough(server: Server, new_page: NewPage) -> None:
    async with new_page(server.url) as page:
        await owned_by(page, "keyboard")
        await page.focus("#content")
        await page.keyboard.insert_text(LIKES)
        await page.keyboard.press("Control+Enter")
        await expect(page.locator("#messages .message p")).to_have_text(LIKES)
        await expect(page.locator("#content")).to_be_focused()
        await page.focus("#flush")
        await page.keyboard.press("Enter")
        await expect(page.locator("#write-notice")).to_contain_text("MemCell")
        await expect(page.locator("#flush")).to_be_focused()
        await page.focus("#tab-search")
        await page.keyboard.press("ArrowRight")
        await expect(page.locator("#tab-browse")).to_be_focused()
        await expect(page.locator("#rows .card")).to_have_count(1)
        await page.focus("#rows .card .open")
        await page.keyboard.press("Enter")
        await expect(page.locator("#memory")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.locator("#rows .card .open")).to_be_focused()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 820, 1280])
async def test_nothing_runs_over_the_edge(server: Server, new_page: NewPage, width: int, theme: str) -> None:
    options = {"viewport": {"width": width, "height": 900}, "color_scheme": theme}
    async with new_page(server.url, locale="en-US", **options) as page:
        await expect(page.locator("[data-counter]")).to_have_count(8)
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        background = await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", background))) > 384) == (theme == "light")


async def test_an_error_of_the_api_is_shown(server: Server, new_page: NewPage) -> None:
    async with new_page(server.url, locale="en-US", refused=1) as page:
        await owned_by(page, "gen_mine")
        await page.fill("#content", LIKES)
        await page.click("#send")
        shown = page.locator("#write-notice [role=alert]")
        await expect(shown).to_contain_text("ids that begin with gen_ are made by the server")
        await expect(shown.locator(".trace")).to_have_text(re.compile(r"422 · VALIDATION_ERROR · \w+"))
        await expect(page.locator("#content")).to_have_value(LIKES)  # what was not accepted is not lost
        await page.wait_for_timeout(500)  # typing in the owner's field has come to rest, and takes nothing back
        await expect(shown).to_be_visible()


async def test_a_server_that_is_gone_is_told(server: Server, new_page: NewPage) -> None:
    async with new_page(server.url, locale="en-US", refused=1) as page:
        await expect(page.locator("#server")).to_have_text("Connected")
        await page.context.set_offline(True)
        await page.click("#refresh")
        await expect(page.locator("#server")).to_have_text("Not reachable")
        await expect(page.locator("#stats-notice [role=alert]")).to_contain_text("The server cannot be reached")
        await page.context.set_offline(False)
        await page.click("#refresh")
        await expect(page.locator("#server")).to_have_text("Connected")
        await expect(page.locator("#stats-notice [role=alert]")).to_have_count(0)


async def test_a_key_opens_a_server_with_keys(keyed_url: str, new_page: NewPage) -> None:
    async with new_page(keyed_url, locale="en-US", refused=4) as page:  # counters and messages, without and with a bad key
        alert = page.locator("#stats-notice [role=alert]")
        await expect(alert).to_contain_text("A valid API key is needed: an API key is needed")
        await page.fill("#key", "wrong-key")
        await page.press("#key", "Enter")
        await expect(alert).to_contain_text("this API key is not known")
        await expect(page.locator("#key")).to_have_attribute("aria-invalid", "true")
        await page.fill("#key", "right-key")
        await page.press("#key", "Enter")
        await expect(page.locator("#server")).to_have_text("Connected")
        await expect(alert).to_have_count(0)
        await owned_by(page, "keyed")
        await send(page, LIKES)
        kept = await page.evaluate("[Object.values(sessionStorage).includes('right-key'), Object.values(localStorage).length]")
        assert kept == [True, 0]
        assert "right-key" not in page.url
