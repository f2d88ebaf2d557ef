// For `node --import`: where the folder in its address has the program that this process is to run, bundled (bundle.ts), that one runs. Not
// where it is started with modules besides, which may change what it loads.
import { existsSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const folder = new URL(import.meta.url).searchParams.get('folder')
const root = fileURLToPath(new URL('../../..', import.meta.url))
const program = join(folder, `${relative(root, process.argv[1] ?? '')}.mjs`)

const begin = { url: pathToFileURL(program).href, format: 'module', shortCircuit: true }
if (existsSync(program) && !process.execArgv.includes('--import'))
  registerHooks({
    resolve: (specifier, context, next) =>
      context.parentURL === undefined ? begin : next(specifier, context),
  })
