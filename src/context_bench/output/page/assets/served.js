// --- the examples from the server, page by page; a run that is under way is asked for again and again
const source = (() => {
  const main = find("main"), PAUSE = 2000;
  const runs = main.dataset.runs;
  const ask = async (what, values = {}) => {
    const reply = await fetch(`../api/${what}?${new URLSearchParams({ runs, ...values })}`, { credentials: "omit" });
    const said = await reply.json().catch(() => ({}));
    if (!reply.ok) throw new Error(said.error || `the server answered ${reply.status}`);
    return said;
  };
  const trouble = (text) => {
    const note = find("trouble");
    note.textContent = text || "";
    note.hidden = !text;
  };
  const SVG = "http://www.w3.org/2000/svg";
  const NEVER = new Set(["script", "style", "iframe", "object", "embed", "link", "base", "meta"]);
  const grow = (node, picture = false) => {
    if (typeof node === "string") return document.createTextNode(node);
    const [tag, attributes, children] = node;
    const drawn = picture || tag === "svg";
    const made = NEVER.has(tag) ? document.createElement("span") : drawn ? document.createElementNS(SVG, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (!name.startsWith("on") && (name !== "href" || value.startsWith("#"))) made.setAttribute(name, value);
    }
    made.append(...children.map((child) => grow(child, drawn)));
    return made;
  };
  // Only the parts that changed are replaced, so that what is open, focused or scrolled stays so.
  const shown = new Map();
  const replace = (parts) => {
    for (const part of parts) {
      const old = document.getElementById(part[1].id);
      if (!old) continue;
      if (old.children.length !== part[2].length) { old.replaceWith(grow(part)); continue; }
      part[2].forEach((child, place) => {
        const key = `${part[1].id} ${place}`, text = JSON.stringify(child);
        if (shown.get(key) === text) return;
        if (shown.has(key) || old.children[place].textContent !== grow(child).textContent) old.children[place].replaceWith(grow(child));
        shown.set(key, text);
      });
    }
  };
  let version = null, changed = () => {}, watching = true;
  const watch = async () => {
    try {
      if (document.visibilityState === "visible") {
        const state = await ask("state");
        trouble("");
        if (state.version !== version) {
          const parts = (await ask("sections")).parts;
          replace(parts);
          version = state.version;
          changed(state);
        }
        watching = state.under_way;
      }
    } catch (error) { trouble(`This page is not up to date: ${error.message}.`); }
    if (watching) setTimeout(watch, PAUSE);
  };
  return {
    live: true,
    async start() {
      const state = await ask("state");
      version = main.dataset.version;
      setTimeout(watch, Math.min(PAUSE, 500));
      return state;
    },
    watch(then) { changed = then; },
    find: (query, offset, limit) => ask("rows", { ...query.equal, low: query.low, high: query.high, words: query.words,
      sort: query.sort || "", down: query.down ? "1" : "", offset, limit }),
    details: (row) => ask("row", { id: row.key }),
    async locate([run, system, dataset, name, repeat]) {
      const found = await ask("locate", { run, system, dataset, name, repeat });
      return found.row ? found : null;
    },
  };
})();
