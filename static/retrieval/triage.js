// Single keys for what carries data-key: buttons are pressed, links followed. Never while somebody types.
document.documentElement.classList.add("js");
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  const target = document.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
  if (target && !target.disabled) {
    event.preventDefault();
    target.click();
  }
});
// One decision at a time: a second key would decide on the next pair unseen.
document.addEventListener("submit", (event) => {
  if (event.target.matches(".pair-actions, .inbox-undo")) {
    setTimeout(() => document.querySelectorAll("[data-key]").forEach((one) => { one.disabled = true; }));
  }
});
