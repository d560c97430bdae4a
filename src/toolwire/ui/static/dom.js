// Elements without markup: text from outside is only ever set as text, never parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** h("button", {class: "a", onclick: run, "aria-label": "Run"}, "Run"): null and false children and attributes are left out. */
export function h(tag, attributes, ...children) {
  return build(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

export function replace(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter(isShown));
  return element;
}

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter(isShown));
  return element;
}

function isShown(child) {
  return child !== null && child !== undefined && child !== false;
}

let isPressed = false;
const delayed = new Set();

addEventListener("pointerdown", (event) => {
  isPressed = event.button === 0 && Boolean(event.target.closest?.("a, button, summary, .row"));
}, true);
for (const name of ["pointerup", "pointercancel"]) addEventListener(name, () => setTimeout(release), true);
addEventListener("blur", release); // of the window

function release() { // after the click, which follows the release
  isPressed = false;
  const draws = [...delayed];
  delayed.clear();
  for (const draw of draws) draw();
}

/** Calls draw, but not while a mouse button is down: no click follows if the element below it is replaced or moved meanwhile. */
export function drawUnlessPressed(draw) {
  if (isPressed) delayed.add(draw);
  else draw();
}

let toastTimer = 0;

export function toast(text) {
  const element = document.getElementById("toast");
  element.textContent = text;
  element.classList.add("shown");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => element.classList.remove("shown"), 2600);
}

/** Copies text; where the browser has no clipboard (plain HTTP on another host), the caller's field is selected instead. */
export async function copy(text, field) {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied");
  } catch {
    field?.select?.();
    toast("The browser does not allow copying here; press Ctrl+C");
  }
}

/** A modal dialog that is removed when it closes. */
export function dialog(title, content, options = {}) {
  const before = document.activeElement;
  const box = h("dialog", { class: `dialog ${options.class || ""}`, "aria-label": title },
    h("header", null, h("h2", null, title), h("button", { type: "button", class: "icon", "aria-label": "Close", onclick: () => box.close() }, "✕")),
    content);
  box.addEventListener("close", () => {
    box.remove();
    before?.focus?.();
  });
  box.addEventListener("click", (event) => {
    if (event.target === box) box.close();
  });
  document.body.append(box);
  box.showModal();
  return box;
}

/** A row of tabs with arrow keys; show(name, byUser) fills the panel. choose(name) selects one as the user does, select(name) without that. */
export function tabs(names, selected, show, label) {
  const panel = h("div", { class: "panel", role: "tabpanel", tabindex: "0" });
  const buttons = names.map(([name, text]) =>
    h("button", { type: "button", role: "tab", dataset: { tab: name }, onclick: () => select(name, true) }, text));
  const element = h("div", { class: "tabs", role: "tablist", "aria-label": label }, buttons);
  element.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const place = buttons.findIndex((button) => button.getAttribute("aria-selected") === "true");
    const next = buttons[(place + step + buttons.length) % buttons.length];
    next.focus();
    next.click();
  });
  function select(name, byUser) {
    for (const button of buttons) {
      const isOn = button.dataset.tab === name;
      button.setAttribute("aria-selected", String(isOn));
      button.tabIndex = isOn ? 0 : -1;
      if (isOn) panel.setAttribute("aria-label", button.firstChild.textContent);
    }
    show(name, byUser);
  }
  /** A short text beside the name of a tab. */
  function mark(name, text) {
    const button = buttons.find((one) => one.dataset.tab === name);
    button.querySelector(".mark")?.remove();
    if (text) button.append(h("span", { class: "mark" }, String(text)));
  }
  return { element, panel, mark, select: (name = selected) => select(name, false), choose: (name) => select(name, true) };
}
