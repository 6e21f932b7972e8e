// Tells what Redocly's and Stoplight's recommended rules find in OpenAPI documents:
// node lint.mjs <folder of node_modules> <document.json>... prints {document: {redocly: [...], spectral: [...]}}, a sentence each.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, ...documents] = process.argv.slice(2);
const load = createRequire(join(modules, "node_modules", "index.js"));
const redocly = load("@redocly/openapi-core");
const { Document, Spectral } = load("@stoplight/spectral-core");
const parsers = load("@stoplight/spectral-parsers");
const { oas } = load("@stoplight/spectral-rulesets");

// Each schema is compiled for one example or two: to make the compiled code shorter first takes a third of the whole time.
for (const ajv of ["ajv", "@redocly/ajv"]) load(`${ajv}/dist/compile/codegen`).CodeGen.prototype.optimize = () => {};

const config = await redocly.createConfig({ extends: ["recommended"] });
const spectral = new Spectral();
spectral.setRuleset({ extends: [[oas, "recommended"]] });

const findings = {};
for (const document of documents) {
  const byRedocly = await redocly.lint({ ref: document, config });
  const bySpectral = await spectral.run(new Document(readFileSync(document, "utf8"), parsers.Json, document));
  findings[document] = {
    redocly: byRedocly.map((one) => `${one.ruleId} at ${one.location?.[0]?.pointer}: ${one.message}`),
    spectral: bySpectral.map((one) => `${one.code} at ${one.path.join("/")}: ${one.message}`),
  };
}
console.log(JSON.stringify(findings));
