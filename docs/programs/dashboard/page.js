// Draws the panels of a dashboard in Grafana's JSON model where Grafana lays them out, with uPlot, as Grafana's own lines are.

const COLUMNS = 24, CELL = 30, GAP = 8;
const PALETTE = ["#73bf69", "#f2cc0c", "#5794f2", "#ff9830", "#f2495c", "#b877d9", "#8ab8ff", "#c0d8ff", "#fade2a", "#37872d"];
const STEPS = { green: "#299c46", red: "#d44a3a" };

const element = (name, inside = "", kind = "") => {
  const made = document.createElement(name);
  made.textContent = inside;
  made.className = kind;
  return made;
};

// --- units, as Grafana words them

const SCALES = {
  s: [[1e-9, " ns"], [1e-6, " µs"], [1e-3, " ms"], [1, " s"], [60, " mins"], [3600, " hours"], [86400, " days"], [604800, " weeks"]],
  bytes: [[1, " B"], [1024, " KiB"], [1024 ** 2, " MiB"], [1024 ** 3, " GiB"]],
  reqps: [[1, " req/s"], [1e3, "K req/s"]],
  ops: [[1, " ops/s"], [1e3, "K ops/s"]],
  short: [[1, ""], [1e3, " K"], [1e6, " Mil"]],
  percentunit: [[0.01, "%"]],
};
SCALES.s.push([31536000, " years"]);

/** The number as it is shown: in the largest unit that it has one of. `decimals`: else as many as three digits need. */
function worded(value, unit, decimals) {
  if (value === null || Number.isNaN(value)) return "No data";
  const units = SCALES[unit];
  const [size, name] = units.findLast(([least]) => Math.abs(value) >= least) ?? (value ? units[0] : (units.find(([least]) => least === 1) ?? units[0]));
  const scaled = value / size;
  const digits = decimals ?? (Number.isInteger(scaled) ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(scaled)))));
  return `${scaled.toFixed(digits)}${name}`;
}

/** The same for the marks of an axis, which have one unit and as many decimals as tell them apart. */
function marked(marks, unit) {
  const least = Math.min(...marks.filter(Boolean).map(Math.abs));
  const increment = marks.length > 1 ? marks[1] - marks[0] : least;
  return marks.map((mark) => {
    const [size] = SCALES[unit].findLast(([start]) => Math.abs(mark) >= start) ?? [1];
    const step = increment / size;
    return worded(mark, unit, mark ? Math.max(0, Math.min(3, Math.ceil(-Math.log10(step) - 1e-9))) : 0);
  });
}

/** What the marks of an axis may be apart: whole numbers of things, powers of two for bytes, anything else as uPlot has it. */
function incrementsOf(scale, lines) {
  const unit = scale.split(" ")[0];
  if (unit === "bytes") return Array.from({ length: 40 }, (_, power) => 2 ** power);
  const whole = unit === "short" && lines.every((line) => line.unit !== unit || line.values.every((value) => Number.isInteger(value ?? 0)));
  return whole ? [1, 10, 100, 1e3, 1e4, 1e5, 1e6].flatMap((power) => [power, 2 * power, 5 * power]) : undefined;
}

// --- panels

const number = (text) => (text === "NaN" || text.endsWith("Inf") ? null : Number(text));

/** The lines of a panel: each with its name, unit, side and a value (or null) for each of `times`. */
function linesOf(panel, answers, times) {
  const defaults = panel.fieldConfig.defaults;
  return answers.flatMap((series, query) => {
    const own = panel.fieldConfig.overrides.filter((one) => one.matcher.id === "byFrameRefID" && one.matcher.options === panel.targets[query].refId);
    const settings = Object.fromEntries(own.flatMap((one) => one.properties.map(({ id, value }) => [id, value])));
    return series.map((one) => {
      const values = new Map(one.values.map(([time, text]) => [time, number(text)]));
      return {
        name: one.name,
        unit: settings.unit ?? defaults.unit,
        right: settings["custom.axisPlacement"] === "right",
        values: times.map((time) => values.get(time) ?? null),
      };
    });
  });
}

function timesOf(answers) {
  return [...new Set(answers.flat().flatMap((one) => one.values.map(([time]) => time)))].sort((one, other) => one - other);
}

function drawLines(box, panel, answers, start, end) {
  const times = timesOf(answers);
  const lines = linesOf(panel, answers, times).filter((line) => line.values.some((value) => value !== null));
  if (!lines.length) {
    box.append(element("div", panel.fieldConfig.defaults.noValue ?? "No data", "empty"));
    return;
  }
  const chart = element("div", "", "chart");
  const byValue = panel.options.legend.displayMode === "table";
  const legend = element("div", "", byValue ? "legend values" : "legend");
  lines.forEach((line, place) => {
    line.colour = PALETTE[place % PALETTE.length];
    line.last = line.values.findLast((one) => one !== null);
  });
  if (byValue) legend.append(element("span", "Name"), element("b", "Last * ⌄"));
  for (const line of byValue ? lines.toSorted((one, other) => other.last - one.last) : lines) {
    const entry = element("span", line.name, "line");
    entry.style.setProperty("--colour", line.colour);
    legend.append(entry);
    if (byValue) legend.append(element("b", worded(line.last, line.unit)));
  }
  box.classList.toggle("beside", byValue);
  const body = element("div", "", "body");
  body.append(chart, legend);
  box.append(body);
  const font = '11px "Noto Sans", sans-serif';
  const grid = { stroke: "#24292e18", width: 1 };
  const scales = [...new Set(lines.map((line) => `${line.unit} ${line.right}`))];
  const width = (plot, words) => 10 + Math.max(0, ...(words ?? []).map((word) => plot.ctx.measureText(word).width / devicePixelRatio));
  const range = (plot, least, most) => uPlot.rangeNum(0, most > 0 ? most : 1, { min: { pad: 0, soft: 0, mode: 1 }, max: { pad: 0.1, soft: 0, mode: 1 } });
  new uPlot(
    {
      width: chart.clientWidth - 6,
      height: chart.clientHeight,
      legend: { show: false },
      cursor: { show: false },
      padding: [6, 8, 0, 0],
      scales: { x: { time: true, range: () => [start, end] }, ...Object.fromEntries(scales.map((name) => [name, { range }])) },
      axes: [
        { font, stroke: "#6e7277", grid, ticks: { show: false }, size: 22, gap: 3, space: 70, values: (plot, marks) => marks.map((mark) => new Date(1000 * mark).toTimeString().slice(0, 5)) },
        ...scales.map((name, place) => ({
          scale: name,
          side: name.endsWith("true") ? 1 : 3,
          font,
          stroke: "#6e7277",
          grid: { ...grid, show: place === 0 },
          ticks: { show: false },
          gap: 4,
          space: 28,
          size: width,
          incrs: incrementsOf(name, lines),
          values: (plot, marks) => marked(marks, name.split(" ")[0]),
        })),
      ],
      series: [
        {},
        ...lines.map((line) => ({ label: line.name, scale: `${line.unit} ${line.right}`, stroke: line.colour, width: 1.3, points: { show: false } })),
      ],
    },
    [times, ...lines.map((line) => line.values)],
    chart,
  );
}

function drawNumber(box, panel, answers) {
  const times = timesOf(answers);
  const [line] = linesOf(panel, answers, times);
  const value = line?.values.findLast((one) => one !== null) ?? null;
  const step = panel.fieldConfig.defaults.thresholds.steps.findLast((one) => one.value === null || (value !== null && value >= one.value));
  box.classList.add("stat");
  box.style.background = STEPS[step.color];
  box.append(element("div", worded(value, panel.fieldConfig.defaults.unit), "value"));
  if (!line) return;
  const most = Math.max(...line.values, 1e-9);
  const points = line.values.map((one, place) => `${(100 * place) / Math.max(1, times.length - 1)},${40 - (36 * (one ?? 0)) / most}`).join(" ");
  box.insertAdjacentHTML("beforeend", `<svg viewBox="0 0 100 40" preserveAspectRatio="none"><polygon points="0,40 ${points} 100,40" fill="#ffffff30"/></svg>`);
}

function drawTable(box, panel, answers) {
  const organised = (panel.transformations ?? []).find((one) => one.id === "organize")?.options ?? {};
  const hidden = organised.excludeByName ?? {}, renamed = organised.renameByName ?? {}, places = organised.indexByName ?? {};
  const rows = answers.flat().map((one) => ({ Time: new Date(1000 * one.value[0]).toLocaleString(), ...one.metric, Value: Number(one.value[1]) }));
  const columns = [...new Set(rows.flatMap(Object.keys))].filter((name) => !hidden[name]).sort((one, other) => (places[one] ?? 99) - (places[other] ?? 99));
  const table = element("table");
  const line = (name, values) => {
    const made = element("tr");
    columns.forEach((column, place) => made.append(element(name, String(values[place]), column === "Value" ? "number" : "")));
    table.append(made);
  };
  line("th", columns.map((name) => renamed[name] ?? name));
  rows.forEach((row) => line("td", columns.map((name) => row[name] ?? "")));
  box.append(table);
}

globalThis.drawDashboard = (dashboard, { start, end, panels }) => {
  const header = document.querySelector("header"), main = document.querySelector("main");
  header.append(element("h1", dashboard.title));
  for (const [label, value] of [["Prometheus", "Prometheus"], ["Job", "All"]]) {
    const chosen = element("span", value);
    chosen.prepend(element("b", label));
    header.append(chosen);
  }
  header.append(element("span", `Last ${Math.round((end - start) / 60)} minutes`));
  const column = (main.clientWidth + GAP) / COLUMNS;
  for (const panel of dashboard.panels) {
    const { x, y, w, h } = panel.gridPos;
    const box = element("section", "", panel.type === "row" ? "row" : "panel");
    box.dataset.title = panel.title;
    Object.assign(box.style, { left: `${x * column}px`, top: `${y * (CELL + GAP)}px`, width: `${w * column - GAP}px`, height: `${h * (CELL + GAP) - GAP}px` });
    main.append(box);
    if (panel.type === "row") {
      box.textContent = panel.title;
      continue;
    }
    const title = element("h2", panel.title);
    title.append(element("i", "i"));
    box.append(title);
    const answers = panels[panel.id];
    if (panel.type === "stat") drawNumber(box, panel, answers);
    else if (panel.type === "table") drawTable(box, panel, answers);
    else drawLines(box, panel, answers, start, end);
  }
  const last = Math.max(...dashboard.panels.map(({ gridPos }) => gridPos.y + gridPos.h));
  main.style.height = `${last * (CELL + GAP)}px`;
};
