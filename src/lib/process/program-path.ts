// Paths of programs that run in processes of their own.
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Path of a program beside a module.
 * @param name relative to the module, without an ending: it gets the module's, which is `.ts` in a clone and `.js` in the package.
 * @param moduleUrl `import.meta.url` of the module.
 */
export const programPath = (name: string, moduleUrl: string): string =>
  fileURLToPath(new URL(name + extname(new URL(moduleUrl).pathname), moduleUrl))
