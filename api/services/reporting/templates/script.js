"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const tools = table.closest("section").querySelector(".tools");
  const bodies = [...table.tBodies];
  const texts = bodies.map((body) => body.rows[0].textContent.toLowerCase());
  const filter = () => {
    const text = tools.elements.text.value.trim().toLowerCase();
    const status = tools.elements.status.value;
    let shown = 0;
    bodies.forEach((body, place) => {
      body.hidden = !texts[place].includes(text) || (status !== "" && !body.dataset.status.split(" ").includes(status));
      shown += body.hidden ? 0 : 1;
    });
    tools.querySelector("output").value = shown === bodies.length ? "" : `${shown} of ${bodies.length} shown`;
  };
  tools.hidden = false;
  tools.addEventListener("input", filter);
  tools.addEventListener("submit", (event) => event.preventDefault());
  filter();
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    if (!head.dataset.by) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (body) => body.rows[0].cells[column].dataset.sort.trim();
      const compare = head.dataset.by === "number" ? (a, b) => Number(a) - Number(b) : (a, b) => (a < b ? -1 : Number(a > b));
      const entries = bodies.map((body, place) => ({ body, place, key: key(body) }));
      // what has no value stays at the end in both directions
      entries.sort((a, b) => (a.key === "") - (b.key === "") || (a.key === "" ? 0 : compare(a.key, b.key) * (down ? -1 : 1)) || a.place - b.place);
      table.append(...entries.map((entry) => entry.body));
    });
  });
}
