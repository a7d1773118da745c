// Copy buttons of code blocks; outputs of notebooks have none.
document.addEventListener("DOMContentLoaded", () => {
  if (!navigator.clipboard) return;
  for (const block of document.querySelectorAll("div.highlight")) {
    const pre = block.querySelector("pre");
    if (!pre || !pre.textContent.trim() || block.closest(".cell_output")) continue;
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "copy", textContent: "Copy" });
    button.setAttribute("aria-label", "Copy code");
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(pre.textContent.replace(/^(\$|>>>|\.\.\.) /gm, "").trimEnd());
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.append(button);
  }
});
