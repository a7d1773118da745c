// Copy buttons of code blocks, and pictures that become replays on click.
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
  for (const link of document.querySelectorAll("a.replay")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const frame = Object.assign(document.createElement("iframe"), { className: "replay-frame", src: link.href });
      frame.title = link.title || "Replay";
      link.replaceWith(frame);
    });
  }
});
