// Calls the published JavaScript client for the tests: one JSON request per line in, one JSON answer per line out.
//
//     node caller.mjs <module of the client> <base URL> <API key>      {"method": "getTemplate", "arguments": [7]}
//
// The method "*" answers with the names of all methods there are.
import {createInterface} from "node:readline"
import {pathToFileURL} from "node:url"

const [modulePath, url, key] = process.argv.slice(2)
const {DocusealApi} = await import(pathToFileURL(modulePath))
const client = new DocusealApi()
client.configure({url, key})

for await (const line of createInterface({input: process.stdin})) {
  const request = JSON.parse(line)
  let answer
  try {
    const names = Object.getOwnPropertyNames(DocusealApi.prototype).filter((name) => name !== "constructor")
    answer = {result: request.method === "*" ? names : await client[request.method](...request.arguments)}
  } catch (error) {
    answer = {error: error.message}
  }
  process.stdout.write(JSON.stringify(answer) + "\n")
}
