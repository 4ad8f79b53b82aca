const find = (id) => document.getElementById(id);
const make = (tag, text, kind) => {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  if (kind) made.className = kind;
  return made;
};
const number = new Intl.NumberFormat("en-US");
const root = document.documentElement;

// --- theme
const remember = (value) => {
  try {
    if (value) localStorage.setItem("context-bench-theme", value);
    return localStorage.getItem("context-bench-theme");
  } catch { return null; }
};
const known = remember();
if (known === "light" || known === "dark") root.dataset.theme = known;
find("theme").addEventListener("click", () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  remember(root.dataset.theme);
});

// --- values of a mark when it is pointed at
const tip = find("tip");
const showTip = (event) => {
  const mark = event.target.closest ? event.target.closest("[data-tip]") : null;
  const text = mark && mark.getAttribute("data-tip");
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const wide = tip.offsetWidth, high = tip.offsetHeight;
  tip.style.left = `${Math.max(4, Math.min(innerWidth - wide - 8, event.clientX + 14))}px`;
  tip.style.top = `${event.clientY + 18 + high > innerHeight ? event.clientY - high - 10 : event.clientY + 18}px`;
};
document.addEventListener("pointermove", showTip);
document.addEventListener("pointerdown", showTip);
document.addEventListener("scroll", () => { tip.hidden = true; }, true);

// --- printing opens what is folded, but the tables that say in numbers what a chart shows
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details.missing:not([open]), details.reading:not([open])")];
  for (const each of folded) each.open = true;
});
addEventListener("afterprint", () => { for (const each of folded) each.open = false; });
