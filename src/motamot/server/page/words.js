// Every word this page says by itself, in English and in French.

const en = {
  you: "You asked",
  answer: "Answer",
  log: "Conversation",
  welcome: "What would you like to know?",
  question: "Your question",
  placeholder: "Ask a question",
  send: "Send",
  stop: "Stop",
  fresh: "New conversation",
  remove: "Delete",
  removeAsk: "Delete this conversation?",
  removeMore: "Its questions and answers are erased for good.",
  cancel: "Cancel",
  latest: "Jump to latest",
  other: "Français",
  assistants: "Assistant",
  machine: "Answers are made by a machine and may be wrong.",
  waiting: "Waiting for the answer",
  coming: "The answer is coming.",
  here: "The answer is here.",
  reasoning: "Reasoning",
  sources: "Sources",
  tool: "In use:",
  tool_ok: "Used:",
  tool_failed: "Did not work:",
  again: "Connection lost. Trying again…",
  lost: "The connection was lost, and trying again did not help.",
  unsent: "This question was not sent.",
  retry: "Try again",
  empty: "The model said nothing.",
  long: "This question is longer than is taken here. Shorten it.",
  load: "The conversation could not be loaded.",
  removeFailed: "The conversation could not be deleted.",
  truncated: "Cut off: the answer has reached its greatest length.",
  filtered: "Cut off by the provider's content filter.",
  stopped: "Stopped.",
  abandoned: "Ended because nobody was reading it.",
  failed: "The answer failed.",
  interrupted: "The server was stopped before the answer's end.",
  recorded: "Recorded sample: no model wrote this now.",
  demo_model: "Demo: a small model on this machine answers.",
  test_model: "Test model: shows that the parts work, nothing more.",
  unknown: "The server did not answer as expected.",
  upstream_error: "The model could not answer.",
  upstream_cut: "The answer broke off before its end.",
  timeout: "The answer took too long.",
  tool_budget: "The answer needed more tool calls than are allowed.",
  limit: "The answer grew past a limit.",
};

const fr = {
  you: "Votre question",
  answer: "Réponse",
  log: "Conversation",
  welcome: "Que voulez-vous savoir ?",
  question: "Votre question",
  placeholder: "Posez une question",
  send: "Envoyer",
  stop: "Arrêter",
  fresh: "Nouvelle conversation",
  remove: "Supprimer",
  removeAsk: "Supprimer cette conversation ?",
  removeMore: "Ses questions et ses réponses seront effacées pour de bon.",
  cancel: "Annuler",
  latest: "Aller à la fin",
  other: "English",
  assistants: "Assistant",
  machine: "Les réponses sont écrites par une machine et peuvent être fausses.",
  waiting: "En attente de la réponse",
  coming: "La réponse arrive.",
  here: "La réponse est là.",
  reasoning: "Raisonnement",
  sources: "Sources",
  tool: "En cours :",
  tool_ok: "Utilisé :",
  tool_failed: "N’a pas fonctionné :",
  again: "Connexion perdue. Nouvel essai…",
  lost: "La connexion est perdue, et les nouveaux essais n’y ont rien fait.",
  unsent: "Cette question n’a pas été envoyée.",
  retry: "Réessayer",
  empty: "Le modèle n’a rien dit.",
  long: "Cette question est trop longue pour être acceptée ici. Raccourcissez-la.",
  load: "La conversation n’a pas pu être chargée.",
  removeFailed: "La conversation n’a pas pu être supprimée.",
  truncated: "Coupée : la réponse a atteint sa longueur maximale.",
  filtered: "Coupée par le filtre de contenu du fournisseur.",
  stopped: "Arrêtée.",
  abandoned: "Interrompue, car personne ne la lisait.",
  failed: "La réponse a échoué.",
  interrupted: "Le serveur a été arrêté avant la fin de la réponse.",
  recorded: "Exemple enregistré : aucun modèle ne vient de l’écrire.",
  demo_model: "Démonstration : un petit modèle répond sur cette machine.",
  test_model: "Modèle d’essai : il montre que tout s’emboîte, rien de plus.",
  unknown: "Le serveur n’a pas répondu comme prévu.",
  upstream_error: "Le modèle n’a pas pu répondre.",
  upstream_cut: "La réponse s’est interrompue avant sa fin.",
  timeout: "La réponse a pris trop de temps.",
  tool_budget: "La réponse demandait plus d’appels d’outils qu’il n’en est permis.",
  limit: "La réponse a dépassé une limite.",
  // What the server says in English, by the limit or the code it names.
  requests_per_hour: "C’est beaucoup de questions pour une heure. Revenez un peu plus tard.",
  tokens_per_hour: "C’est beaucoup de texte pour une heure. Revenez un peu plus tard.",
  money_per_day: "Cet assistant a dépensé son budget du jour. Revenez demain.",
  exchanges_per_visitor: "Plusieurs réponses sont déjà en cours. Attendez-en une ou arrêtez-la.",
  readers_per_exchange: "Cette réponse est déjà ouverte dans trop d’onglets. Fermez-en un.",
  bodies_address_bytes: "Trop de questions arrivent en même temps de votre adresse. Réessayez dans un instant.",
  exchanges_running: "Trop de réponses sont en cours. Réessayez dans un instant.",
  live_bytes: "Ce serveur garde déjà autant de réponses qu’il peut. Réessayez dans un instant.",
  shutdown_seconds: "Le serveur est en train de s’arrêter.",
  conflict: "Cette question n’a pas pu être posée. Posez-la à nouveau.",
  invalid_request: "La question n’a pas été acceptée.",
  unauthorized: "Connectez-vous d’abord.",
  not_found: "Cette conversation n’existe plus.",
  forbidden_origin: "Ce site n’est pas autorisé à poser des questions ici.",
  internal: "Quelque chose s’est mal passé sur le serveur.",
};

const all = { en, fr };

/** The languages there are, and how each calls itself in `Intl`'s tags. */
export const languages = Object.keys(all);

/** The best of them for a browser's list of preferred ones. */
export function preferred(wanted) {
  const found = wanted.map((tag) => tag.toLowerCase().split("-")[0]).find((language) => language in all);
  return found ?? "en";
}

/**
 * Words by their name.
 * told: the server's own words, in English, which say more than ours do; other languages use them where they have none.
 */
export function words(language, name, told = "") {
  if (language === "en" && told !== "") return told;
  const known = all[language];
  return Object.hasOwn(known, name) ? known[name] : told || (Object.hasOwn(en, name) ? en[name] : name);
}
