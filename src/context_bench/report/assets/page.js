"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const make = (tag, text, kind) => {
    const made = document.createElement(tag);
    if (text !== undefined && text !== null) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };

  // --- theme
  const root = document.documentElement;
  const remember = (value) => { try { if (value) localStorage.setItem("context-bench-theme", value); return localStorage.getItem("context-bench-theme"); } catch { return null; } };
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

  // --- printing opens what is folded
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const each of folded) each.open = true;
  });
  addEventListener("afterprint", () => { for (const each of folded) each.open = false; });

  // --- the examples
  const unpack = async (text) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };
  if (!find("list")) return;
  const PAGE = 50;
  const blocks = [...document.querySelectorAll("script.block")];
  const loaded = new Map();
  let data, columns, names, order = [], page = 0, sort = { by: null, down: false }, opened = -1, texts = [];
  const number = new Intl.NumberFormat("en-US");
  const seconds = (value) => value >= 1 ? `${value.toFixed(2)} s` : value >= 1e-3 ? `${(value * 1e3).toFixed(1)} ms` : `${(value * 1e6).toFixed(0)} µs`;
  const HEADS = [
    ["run", "run", true], ["id", "example", true], ["system", "system", true], ["dataset", "dataset", true],
    ["outcome", "outcome", true], ["score", "score"], ["evidence", "evidence", true], ["input", "tokens in"],
    ["output", "passed on"], ["latency", "latency"], ["question", "question", true],
  ];
  const shown = () => HEADS.filter(([name]) => (name !== "run" || data.many) && (name !== "dataset" || names.dataset.length > 1) && (name !== "evidence" || columns.evidence.some((each) => each !== null)));
  const read = (name, row) => {
    const value = columns[name][row];
    return names[name] && value !== null ? names[name][value] : value;
  };
  const write = (name, row) => {
    const value = read(name, row);
    if (name === "outcome") return value + (columns.flip[row] ? (columns.flip[row] < 0 ? " ▼" : " ▲") : "");
    if (name === "question") return value || columns.response[row];
    if (name === "id") return columns.repeat[row] ? `${value} (repeat ${columns.repeat[row]})` : value;
    if (value === null) return "–";
    if (name === "score") return value.toFixed(3);
    if (name === "evidence") return value ? "survived" : "lost";
    if (name === "latency") return seconds(value);
    return typeof value === "number" ? number.format(value) : value;
  };

  const PICKS = ["run", "system", "dataset", "outcome", "evidence", "flip", "error"];
  const choose = () => {
    const wanted = PICKS.map((name) => [name, find(`by-${name}`).value]).filter(([, value]) => value !== "");
    const words = find("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const low = find("score-from").value, high = find("score-to").value;
    order = [];
    for (let row = 0; row < data.rows; row++) {
      if (!wanted.every(([name, value]) => String(columns[name][row]) === value)) continue;
      const score = columns.score[row];
      if (low !== "" && !(score !== null && score >= +low)) continue;
      if (high !== "" && !(score !== null && score <= +high)) continue;
      if (words.length) {
        texts[row] ??= [read("id", row), read("system", row), read("dataset", row), read("question", row), columns.response[row], read("error", row) || ""].join("\n").toLowerCase();
        if (!words.every((word) => texts[row].includes(word))) continue;
      }
      order.push(row);
    }
    if (sort.by) {
      const text = HEADS.find(([name]) => name === sort.by)[2] && sort.by !== "evidence";
      const values = columns[sort.by], list = names[sort.by];
      const collator = new Intl.Collator("en", { numeric: true });
      const key = (row) => list && values[row] !== null ? list[values[row]] : values[row];
      order.sort((a, b) => {
        const one = key(a), two = key(b);
        if (one === null || two === null) return (one === null) - (two === null) || a - b;
        const by = text ? collator.compare(one, two) : one - two;
        return (sort.down ? -by : by) || a - b;
      });
    }
    page = 0;
    draw();
  };

  const draw = () => {
    const pages = Math.max(1, Math.ceil(order.length / PAGE));
    page = Math.min(Math.max(0, page), pages - 1);
    const rows = order.slice(page * PAGE, (page + 1) * PAGE);
    const from = order.length ? page * PAGE + 1 : 0;
    const some = order.length === data.rows ? "" : ` (of ${number.format(data.rows)})`;
    find("found").textContent = `${number.format(from)}–${number.format(page * PAGE + rows.length)} of ${number.format(order.length)} rows${some}`;
    find("before").disabled = page === 0;
    find("after").disabled = page >= pages - 1;
    const heads = find("heads");
    heads.replaceChildren(...shown().map(([name, title, text]) => {
      const head = make("th", null, `c-${name}${text ? " text" : ""}`);
      head.scope = "col";
      const own = sort.by === name;
      head.setAttribute("aria-sort", own ? (sort.down ? "descending" : "ascending") : "none");
      const button = make("button", title + (own ? (sort.down ? " ↓" : " ↑") : ""));
      button.type = "button";
      button.dataset.sort = name;
      head.append(button);
      return head;
    }));
    find("rows").replaceChildren(...rows.map((row) => {
      const line = make("tr");
      line.tabIndex = 0;
      line.dataset.row = row;
      for (const [name, , text] of shown()) {
        const cell = make("td", write(name, row), text ? "text" : "");
        if (name === "outcome") cell.classList.add(`o-${columns.outcome[row]}`);
        if (name === "question" || name === "id" || name === "system") cell.title = cell.textContent;
        line.append(cell);
      }
      return line;
    }));
  };

  // --- one example
  const link = (row) => "#example=" + [read("run", row), read("system", row), read("dataset", row), columns.id[row], columns.repeat[row]].map((each) => encodeURIComponent(each)).join("&");
  const locate = (parts) => {
    for (let row = 0; row < data.rows; row++) {
      if (columns.id[row] === parts[3] && String(columns.repeat[row]) === parts[4] && read("system", row) === parts[1]
        && read("dataset", row) === parts[2] && read("run", row) === parts[0]) return row;
    }
    return -1;
  };
  const details = async (row) => {
    const block = Math.floor(row / data.block);
    if (!loaded.has(block)) loaded.set(block, unpack(blocks[block].textContent));
    return (await loaded.get(block))[row % data.block];
  };
  const part = (body, title, ...children) => {
    if (!children.length) return;
    body.append(make("h3", title), ...children);
  };
  const list = (pairs) => {
    const made = make("dl");
    for (const [name, value] of pairs) made.append(make("dt", name), make("dd", typeof value === "number" ? number.format(value) : Array.isArray(value) ? value.join(", ") : String(value)));
    return made;
  };
  const context = (pieces) => {
    const text = make("pre");
    for (const [kind, value, evidence] of pieces) {
      if (kind === "f") { text.append(make("span", `\n… ${number.format(+value)} characters are not shown …\n`, "k-f")); continue; }
      const piece = make(kind === "d" ? "del" : kind === "a" ? "ins" : "span", null, kind === "k" ? "" : `k-${kind}`);
      piece.append(evidence ? make("mark", value, "ev") : value);
      text.append(piece);
    }
    return text;
  };
  const fill = (body, row, one) => {
    body.replaceChildren();
    const outcome = write("outcome", row), score = columns.score[row];
    part(body, "outcome", list([["outcome", outcome], ["score", score === null ? "not scored" : score.toFixed(3)], ["dataset", read("dataset", row) || "–"],
      ["evidence", columns.evidence[row] === null ? "not measured" : write("evidence", row)], ["tokens in", columns.input[row]],
      ["passed on", columns.output[row] === null ? "not measured" : columns.output[row]], ["latency", seconds(columns.latency[row])]]));
    if (one.error) part(body, "error", make("pre", one.error + (one.traceback ? `\n${one.traceback}` : "")));
    for (const [title, text] of one.prompt) part(body, title, make("pre", text));
    if (one.gold === null) part(body, "gold", make("p", "not known: the run's store was not at hand", "missing"));
    else part(body, "gold", make("pre", one.gold.length ? one.gold.join("\n") : "none given"));
    if (one.same) part(body, "response", make("p", "the context that it passed on, which is shown below", "missing"));
    else part(body, "response", make("pre", one.response || "(empty)"));
    const scores = [...Object.entries(one.scores), ...Object.entries(one.unscored).map(([name, why]) => [`${name} (no score)`, why])];
    if (scores.length) part(body, "scores", list(scores.map(([name, value]) => [name, typeof value === "number" ? value.toFixed(3) : value])));
    const reasons = Object.entries(one.reasons);
    if (reasons.length) part(body, "judge's reasons", list(reasons));
    const facts = Object.entries(one.facts).map(([name, value]) => [name.replaceAll("_", " "), value]);
    if (one.upstream !== null) facts.push(["tokens that reached the model", one.upstream]);
    if (facts.length) part(body, "measured on the way", list(facts));
    let cut = false;
    for (const [title, pieces] of one.context) {
      cut = cut || pieces.some(([kind]) => kind === "f");
      if (pieces.length) part(body, title, context(pieces));
      else part(body, "context", make("p", title, "missing"));
    }
    if (!one.context.length) part(body, "context before and after", make("p", "not known: the run's store was not at hand", "missing"));
    else if (one.context.some(([, pieces]) => pieces.length)) body.append(make("p", "Struck through: dropped. Underlined: added. Marked: evidence that the answer needs." + (cut ? " Cut to keep the page small; context-bench diff --full shows all of it." : ""), "about"));
  };
  const dialog = find("one");
  const open = async (row, push = true) => {
    opened = row;
    const one = await details(row);
    find("one-title").textContent = `${write("id", row)} · ${read("system", row)}`;
    fill(find("one-body"), row, one);
    find("copy").textContent = "Copy link";
    const place = order.indexOf(row);
    find("earlier").disabled = place <= 0;
    find("later").disabled = place < 0 || place >= order.length - 1;
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    find("one-title").focus();
    if (push && location.hash !== link(row)) history.replaceState(null, "", link(row));
  };
  const step = (by) => {
    const place = order.indexOf(opened) + by;
    if (place < 0 || place >= order.length) return;
    if (Math.floor(place / PAGE) !== page) { page = Math.floor(place / PAGE); draw(); }
    open(order[place]);
  };
  dialog.addEventListener("close", () => {
    history.replaceState(null, "", "#examples");
    const line = find("rows").querySelector(`tr[data-row="${opened}"]`);
    if (line) line.focus();
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  find("close").addEventListener("click", () => dialog.close());
  find("earlier").addEventListener("click", () => step(-1));
  find("later").addEventListener("click", () => step(1));
  find("copy").addEventListener("click", async () => {
    const address = location.href.split("#")[0] + link(opened);
    try { await navigator.clipboard.writeText(address); find("copy").textContent = "Copied"; }
    catch { find("copy").textContent = "It is in the address bar"; }
  });

  const follow = () => {
    if (!location.hash.startsWith("#example=")) return;
    let parts;
    try { parts = location.hash.slice(9).split("&").map(decodeURIComponent); } catch { return; }
    const row = locate(parts);
    if (row >= 0) open(row, false);
    else find("found").textContent = "The link names an example that is not on this page.";
  };
  const filled = (name) => {
    const select = find(`by-${name}`);
    names[name].forEach((each, place) => {
      const option = make("option", each || "(none)");
      option.value = place;
      select.append(option);
    });
    if (names[name].length < (name === "error" ? 1 : 2)) select.parentElement.hidden = true;
  };
  const start = async () => {
    data = await unpack(find("index").textContent);
    columns = data.columns;
    names = data.names;
    for (const name of ["run", "system", "dataset", "error"]) filled(name);
    find("by-flip").parentElement.hidden = !columns.flip.some(Boolean);
    find("by-evidence").parentElement.hidden = !columns.evidence.some((each) => each !== null);
    choose();
    follow();
    root.dataset.ready = "yes";
  };
  let waiting;
  find("picks").addEventListener("submit", (event) => event.preventDefault());
  find("picks").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(choose, 120); });
  find("heads").addEventListener("click", (event) => {
    const name = event.target.dataset.sort;
    if (!name) return;
    sort = { by: name, down: sort.by === name ? !sort.down : false };
    choose();
    find("heads").querySelector(`[data-sort="${name}"]`).focus();
  });
  find("rows").addEventListener("click", (event) => { const line = event.target.closest("tr"); if (line) open(+line.dataset.row); });
  find("before").addEventListener("click", () => { page--; draw(); });
  find("after").addEventListener("click", () => { page++; draw(); });
  find("reset").addEventListener("click", () => { find("picks").reset(); sort = { by: null, down: false }; choose(); });
  document.addEventListener("click", (event) => {
    const to = event.target.closest("a.to-example");
    if (!to || !data) return;
    event.preventDefault();
    const row = locate(JSON.parse(to.dataset.example).map(String).map((each) => each.slice(0, 4000)));
    if (row >= 0) open(row);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (dialog.open) {
      if (event.key === "ArrowRight" || event.key === "j") step(1);
      if (event.key === "ArrowLeft" || event.key === "k") step(-1);
      return;
    }
    if (event.target.closest("input, select, textarea")) return;
    const line = document.activeElement.closest ? document.activeElement.closest("#rows tr") : null;
    const go = (to) => { if (to) { to.focus(); event.preventDefault(); } };
    if (event.key === "/") { event.preventDefault(); find("search").focus(); }
    else if (event.key === "j" || (event.key === "ArrowDown" && line)) go(line ? line.nextElementSibling : find("rows").firstElementChild);
    else if (event.key === "k" || (event.key === "ArrowUp" && line)) go(line ? line.previousElementSibling : null);
    else if (event.key === "Enter" && line) { event.preventDefault(); open(+line.dataset.row); }
    else if (event.key === "n") { page++; draw(); }
    else if (event.key === "p") { page--; draw(); }
  });
  addEventListener("hashchange", follow);
  start().catch((error) => { find("found").textContent = `The examples cannot be shown: ${error.message}`; });
})();
