"""Questions as visitors put them find the page that answers: on this project's own pages, English and French."""

from __future__ import annotations

from pathlib import Path

import pytest

from motamot.knowledge import library
from tests.knowledge.support import learned, numbers

DOCS = Path(__file__).parent.parent.parent / "docs"
QUESTIONS = {
    "How do I put the chat into my FastAPI application?": "docs/mount.md",
    "How can I keep visitors from spending all my money?": "docs/deploy.md docs/settings.md",
    "Is there a budget per day?": "docs/settings.md docs/deploy.md",
    "my answer comes all at once instead of streaming": "docs/symptoms.md docs/check.md",
    "nginx buffers the stream": "docs/deploy.md docs/symptoms.md docs/findings.md",
    "how to run behind a reverse proxy with https": "docs/deploy.md",
    "Which settings are there for the model?": "docs/settings.md docs/models.md",
    "where do I put the api key": "docs/settings.md docs/models.md",
    "Can it run without internet on a local model?": "docs/local-model.md docs/models.md",
    "how big is the embedded model download": "docs/local-model.md docs/models.md",
    "use with Ollama": "docs/models.md docs/local-model.md",
    "How do I stop a running answer with curl?": "docs/http.md",
    "resume after a lost connection": "docs/clients.md docs/http.md docs/protocols.md docs/page.md",
    "does it work with useChat from the Vercel AI SDK": "docs/clients.md docs/protocols.md",
    "AG-UI frontend": "docs/clients.md docs/protocols.md",
    "OpenAI client against my server": "docs/clients.md docs/http.md docs/protocols.md",
    "plain EventSource in the browser": "docs/clients.md docs/tutorial/en.md docs/tutorial/fr.md",
    "record a stream and play it again": "docs/tapes.md",
    "what is a HAR file good for": "docs/tapes.md docs/check.md",
    "count completions of my chatbot in production": "docs/meter.md",
    "two completions were paid for one question": "docs/meter.md docs/symptoms.md",
    "testing my chatbot without a real model": "docs/testing.md docs/scripted-model.md",
    "write a script for the fake model": "docs/scripted-model.md",
    "how do I simulate an error 429": "docs/scripted-model.md",
    "prometheus metrics": "docs/metrics.md",
    "how many tokens may an answer have": "docs/limits.md docs/settings.md",
    "maximum size of a request body": "docs/limits.md",
    "what does the event tool_returned contain": "docs/reference/events.md docs/protocols.md",
    "options of motamot serve": "docs/reference/commands.md",
    "how fast is it compared with LiteLLM": "docs/performance.md docs/peers/chatbots.md",
    "spaces disappear between words": "docs/symptoms.md docs/findings.md docs/check.md",
    "emoji are broken": "docs/symptoms.md docs/findings.md",
    "what loses Gradio": "docs/peers/chatbots.md",
    "content security policy of the page": "docs/page.md docs/deploy.md",
    "Comment afficher la réponse au fur et à mesure ?": "docs/tutorial/fr.md",
    "interroger un modele en python": "docs/tutorial/fr.md",
    "Que faire quand aucun modèle ne répond ?": "docs/tutorial/fr.md",
    "fermer la connexion EventSource a la fin": "docs/tutorial/fr.md",
    "les accents s'affichent mal": "docs/tutorial/fr.md",
    "arreter la generation": "docs/tutorial/fr.md",
}
"""Question: the pages any of which answers it, as they were named before anything was searched."""


OTHER_FORMS = {
    "interrogation de modèles": "1. Interroger",
    "enregistrement d'exemples": "2. Un exemple",
    "des balises dans les textes": "3. Du texte",
    "servir des pages": "8. La servir",
    "regardez la réponse sans le navigateur": "7. Regarder",
    "l'adresse du flux": "6. Deux",
    "le fil de la réponse passée": "5. Ce qui",
    "doubling of texts": "twice",
    "paying two times": "We pay",
    "missing space": "Spaces",
    "stopping halfway": "half way",
    "an emoji breaks": "Emoji",
    "calling tools nonsensically": "Tools are",
    "listed bullets": "one bullet",
    "stopped only hiding": "Stop only",
}
"""Words in other forms than a section's own: what its heading holds."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, str]]:
    file = tmp_path_factory.mktemp("recall") / "help.db"
    keys = numbers(learned(DOCS, output=file))
    return file, {number: key for key, number in keys.items()}


def found(pages: tuple[Path, dict[int, str]], most: int) -> set[str]:
    """The questions whose page is among the best passages."""
    file, keys = pages
    hits = {question: library.search(file, question, most) for question in QUESTIONS}
    return {
        question
        for question, got in hits.items()
        if any(keys[hit.number] in QUESTIONS[question].split() for hit in got)
    }


def test_nine_questions_of_ten_find_their_page(pages: tuple[Path, dict[int, str]]) -> None:
    missed = set(QUESTIONS) - found(pages, 6)
    assert len(missed) <= len(QUESTIONS) // 10, missed


def test_three_passages_are_enough_for_most(pages: tuple[Path, dict[int, str]]) -> None:
    missed = set(QUESTIONS) - found(pages, 3)
    assert len(missed) <= len(QUESTIONS) // 5, missed


def test_sections_are_found_by_other_forms_of_their_words(tmp_path: Path) -> None:
    """By the words as they stand, 8 of the 15 are."""
    file = tmp_path / "help.db"
    learned(DOCS / "tutorial" / "fr.md", DOCS / "symptoms.md", output=file)
    hits = {words: library.search(file, words, 3) for words in OTHER_FORMS}
    missed = [words for words, got in hits.items() if not any(OTHER_FORMS[words] in hit.headings for hit in got)]
    assert len(missed) <= 2, missed
