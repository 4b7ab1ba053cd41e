// Asks the dashboard's server. The token comes in the address behind "#", which browsers do not
// send, and is kept for this tab.

const KEY = "gpushare-token";

function readToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(KEY) ?? "";
}

let token = readToken();
window.addEventListener("hashchange", () => {
  token = readToken();
});

function headers() {
  return { Authorization: `Bearer ${token}` };
}

/** Returns the server's answer as an object. Throws an Error with the server's sentence. */
async function answerOf(response) {
  const answer = await response.json().catch(() => ({ error: `HTTP status ${response.status}` }));
  if (!response.ok) throw new Error(answer.error ?? `HTTP status ${response.status}`);
  return answer;
}

/** Asks for something without changing anything. */
export async function ask(path, values = {}) {
  const query = new URLSearchParams(values).toString();
  return answerOf(await fetch(`api/${path}${query ? `?${query}` : ""}`, { headers: headers() }));
}

/** Changes a job. */
export async function change(values) {
  const body = JSON.stringify(values);
  return answerOf(
    await fetch("api/change", {
      method: "POST",
      headers: { ...headers(), "Content-Type": "application/json" },
      body,
    }),
  );
}

/**
 * Calls `take` with each reading until the stream ends. Throws an Error where the server refuses.
 * EventSource cannot send the token's header, so the stream's lines are read here.
 */
export async function listen(take) {
  const response = await fetch("api/events", { headers: headers() });
  if (!response.ok) {
    const error = new Error((await response.json()).error);
    error.isRefusal = response.status === 401;
    throw error;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      if (part.startsWith("data: ")) take(JSON.parse(part.slice("data: ".length)));
    }
  }
}
