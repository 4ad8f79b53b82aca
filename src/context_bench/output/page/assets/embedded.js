// --- the examples from the page itself: columns are unpacked at once, the details of a row when it is opened
const source = (() => {
  const unpack = async (text) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };
  const blocks = [...document.querySelectorAll("script.block")];
  const loaded = new Map(), texts = [];
  const columns = {};
  let about, names, order = [], asked = "";

  const read = (name, row) => {
    const value = columns[name][row];
    return value === null ? "" : names[name][value];
  };
  const search = (row) => texts[row] ??= [columns.name[row], read("system", row), read("dataset", row), columns.question[row],
    columns.response[row], read("error", row)].join("\n").toLowerCase();
  const choose = (query) => {
    const equal = Object.entries(query.equal), found = [];
    const words = query.words.toLowerCase().split(/\s+/).filter(Boolean);
    for (let row = 0; row < about.rows; row++) {
      if (!equal.every(([name, value]) => String(columns[name][row]) === value)) continue;
      const score = columns.score[row];
      if (query.low !== "" && !(score !== null && score >= +query.low)) continue;
      if (query.high !== "" && !(score !== null && score <= +query.high)) continue;
      if (words.length && !words.every((word) => search(row).includes(word))) continue;
      found.push(row);
    }
    return found;
  };
  const arrange = (rows, by, down) => {
    const values = columns[by === "id" ? "name" : by];
    const collator = new Intl.Collator("en", { numeric: true });
    const text = ["id", "question", "run", "system", "dataset"].includes(by);
    const key = (row) => names[by] && by !== "outcome" ? read(by, row) : values[row];
    return rows.sort((a, b) => {
      const one = key(a), two = key(b);
      if (one === null || two === null) return (one === null) - (two === null) || a - b;
      const order = text ? collator.compare(one, two) : one - two;
      return (down ? -order : order) || a - b;
    });
  };
  const take = (row) => {
    const made = { key: row };
    for (const name of Object.keys(columns)) made[name] = columns[name][row];
    return made;
  };
  return {
    live: false,
    async start() {
      about = await unpack(find("index").textContent);
      names = about.names;
      const parts = await Promise.all([...document.querySelectorAll("script.part")].map((part) => unpack(part.textContent)));
      for (const part of parts) {
        part.question = part.question.map((place) => part.questions[place]);
        delete part.questions;
        for (const [name, values] of Object.entries(part)) (columns[name] ??= []).push(...values);
      }
      return { names, brief: about.brief, total: about.rows, flips: columns.flip.some(Boolean), evidence: columns.evidence.some((each) => each !== null), untouched: columns.untouched.includes(1) };
    },
    async find(query, offset, limit) {
      const wanted = JSON.stringify(query);
      if (wanted !== asked) {
        order = choose(query);
        if (query.sort) arrange(order, query.sort, query.down);
        asked = wanted;
      }
      return { rows: order.slice(offset, offset + limit).map(take), found: order.length, total: about.rows };
    },
    async details(row) {
      let block = about.starts.length - 1;
      while (about.starts[block] > row.key) block--;
      if (!loaded.has(block)) loaded.set(block, unpack(blocks[block].textContent));
      return (await loaded.get(block))[row.key - about.starts[block]];
    },
    async locate([run, system, dataset, name, repeat]) {
      for (let row = 0; row < about.rows; row++) {
        if (columns.name[row] === name && String(columns.repeat[row]) === repeat && read("system", row) === system
          && read("dataset", row) === dataset && read("run", row) === run) return { row: take(row), place: row };
      }
      return null;
    },
  };
})();
