// `mintlake/client` on Node: the compiled client of a package, or the sources of a clone, which has nothing compiled.
import { existsSync } from 'node:fs'

const compiled = new URL('../dist/client/index.js', import.meta.url)

async function load() {
  if (existsSync(compiled)) return import(compiled)
  try {
    return await import(new URL('../src/client/index.ts', import.meta.url))
  } catch (error) {
    if (error?.code !== 'ERR_UNKNOWN_FILE_EXTENSION') throw error
    const program = process.argv[1] === undefined ? 'agent.mjs' : process.argv[1].split(/[\\/]/).pop()
    throw new Error(
      `Node ${process.versions.node} cannot read the client of a clone, which is TypeScript: run "npx node ${program}" in the clone, ` +
        'which is the Node that npm ci has brought, or any Node from 22.18 on',
    )
  }
}

export const { createClient, MintlakeClient, MintlakeError } = await load()
