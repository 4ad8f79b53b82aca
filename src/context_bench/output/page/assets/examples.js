// --- the list of examples, and one of them: whichever way the data comes, `source` gives it
(() => {
  if (!find("list")) return;
  const PAGE = 50;
  let names = {}, about = {}, rows = [], found = 0, page = 0, sort = { by: null, down: false }, opened = null, turn = 0;
  const seconds = (value) => value >= 1 ? `${value.toFixed(2)} s` : value >= 1e-3 ? `${(value * 1e3).toFixed(1)} ms` : value >= 1e-6 || value <= 0 ? `${(value * 1e6).toFixed(0)} µs` : `${+(value * 1e6).toPrecision(1)} µs`;
  const HEADS = [
    ["run", "run", true], ["id", "example", true], ["system", "system", true], ["dataset", "dataset", true],
    ["outcome", "outcome", true], ["score", "score"], ["evidence", "evidence", true], ["input", "tokens in"],
    ["output", "passed on"], ["latency", "latency"], ["question", "question", true],
  ];
  const count = (kind) => Object.keys(names[kind]).length;
  const shown = () => HEADS.filter(([name]) => (name !== "run" || count("run") > 1) && (name !== "dataset" || count("dataset") > 1) && (name !== "evidence" || about.evidence));
  const name = (kind, row) => row[kind] === null ? "" : names[kind][row[kind]];
  const brief = (text) => about.brief?.[text] ?? text;
  const write = (column, row) => {
    if (column === "id") return row.repeat ? `${row.name} (repeat ${row.repeat})` : row.name;
    if (column === "outcome") return name("outcome", row) + (row.flip ? (row.flip < 0 ? " ▼" : " ▲") : "");
    if (column === "question") return row.question || row.response;
    if (names[column]) return brief(name(column, row)) || "–";
    const value = row[column];
    if (value === null) return "–";
    if (column === "score") return value.toFixed(3);
    if (column === "evidence") return ["lost", "recoverable", "verbatim"][value];
    if (column === "latency") return seconds(value);
    return typeof value === "number" ? number.format(value) : value;
  };

  const PICKS = ["run", "system", "dataset", "outcome", "evidence", "untouched", "flip", "error"];
  const query = () => ({
    equal: Object.fromEntries(PICKS.map((each) => [each, find(`by-${each}`).value]).filter(([, value]) => value !== "")),
    low: find("score-from").value, high: find("score-to").value, words: find("search").value.trim(), sort: sort.by, down: sort.down,
  });
  // Of two questions that are under way, only the answer to the later one is shown.
  const load = async () => {
    const own = ++turn;
    let answer;
    try { answer = await source.find(query(), page * PAGE, PAGE); }
    catch (error) { if (own === turn) find("found").textContent = `The examples cannot be listed: ${error.message}.`; return; }
    if (own !== turn) return;
    rows = answer.rows;
    found = answer.found;
    about.total = answer.total;
    about.reading = answer.reading;
    const pages = Math.max(1, Math.ceil(found / PAGE));
    if (page >= pages) { page = pages - 1; await load(); return; }
    draw();
  };
  const choose = () => { page = 0; return load(); };

  const draw = () => {
    const pages = Math.max(1, Math.ceil(found / PAGE)), from = found ? page * PAGE + 1 : 0;
    const some = found === about.total ? "" : ` (of ${number.format(about.total)})`;
    find("found").textContent = `${number.format(from)}–${number.format(page * PAGE + rows.length)} of ${number.format(found)} rows${some}${about.reading ? `; ${about.reading}` : ""}`;
    find("before").disabled = page === 0;
    find("after").disabled = page >= pages - 1;
    find("heads").replaceChildren(...shown().map(([column, title, text]) => {
      const head = make("th", null, `c-${column}${text ? " text" : ""}`);
      head.scope = "col";
      const own = sort.by === column;
      head.setAttribute("aria-sort", own ? (sort.down ? "descending" : "ascending") : "none");
      const button = make("button", title + (own ? (sort.down ? " ↓" : " ↑") : ""));
      button.type = "button";
      button.dataset.sort = column;
      head.append(button);
      return head;
    }));
    find("rows").replaceChildren(...rows.map((row, place) => {
      const line = make("tr");
      line.tabIndex = 0;
      line.dataset.place = place;
      for (const [column, , text] of shown()) {
        const cell = make("td", write(column, row), `c-${column}${text ? " text" : ""}`);
        if (column === "outcome") cell.classList.add(`o-${name("outcome", row)}`);
        if (["question", "id", "system", "dataset", "run"].includes(column)) cell.title = names[column] ? name(column, row) : cell.textContent;
        line.append(cell);
      }
      return line;
    }));
  };
  const turnPage = (by) => { page = Math.max(0, page + by); return load(); };

  // --- one example
  const link = (row) => "#example=" + [name("run", row), name("system", row), name("dataset", row), row.name, row.repeat].map((each) => encodeURIComponent(each)).join("&");
  const part = (body, title, ...children) => {
    if (!children.length) return;
    body.append(make("h3", title), ...children);
  };
  const list = (pairs) => {
    const made = make("dl");
    for (const [name, value] of pairs) made.append(make("dt", name), make("dd", typeof value === "number" ? number.format(value) : Array.isArray(value) ? value.join(", ") : String(value)));
    return made;
  };
  const measure = (name, value) => typeof value === "boolean" ? (value ? "yes" : "no") : typeof value !== "number" ? value
    : /overhead|seconds/.test(name) ? (value < 0 ? "-" : "") + seconds(Math.abs(value)) : /savings|stability/.test(name) ? `${(value * 100).toFixed(1)}%` : value;
  const strip = (pairs) => {
    const made = make("dl", null, "strip");
    for (const [name, value] of pairs) {
      const pair = make("div");
      pair.append(make("dt", name), make("dd", typeof value === "number" ? number.format(value) : value));
      made.append(pair);
    }
    return made;
  };
  const FOLDED = 900, ENDS = 250;  // characters of an unchanged stretch that is folded, and of its ends that are shown
  const fold = (value, first, last) => {
    const [start, end] = [first ? 0 : ENDS, value.length - (last ? 0 : ENDS)];
    const hidden = make("button", `… ${number.format(end - start)} unchanged characters …`, "fold");
    hidden.type = "button";
    hidden.addEventListener("click", () => hidden.replaceWith(value.slice(start, end)));
    return [value.slice(0, start), hidden, value.slice(end)];
  };
  const context = (pieces) => {
    const text = make("pre"), changed = pieces.some(([kind]) => kind !== "k" && kind !== "f");
    for (const [place, [kind, value, evidence]] of pieces.entries()) {
      if (changed && kind === "k" && !evidence && value.length > FOLDED) { text.append(...fold(value, place === 0, place === pieces.length - 1)); continue; }
      if (kind === "f") { text.append(make("span", `\n… ${number.format(+value)} characters are not shown …\n`, "k-f")); continue; }
      const piece = make(kind === "d" || kind === "l" ? "del" : kind === "a" || kind === "m" ? "ins" : "span", null, kind === "k" ? "" : `k-${kind}`);
      piece.append(evidence ? make("mark", value, "ev") : value);
      text.append(piece);
    }
    return text;
  };
  // What the system did comes first, then what it was worth; what was measured on the way is folded.
  const fill = (body, row, one) => {
    body.replaceChildren();
    if (one.error) part(body, "error", make("pre", one.error + (one.traceback ? `\n${one.traceback}` : "")));
    let cut = false;
    for (const [title, pieces] of one.context) {
      cut = cut || pieces.some(([kind]) => kind === "f");
      if (pieces.length) part(body, title, context(pieces));
      else part(body, "context", make("p", title, "missing"));
    }
    if (!one.context.length) part(body, "context before and after", make("p", "not known: the run's store was not at hand", "missing"));
    else if (one.context.some(([, pieces]) => pieces.length)) body.append(make("p", "Struck through: dropped. Underlined: added. Dotted: moved, faint where it was. Marked: evidence that the answer needs." + (cut ? " Cut to keep the page small; context-bench diff --full shows all of it." : ""), "about"));
    for (const [title, text] of one.prompt) part(body, title, make("pre", text));
    if (one.gold === null) part(body, "gold", make("p", "not known: the run's store was not at hand", "missing"));
    else part(body, "gold", make("pre", one.gold.length ? one.gold.join("\n") : "none given"));
    if (one.same) part(body, "response", make("p", "the context that it passed on, which is shown above", "missing"));
    else part(body, "response", make("pre", one.response || "(empty)"));
    const outcome = write("outcome", row), score = row.score;
    part(body, "outcome", strip([["outcome", outcome], ["score", score === null ? "not scored" : score.toFixed(3)], ["dataset", write("dataset", row)],
      ["evidence", row.evidence !== null ? write("evidence", row) : "retrieval_recall" in one.scores ? `${(one.scores.retrieval_recall * 100).toFixed(1)}% retrieved` : "not measured"], ["tokens in", row.input],
      ["passed on", row.output === null ? "not measured" : row.output], ["latency", seconds(row.latency)]]));
    const scores = [...Object.entries(one.scores), ...Object.entries(one.unscored).map(([name, why]) => [`${name} (no score)`, why])];
    if (scores.length) part(body, "scores", strip(scores.map(([name, value]) => [name, typeof value === "number" ? value.toFixed(3) : value])));
    const reasons = Object.entries(one.reasons);
    if (reasons.length) part(body, "judge's reasons", list(reasons));
    const facts = Object.entries(one.facts).map(([name, value]) => [name.replaceAll("_", " "), measure(name, value)]);
    const tapped = one.upstream !== null || "upstream_calls" in one.facts;
    if (!tapped && !facts.length) return;
    const folded = make("details"), all = tapped ? [["tokens that reached the model", one.upstream === null ? "not measured" : one.upstream], ...facts] : facts;
    folded.append(make("summary", "upstream_calls" in one.facts ? "What the tap saw" : tapped ? "What reached the model" : "Measured on the way"), list(all));
    body.append(folded);
  };
  const dialog = find("one");
  const open = async (row, place, push = true) => {
    opened = { row, place };
    let one;
    find("one-body").setAttribute("aria-busy", "true");
    try { one = await source.details(row); }
    catch (error) { find("found").textContent = `The example cannot be shown: ${error.message}.`; return; }
    finally { find("one-body").removeAttribute("aria-busy"); }
    if (opened.row !== row) return;
    find("one-title").textContent = `${write("id", row)} · ${write("system", row)}`;
    fill(find("one-body"), row, one);
    find("copy").textContent = "Copy link";
    find("earlier").disabled = place <= 0;
    find("later").disabled = place >= found - 1;
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    find("one-title").focus();
    if (push && location.hash !== link(row)) history.replaceState(null, "", link(row));
  };
  let stepping = Promise.resolve();
  const step = (by) => { stepping = stepping.then(async () => {
    const place = opened.place + by;
    if (place < 0 || place >= found) return;
    if (Math.floor(place / PAGE) !== page) { page = Math.floor(place / PAGE); await load(); }
    if (rows[place - page * PAGE]) await open(rows[place - page * PAGE], place);
  }); };
  const openLine = (line) => { const place = +line.dataset.place; if (rows[place]) open(rows[place], page * PAGE + place); };
  dialog.addEventListener("close", () => {
    history.replaceState(null, "", "#examples");
    const line = find("rows").children[opened.place - page * PAGE];
    if (line) line.focus();
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  find("close").addEventListener("click", () => dialog.close());
  find("earlier").addEventListener("click", () => step(-1));
  find("later").addEventListener("click", () => step(1));
  find("copy").addEventListener("click", async () => {
    const address = location.href.split("#")[0] + link(opened.row);
    try { await navigator.clipboard.writeText(address); find("copy").textContent = "Copied"; }
    catch { find("copy").textContent = "It is in the address bar"; }
  });
  const show = async (parts, push) => {
    const located = await source.locate(parts);
    if (!located) { find("found").textContent = "The link names an example that is not on this page."; return; }
    find("picks").reset();
    sort = { by: null, down: false };
    page = Math.floor(located.place / PAGE);
    await load();
    await open(located.row, located.place, push);
  };
  const follow = () => {
    if (!location.hash.startsWith("#example=")) return null;
    let parts;
    try { parts = location.hash.slice(9).split("&").map(decodeURIComponent); } catch { return null; }
    return show(parts, false);
  };

  const listNames = (kind) => {
    const select = find(`by-${kind}`), have = new Set([...select.options].map((option) => option.value));
    Object.entries(names[kind]).filter(([value]) => !have.has(value)).forEach(([value, text]) => {
      const option = make("option", brief(text) || "(none)");
      option.value = value;
      select.append(option);
    });
    select.parentElement.hidden = count(kind) < (kind === "error" ? 1 : 2);
  };
  const learn = (state) => {
    about = { ...about, ...state };
    names = state.names;
    for (const kind of ["run", "system", "dataset", "error"]) listNames(kind);
    find("by-flip").parentElement.hidden = !about.flips;
    find("by-evidence").parentElement.hidden = !about.evidence;
    find("by-untouched").parentElement.hidden = !about.untouched;
  };
  const start = async () => {
    learn(await source.start());
    await load();
    await follow();
    if (source.live) source.watch((state) => { learn(state); if (!dialog.open) load(); });
    root.dataset.ready = "yes";
  };
  let waiting;
  find("picks").addEventListener("submit", (event) => event.preventDefault());
  find("picks").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(choose, 120); });
  find("heads").addEventListener("click", async (event) => {
    const column = event.target.dataset.sort;
    if (!column) return;
    sort = { by: column, down: sort.by === column ? !sort.down : false };
    await choose();
    find("heads").querySelector(`[data-sort="${column}"]`).focus();
  });
  find("rows").addEventListener("click", (event) => { const line = event.target.closest("tr"); if (line) openLine(line); });
  find("before").addEventListener("click", () => turnPage(-1));
  find("after").addEventListener("click", () => turnPage(1));
  find("reset").addEventListener("click", () => { find("picks").reset(); sort = { by: null, down: false }; choose(); });
  // --- a number leads to the examples behind it
  const KINDS = { lost: ["evidence", "0"], broken: ["flip", "-1"], fixed: ["flip", "1"], failed: ["outcome", "2"], untouched: ["untouched", "1"] };
  const pickNamed = (kind, text) => { find(`by-${kind}`).value = Object.keys(names[kind]).find((each) => names[kind][each] === text) ?? ""; };
  document.addEventListener("click", (event) => {
    const to = event.target.closest("a.to-examples");
    if (!to) return;
    const { run, system, kind } = JSON.parse(to.dataset.picks);
    find("picks").reset();
    sort = { by: null, down: false };
    pickNamed("run", run);
    pickNamed("system", system);
    find(`by-${KINDS[kind][0]}`).value = KINDS[kind][1];
    choose();
  });
  document.addEventListener("click", (event) => {
    const to = event.target.closest("a.to-example");
    if (!to) return;
    event.preventDefault();
    show(JSON.parse(to.dataset.example).map(String), true);
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
    else if (event.key === "Enter" && line) { event.preventDefault(); openLine(line); }
    else if (event.key === "n") turnPage(1);
    else if (event.key === "p") turnPage(-1);
  });
  addEventListener("hashchange", follow);
  start().catch((error) => { find("found").textContent = `The examples cannot be shown: ${error.message}`; });
})();
