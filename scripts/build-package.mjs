// Compiles `src` to JavaScript with declarations in `dist`, where an installed package has its program. `npm pack` runs this before
// it packs, and with --remove afterwards. A clone needs no build.
import { spawnSync } from 'node:child_process'
import { cpSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const dist = join(root, 'dist')

/** What the program reads while it runs. The console's sources lose their types when they are served. */
const isRead = (path) =>
  path.startsWith(join(root, 'src/web')) || !path.endsWith('.ts') || path.endsWith('.d.ts')
const isCopied = (path) => statSync(path).isDirectory() || isRead(path)

function build() {
  const compiler = join(
    dirname(createRequire(import.meta.url).resolve('typescript-7/package.json')),
    'bin/tsc',
  )
  const project = join(root, 'scripts/package.tsconfig.json')
  const { status, error } = spawnSync(process.execPath, [compiler, '--project', project], {
    // The compiler tells its errors on stdout, where npm's own report of the package belongs.
    stdio: ['ignore', process.stderr.fd, 'inherit'],
  })
  if (error !== undefined) throw error
  if (status !== 0) throw new Error(`the compiler ended with ${status}`)
  cpSync(join(root, 'src'), dist, { recursive: true, filter: isCopied })
}

rmSync(dist, { recursive: true, force: true })
if (!process.argv.includes('--remove')) build()
