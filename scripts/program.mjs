// Where the program is: TypeScript in `src` of a clone, which Node runs as it is, or JavaScript in `dist` of an installed package,
// since Node strips no types below node_modules. And what its Node is given. Plain JavaScript, since it has to run on a Node that
// cannot run the rest.
import { existsSync } from 'node:fs'

const root = new URL('..', import.meta.url)

/** Whether this is an installed package. */
export const isPackage = !existsSync(new URL('src/main.ts', root))

/** What the server's Node is given: start.mjs says why. package.json and mintlake.service have it too. */
export const SERVER_FLAGS = ['--v8-pool-size=1', '--max-semi-space-size=32', '--heap-growing-percent=200']

/** Address of a module of the program. `name` is its path below `src` without the ending. */
export const programUrl = (name) => new URL(isPackage ? `dist/${name}.js` : `src/${name}.ts`, root).href
