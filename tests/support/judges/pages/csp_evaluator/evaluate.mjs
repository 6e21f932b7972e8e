// Tells what Google's evaluator finds in Content-Security-Policies:
// node evaluate.mjs <folder of node_modules> with a JSON list of them at its input prints a list of sentences for each.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const load = createRequire(join(process.argv[2], "node_modules", "index.js"));
const { CspEvaluator } = load("csp_evaluator");
const { CspParser } = load("csp_evaluator/dist/parser.js");
const { Severity } = load("csp_evaluator/dist/finding.js");

const findings = JSON.parse(readFileSync(0, "utf8")).map((policy) =>
  new CspEvaluator(new CspParser(policy).csp)
    .evaluate()
    .map(({ severity, directive, value, description }) =>
      [Severity[severity], directive, value, description].filter(Boolean).join(" "),
    ),
);
console.log(JSON.stringify(findings));
