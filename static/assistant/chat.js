// What the chat page does beyond htmx: the box that grows and never loses a text, and a view that follows the answer
// until its beginning is at the upper edge. Everything works without this file, a little less comfortably.
(() => {
  "use strict";

  const form = document.getElementById("composer");
  const box = document.getElementById("message");
  const error = document.getElementById("composer-error");
  const announce = document.getElementById("announce");
  const toBottom = document.getElementById("to-bottom");
  const thread = document.getElementById("thread");
  const header = document.querySelector(".top");
  const dock = document.querySelector(".composer-dock");
  const page = document.scrollingElement;
  const draftKey = "draft-" + form.dataset.draft;
  const NEAR_BOTTOM = 80; // pixels
  const GAP = 12; // pixels between the header and the question that the view stops at

  // --- the box ---------------------------------------------------------------------------------------------

  function grow() {
    if (CSS.supports("field-sizing", "content")) return;
    box.rows = Math.min(10, Math.max(1, box.value.split("\n").length));
  }

  function remember(text) {
    try {
      if (text) sessionStorage.setItem(draftKey, text);
      else sessionStorage.removeItem(draftKey);
    } catch { /* storage may be switched off or full: the box itself still holds the text */ }
  }

  function recall() {
    try {
      return sessionStorage.getItem(draftKey) || "";
    } catch {
      return "";
    }
  }

  function newClientKey() {
    const bytes = crypto.getRandomValues(new Uint8Array(16)); // randomUUID needs https
    form.elements.client_key.value = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  function complain(sentence) {
    const notice = document.createElement("p");
    notice.className = "notice notice-error";
    notice.textContent = sentence;
    error.replaceChildren(notice);
  }

  box.addEventListener("input", () => {
    remember(box.value);
    grow();
  });

  box.addEventListener("keydown", (event) => {
    // While an input method composes a character, Enter confirms it (229: Safari reports the end too early).
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    form.requestSubmit();
  });

  // A message that is on its way is sent once; what is typed meanwhile belongs to the next one.
  let sent = null;

  form.addEventListener("htmx:confirm", (event) => {
    if (sent !== null || !box.value.trim()) event.preventDefault();
  });

  form.addEventListener("htmx:beforeRequest", () => {
    sent = box.value;
    error.replaceChildren();
    following = TO_QUESTION;
  });

  form.addEventListener("htmx:afterRequest", (event) => {
    if (event.target !== form || sent === null) return;
    const status = event.detail.xhr.status;
    if (status >= 200 && status < 300) {
      box.value = box.value.startsWith(sent) ? box.value.slice(sent.length).trimStart() : box.value;
      remember(box.value);
      newClientKey();
      grow();
    } else if (status !== 422 && status !== 429) {
      complain(form.dataset.sendFailed);
    }
    sent = null;
  });

  document.body.addEventListener("htmx:responseError", (event) => {
    if (!form.contains(event.target)) complain(form.dataset.sendFailed);
  });
  document.body.addEventListener("htmx:sendError", (event) => {
    if (!form.contains(event.target)) complain(form.dataset.sendFailed);
  });

  for (const example of document.querySelectorAll("[data-examples]")) {
    example.hidden = false;
    example.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      box.value = button.textContent;
      remember(box.value);
      box.focus();
    });
  }

  // --- following the answer --------------------------------------------------------------------------------

  // An answer is read from its beginning, so the view goes along only until the question is at the upper edge.
  // Whoever goes to the end themselves is kept there.
  const TO_QUESTION = "question", TO_END = "end", STAY = "stay";
  let following = TO_QUESTION;

  function belowView() {
    return page.scrollHeight - page.clientHeight - page.scrollTop;
  }

  function atBottom() {
    return belowView() < NEAR_BOTTOM;
  }

  // How far the view may still go: the upper half is left to the answer, however long the question is.
  function aboveNewest() {
    const newest = [...thread.querySelectorAll(".turn, #tail .question")].at(-1);
    if (!newest) return 0;
    const edge = header.getBoundingClientRect().bottom;
    const answer = newest.querySelector(".answer");
    const toQuestion = newest.getBoundingClientRect().top - edge - GAP;
    const toAnswer = answer ? answer.getBoundingClientRect().top - (edge + page.clientHeight) / 2 : 0;
    return Math.max(0, toQuestion, toAnswer);
  }

  function follow() {
    if (following === TO_END) page.scrollTop = page.scrollHeight;
    if (following === TO_QUESTION) page.scrollTop += Math.min(belowView(), aboveNewest());
    toBottom.hidden = atBottom();
  }

  addEventListener("scroll", () => {
    if (!atBottom()) following = STAY;
    else if (following === STAY) following = TO_END;
    toBottom.hidden = atBottom();
  }, { passive: true });

  new MutationObserver(follow).observe(thread, { childList: true, subtree: true, characterData: true });

  toBottom.addEventListener("click", () => {
    following = TO_END;
    follow();
    box.focus();
  });

  // What stood just above the box stays there when the box grows or says that something went wrong.
  let dockHeight = dock.offsetHeight;
  new ResizeObserver(() => {
    page.scrollTop += Math.max(0, dock.offsetHeight - dockHeight);
    dockHeight = dock.offsetHeight;
  }).observe(dock);

  // --- what happens in the stream --------------------------------------------------------------------------

  document.body.addEventListener("htmx:sseMessage", (event) => {
    if (event.detail.type !== "flow") return;
    const running = thread.querySelectorAll('.step[data-state="running"] .step-text');
    if (running.length) announce.textContent = running[running.length - 1].textContent.trim();
  });

  // The browser connects again by itself; the server then sends how the turn stands and runs nothing twice.
  document.body.addEventListener("htmx:sseError", (event) => {
    const state = event.target.querySelector(".state-line");
    if (state) state.textContent = thread.dataset.reconnecting;
  });

  document.body.addEventListener("htmx:sseClose", (event) => {
    if (event.detail.type === "message") setTimeout(finished, 60, event.target.id); // after the swap
  });

  function finished(id) {
    const said = document.querySelectorAll("#" + id + " [data-answer] .prose");
    if (said.length) announce.textContent = announce.dataset.done + " " + said[said.length - 1].textContent.trim();
    if (document.activeElement === document.body) box.focus({ preventScroll: true });
    htmx.trigger(document.body, "turn-done");
  }

  // --- start -----------------------------------------------------------------------------------------------

  if (!box.value) box.value = recall();
  grow();
  if (form.dataset.draft !== "new") follow();
  if (matchMedia("(max-width: 800px)").matches) {
    for (const list of document.querySelectorAll(".my-conversations")) list.open = false;
  }
})();
