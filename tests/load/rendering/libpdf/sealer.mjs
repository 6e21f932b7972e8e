// Fills, flattens and signs PDFs with @libpdf/core, as its documentation says. One JSON line in, one JSON line out:
// {"file", "values", "out"} gives {"bytes"}. The process stays, and so does the signer.
import fs from "node:fs";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

const [, , library, identity, password] = process.argv;
const { PDF, P12Signer } = await import(pathToFileURL(library).href);
const signer = await P12Signer.create(fs.readFileSync(identity), password, { buildChain: true });

async function sealed({ file, values, out }) {
  const pdf = await PDF.load(fs.readFileSync(file));
  const form = pdf.getForm();
  form.fill(values);
  form.flatten();
  const { bytes } = await pdf.sign({ signer, reason: "x", subFilter: "ETSI.CAdES.detached" });
  if (out) fs.writeFileSync(out, bytes);
  return { bytes: bytes.length };
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  try {
    console.log(JSON.stringify(await sealed(JSON.parse(line))));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error?.stack ?? error) }));
  }
}
