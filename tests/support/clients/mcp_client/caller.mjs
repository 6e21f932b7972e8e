// Calls a published client of the Model Context Protocol for the tests: one JSON request per line in, one JSON answer per line out.
//
//     node caller.mjs <folder with node_modules> <client | sdk> <URL of /mcp> <API key>
//     {"method": "listTools", "arguments": []}
import {createRequire} from "node:module"
import {createInterface} from "node:readline"

const [folder, edition, url, key] = process.argv.slice(2)
const require = createRequire(folder + "/caller.cjs")
const editions = {
  client: () => require("@modelcontextprotocol/client"),
  sdk: () => ({
    ...require("@modelcontextprotocol/sdk/client/index.js"),
    ...require("@modelcontextprotocol/sdk/client/streamableHttp.js"),
  }),
}
const {Client, StreamableHTTPClientTransport} = editions[edition]()
const options = edition === "client" ? {versionNegotiation: {mode: "auto"}} : {}
const client = new Client({name: `typescript-${edition}`, version: "9.8.7"}, options)
const headers = {Authorization: `Bearer ${key}`}
await client.connect(new StreamableHTTPClientTransport(new URL(url), {requestInit: {headers}}))

for await (const line of createInterface({input: process.stdin})) {
  const request = JSON.parse(line)
  let answer
  try {
    answer = {result: await client[request.method](...request.arguments) ?? null}
  } catch (error) {
    answer = {error: error.message, code: error.code}
  }
  process.stdout.write(JSON.stringify(answer) + "\n")
}
await client.close()
