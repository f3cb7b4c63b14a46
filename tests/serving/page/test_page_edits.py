"""Adding facts on the page: assumed, committed, undone."""

from playwright.sync_api import Route, expect
from tests.serving.page.visit import ATLANTIS, Visit, answers, choose, hash_of


def test_facts_about_a_new_node_show_its_pieces_and_predictions_at_once(visit: Visit) -> None:
    page = visit.open("add")
    page.get_by_role("combobox", name="Node, new or known").fill("Atlantis")
    choose(page, "Relation", "bord", "borders")
    choose(page, "Other node", "portu", "Portugal")
    expect(page.locator(".assumed")).to_contain_text("Atlantis borders Portugal")
    visit.settle()
    pieces = page.locator("a.anchor")
    expect(pieces).not_to_have_count(0)
    assert len(answers(page)) == 3
    assert "fact=Portugal" in hash_of(page)


def test_a_prediction_about_a_new_node_is_explained(visit: Visit) -> None:
    page = visit.open(ATLANTIS)
    page.locator(".predictions .answer").first.click()
    expect(page.locator(".reasons h2")).to_contain_text("Why Atlantis")
    expect(page.locator(".reasons .verdict")).to_contain_text("Rank ")
    expect(page.locator(".predictions .answer").first).to_have_attribute("aria-current", "true")


def test_undo_takes_the_last_assumed_fact_back(visit: Visit) -> None:
    page = visit.open(ATLANTIS)
    assert page.locator(".assumed li").count() == 2
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".assumed li")).to_have_count(1)
    page.go_back()
    expect(page.locator(".assumed li")).to_have_count(2)


def test_the_other_node_can_be_the_head(visit: Visit) -> None:
    page = visit.open("add?name=Atlantis")
    page.get_by_role("button", name="Swap").click()
    choose(page, "Relation", "bord", "borders")
    choose(page, "Other node", "portu", "Portugal")
    expect(page.locator(".assumed")).to_contain_text("Portugal borders Atlantis")


def test_committed_facts_are_in_later_answers_and_can_be_undone(visit: Visit) -> None:
    page = visit.open(ATLANTIS)
    page.get_by_role("button", name="Commit to the graph").click()
    expect(page.locator(".notice")).to_contain_text("2 facts committed")
    page.get_by_role("link", name="See the node").click()
    expect(page.locator("dl.facts")).to_contain_text("Portuguese")
    page.go_back()
    visit.open(ATLANTIS.replace("Atlantis", "Mu"))
    page.get_by_role("button", name="Commit to the graph").click()
    page.locator(".notice").get_by_role("button", name="Undo").click()
    expect(page.locator(".assumed li")).to_have_count(2)
    visit.expected = ("404",)
    visit.open("node?name=Mu")
    expect(page.get_by_role("alert")).to_be_visible()


def test_undoing_a_commit_keeps_facts_that_were_there_before(visit: Visit) -> None:
    page = visit.open("node?name=Peru")
    before = page.locator("dl.facts").inner_text()
    known = page.locator("dl.facts dd a").first.inner_text()
    facts = f"fact=Peru&fact=borders&fact={known}&fact=Peru&fact=near&fact=Lima"
    visit.open(f"add?name=Peru&{facts}")
    page.get_by_role("button", name="Commit to the graph").click()
    expect(page.locator(".notice")).to_contain_text("1 fact committed")
    page.locator(".notice").get_by_role("button", name="Undo").click()
    expect(page.locator(".notice")).to_have_count(0)
    visit.open("node?name=Peru")
    assert page.locator("dl.facts").inner_text() == before


def test_a_server_that_wants_a_token_is_given_one(visit: Visit) -> None:
    visit.expected = ("401",)
    page = visit.open(ATLANTIS)
    tokens: list[str | None] = []

    def refuse_first(route: Route) -> None:
        tokens.append(route.request.headers.get("authorization"))
        problem = {"title": "a token is needed", "status": 401, "detail": "send a token"}
        answer = {"version": 0, "added": 2, "removed": 0, "new_nodes": 1}
        route.fulfill(status=401, json=problem) if len(tokens) == 1 else route.fulfill(json=answer)

    page.route("**/update", refuse_first)
    page.get_by_role("button", name="Commit to the graph").click()
    page.get_by_label("Token").fill("secret")
    page.get_by_role("button", name="Use this token").click()
    expect(page.locator(".notice")).to_contain_text("2 facts committed")
    assert tokens == [None, "Bearer secret"]


def test_a_read_only_server_offers_no_commit(visit: Visit) -> None:
    def read_only(route: Route) -> None:
        runs = route.fetch().json()["runs"]
        route.fulfill(json={"runs": [run | {"writable": False} for run in runs]})

    visit.page.route("**/v1/runs", read_only)
    page = visit.open(ATLANTIS)
    expect(page.get_by_text("This server is read-only")).to_be_visible()
    expect(page.get_by_role("button", name="Commit to the graph")).to_have_count(0)


def test_an_example_of_new_facts_is_one_click_away(visit: Visit) -> None:
    page = visit.open("add")
    page.get_by_role("button", name="try an example").click()
    expect(page.locator(".assumed li")).to_have_count(2)
