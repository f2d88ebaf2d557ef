// The programs that tests start, each bundled: a run starts a thousand processes, and in each of them Node takes a fifth of a second to find,
// read and link some 600 modules. What tests import is `src` as it is, and so is what `npm start` and `npx mintlake`
// run themselves; their child processes are bundled.
import { hash } from 'node:crypto'
import {
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type Plugin, rolldown } from 'rolldown'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const KEPT = join(ROOT, 'node_modules/.cache/programs')
const PROGRAMS = [
  ...['src/main.ts', 'src/cli/main.ts', 'src/store/process/main.ts'],
  ...['src/{checkpoint,cluster,store}/**/*-process.ts', 'test/**/*.child.ts', 'bench/{clients,servers}/*.ts'],
]
/** Packages of many modules. Others find their files by where they lie, or are loaded when they are first used. */
const INCLUDED = /^(zod|zod-openapi|prom-client|@opentelemetry\/api)(\/|$)/
/** Another run may use what was bundled before. */
const KEPT_MS = 3_600_000

/** A module goes on seeing where its source lies: it finds files and programs by that. */
const sourceAddresses: Plugin = {
  name: 'source-addresses',
  transform(code, path) {
    if (path.includes('/node_modules/') || !code.includes('import.meta.')) return null
    return code
      .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href))
      .replaceAll('import.meta.filename', JSON.stringify(path))
      .replaceAll('import.meta.dirname', JSON.stringify(dirname(path)))
  },
}

/** Returns a folder that has each program at its path below the project, with `.mjs` behind it. What the folder has never changes. */
export async function bundlePrograms(): Promise<string> {
  mkdirSync(KEPT, { recursive: true })
  for (const name of readdirSync(KEPT)) removeIfOld(join(KEPT, name))
  const paths = globSync(PROGRAMS, { cwd: ROOT }).toSorted()
  const bundle = await rolldown({
    cwd: ROOT,
    input: Object.fromEntries(paths.map((path) => [path, path])),
    platform: 'node',
    external: (id) => !/^[./]/.test(id) && !INCLUDED.test(id),
    plugins: [sourceAddresses],
  })
  const made = mkdtempSync(join(KEPT, 'new-'))
  const { output } = await bundle.write({
    ...{ dir: made, entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' },
  })
  await bundle.close()
  const code = output.map((file) => (file.type === 'chunk' ? file.code : '')).join('')
  const folder = join(KEPT, hash('sha256', code))
  try {
    renameSync(made, folder)
  } catch {
    // It is there already.
    rmSync(made, { recursive: true })
  }
  utimesSync(folder, new Date(), new Date())
  return folder
}

function removeIfOld(path: string): void {
  if (Date.now() - statSync(path).mtimeMs > KEPT_MS) rmSync(path, { recursive: true, force: true })
}
