// Copy buttons of code blocks.
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight")) {
    const pre = block.querySelector("pre");
    if (!pre || !pre.textContent.trim()) continue;
    const button = Object.assign(document.createElement("button"), { className: "copy", textContent: "Copy" });
    button.type = "button";
    button.setAttribute("aria-label", "Copy code");
    button.addEventListener("click", async () => {
      const text = pre.textContent.replace(/^(\$|>>>|\.\.\.) /gm, "").trimEnd();
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.append(button);
  }
});
