"""Queries, answers and explanations on the page of `nodepiece serve`."""

from playwright.sync_api import Route, expect
from tests.serving.page.visit import Visit, answers, choose, hash_of


def test_a_first_visitor_sees_an_example_answered_and_explained(visit: Visit) -> None:
    page = visit.open()
    assert len(answers(page)) == 10
    expect(page.locator(".reasons h2")).to_contain_text(answers(page)[0])
    expect(page.locator("figure.paths svg").first).to_be_visible()


def test_a_tail_is_predicted_for_a_head_and_a_relation(visit: Visit) -> None:
    page = visit.open("ask?head=Chad")
    choose(page, "Relation", "bord", "borders")
    expect(page.locator(".results .asked")).to_have_text("Chad borders ?")
    visit.settle()
    assert len(answers(page)) == 10
    shares = [
        bar.evaluate("bar => bar.offsetWidth / bar.parentElement.offsetWidth")
        for bar in page.locator(".results .bar > span").all()
    ]
    texts = page.locator(".results .value").all_inner_texts()
    assert all(text.endswith("%") for text in texts)
    assert shares == sorted(shares, reverse=True)
    expect(page.locator("#live")).to_contain_text("10 answers. First: ")


def test_a_head_is_predicted_for_a_relation_and_a_tail(visit: Visit) -> None:
    page = visit.open("ask?relation=has+language&tail=Arabic")
    expect(page.locator(".results .asked")).to_have_text("? has language Arabic")
    assert len(answers(page)) == 10


def test_a_relation_is_predicted_for_two_nodes(visit: Visit) -> None:
    page = visit.open("ask?head=Libya")
    choose(page, "Tail", "chad", "Chad")
    expect(page.locator(".results .asked")).to_have_text("Libya ? Chad")
    visit.settle()
    assert "borders" in answers(page)


def test_known_answers_are_marked_and_can_be_left_out(visit: Visit) -> None:
    page = visit.open("ask?head=Libya&relation=borders&top=40")
    expect(page.locator(".answer .known").first).to_have_text("✓ known")
    page.get_by_label("Facts that the graph already has").uncheck()
    expect(page.locator(".answer .known")).to_have_count(0)
    assert "known=no" in hash_of(page)


def test_a_whole_fact_gets_its_probability_and_ranks(visit: Visit) -> None:
    page = visit.open("ask?head=Libya&relation=borders&tail=Chad")
    expect(page.locator(".score .big")).to_contain_text("%")
    expect(page.locator(".score")).to_contain_text("The tail ranks")
    expect(page.locator(".score")).to_contain_text("The probability is by both queries")


def test_answers_and_their_explanation_say_which_probability_they_show(visit: Visit) -> None:
    page = visit.open("ask?head=Libya&relation=borders")
    expect(page.locator(".answers ~ .hint")).to_contain_text("by this query alone")
    chance = page.locator(".answer").first.locator(".value").inner_text()
    page.locator(".answer").first.click()
    expect(page.locator(".reasons .verdict")).to_contain_text(f"{chance} by the one for the tail")


def test_an_answer_leads_to_its_explanation_drawn_as_paths(visit: Visit) -> None:
    page = visit.open("ask?head=Libya&relation=borders")
    page.locator(".answer").nth(1).click()
    heading = page.locator(".reasons h2")
    expect(heading).to_have_text(f"Why Libya borders {answers(page)[1]}")
    expect(heading).to_be_focused()
    visit.settle()
    expect(page.locator("figure.paths svg path.step").first).to_be_visible()
    expect(page.locator(".reasons .verdict")).to_contain_text("Rank ")
    for part in ("Paths in the graph", "Facts it depends on", "Similar facts in the graph"):
        expect(page.get_by_role("heading", name=part)).to_be_visible()
    page.go_back()
    expect(page.locator(".invitation")).to_be_visible()


def test_an_explanation_that_takes_longer_than_the_server_allows_is_asked_for_again(
    visit: Visit,
) -> None:
    visit.expected = ("504",)
    late: list[str] = []

    def first_is_late(route: Route) -> None:
        late.append(route.request.url)
        if len(late) == 1:
            route.fulfill(status=504, json={"status": 504, "detail": "no answer within 30 s"})
        else:
            route.continue_()

    visit.page.route("**/explain", first_is_late)
    page = visit.open("ask?head=Libya&relation=borders&tail=Chad")
    expect(page.locator(".reasons .verdict")).to_be_visible()
    assert len(late) == 2


def test_an_inverse_relation_is_explained_as_the_fact_that_it_stands_for(visit: Visit) -> None:
    page = visit.open("ask?head=Tripoli&tail=Libya&explain=inverse+of+has+capital")
    expect(page.locator(".reasons h2")).to_have_text("Why Libya has capital Tripoli")


def test_an_unknown_name_is_answered_with_names_to_click(visit: Visit) -> None:
    visit.expected = ("404",)
    page = visit.open("ask?head=Libia&relation=borders")
    problem = page.get_by_role("alert")
    expect(problem).to_contain_text("'Libia'")
    problem.get_by_role("link", name="Libya").click()
    expect(page.locator(".results .asked")).to_have_text("Libya borders ?")
