// --- the list of all runs
(() => {
  const PAUSE = 3000, MOST = 200;
  let runs = [], sort = { by: "created", down: true }, chosen = new Set();
  const HEADS = [["id", "run", true], ["created", "when", true], ["status", "status", true], ["rows", "rows"], ["systems", "systems", true],
    ["datasets", "datasets", true], ["best", "best score"], ["saved", "saved"], ["verdict", "verdict", true]];
  const collator = new Intl.Collator("en", { numeric: true });
  const value = (run, by) => Array.isArray(run[by]) ? run[by].join(", ") : run[by];
  const write = (run, by) => {
    const found = run.brief[by] ?? value(run, by);
    if (found === null || found === "") return by === "best" ? "not measured" : "–";
    if (by === "saved") return `${(found * 100).toFixed(1)}%`;
    if (by === "best") return found.toFixed(3);
    return typeof found === "number" ? number.format(found) : found;
  };
  const choose = () => {
    const words = find("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = runs.filter((run) => words.every((word) => run.text.includes(word)));
    return found.sort((a, b) => {
      const one = value(a, sort.by), two = value(b, sort.by);
      if (one === null || two === null) return (one === null) - (two === null);
      const order = typeof one === "number" ? one - two : collator.compare(one, two);
      return sort.down ? -order : order;
    });
  };
  const draw = () => {
    const found = choose(), focused = document.activeElement && document.activeElement.dataset.run;
    find("found").textContent = `${number.format(found.length)} of ${number.format(runs.length)} runs` + (found.length > MOST ? `; the first ${MOST} are shown` : "");
    const heads = HEADS.map(([by, title, text]) => {
      const head = make("th", null, `r-${by}${text ? " text" : ""}`), own = sort.by === by;
      head.scope = "col";
      head.setAttribute("aria-sort", own ? (sort.down ? "descending" : "ascending") : "none");
      const button = make("button", title + (own ? (sort.down ? " ↓" : " ↑") : ""));
      button.type = "button";
      button.dataset.sort = by;
      head.append(button);
      return head;
    });
    const pick = make("th", null, "r-pick");
    pick.scope = "col";
    pick.append(make("span", "choose", "sr"));
    find("heads").replaceChildren(pick, ...heads);
    find("rows").replaceChildren(...found.slice(0, MOST).map((run) => {
      const line = make("tr"), box = make("input");
      box.type = "checkbox";
      box.checked = chosen.has(run.id);
      box.dataset.pick = run.id;
      box.setAttribute("aria-label", `Choose run ${run.id}`);
      const first = make("td", null, "r-pick");
      first.append(box);
      line.append(first);
      for (const [by, , text] of HEADS) {
        const cell = make("td", null, `r-${by}${text ? " text" : ""}`);
        if (by !== "id") cell.append(make("span", write(run, by)));
        if (by === "id") {
          const link = make("a", run.id);
          link.href = `run/${encodeURIComponent(run.id)}`;
          link.dataset.run = run.id;
          cell.append(link);
        }
        if (by === "status") cell.classList.add(run.under_way ? "under-way" : `st-${run.status.replaceAll(" ", "-")}`);
        if (["systems", "datasets", "verdict"].includes(by)) cell.title = value(run, by);
        line.append(cell);
      }
      return line;
    }));
    if (focused) { const link = find("rows").querySelector(`a[data-run="${CSS.escape(focused)}"]`); if (link) link.focus(); }
    mark();
  };
  const mark = () => {
    const button = find("side-by-side");
    button.disabled = chosen.size < 2;
    button.textContent = chosen.size > 1 ? `Open ${chosen.size} side by side` : "Open side by side";
  };
  const load = async () => {
    const note = find("trouble");
    try {
      if (document.visibilityState === "visible" || !runs.length) {
        const reply = await fetch("api/runs", { credentials: "omit" });
        const said = await reply.json().catch(() => ({}));
        if (!reply.ok) throw new Error(said.error || `the server answered ${reply.status}`);
        const text = JSON.stringify(said.runs);
        if (text !== load.last) {
          load.last = text;
          runs = said.runs.map((run) => ({ ...run, text: [run.id, run.created, run.status, ...run.systems, ...run.datasets, run.command].join("\n").toLowerCase() }));
          chosen = new Set([...chosen].filter((id) => runs.some((run) => run.id === id)));
          draw();
        }
        note.hidden = true;
      }
    } catch (error) {
      note.textContent = `This list is not up to date: ${error.message}.`;
      note.hidden = false;
    }
    root.dataset.ready = "yes";
    setTimeout(load, PAUSE);
  };
  find("picks").addEventListener("submit", (event) => event.preventDefault());
  find("picks").addEventListener("input", draw);
  find("heads").addEventListener("click", (event) => {
    const by = event.target.dataset.sort;
    if (!by) return;
    sort = { by, down: sort.by === by ? !sort.down : by === "created" || by === "rows" || by === "best" || by === "saved" };
    draw();
    find("heads").querySelector(`[data-sort="${by}"]`).focus();
  });
  find("rows").addEventListener("change", (event) => {
    const id = event.target.dataset.pick;
    if (event.target.checked) chosen.add(id); else chosen.delete(id);
    mark();
  });
  find("side-by-side").addEventListener("click", () => {
    location.href = `run/${[...chosen].map(encodeURIComponent).join("+")}`;
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select")) return;
    const links = [...find("rows").querySelectorAll("a")], place = links.indexOf(document.activeElement);
    if (event.key === "/") { event.preventDefault(); find("search").focus(); }
    else if (event.key === "j" || (event.key === "ArrowDown" && place >= 0)) { event.preventDefault(); (links[place + 1] || links[0])?.focus(); }
    else if (event.key === "k" || (event.key === "ArrowUp" && place >= 0)) { event.preventDefault(); (links[place - 1] || links[0])?.focus(); }
  });
  load();
})();
