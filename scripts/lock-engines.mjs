// Removes the `engines` of packages from package-lock.json. npm compares them with the Node that runs npm, which is not the Node that
// runs these packages: that one is a dependency. With them, npm on Node 18 or 20 prints warnings that mean nothing, and on 18 leaves
// out binaries that the tests need. npm runs this after each change of the dependencies ("dependencies" in package.json).
import { readFileSync, writeFileSync } from 'node:fs'

const path = new URL('../package-lock.json', import.meta.url)
const text = readFileSync(path, 'utf8')
const lock = JSON.parse(text)
for (const [name, entry] of Object.entries(lock.packages)) if (name !== '') delete entry.engines
const made = `${JSON.stringify(lock, null, 2)}\n`
if (made !== text) writeFileSync(path, made)
