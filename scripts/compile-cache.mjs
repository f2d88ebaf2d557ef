// Keeps compiled code between starts, and in a clone the TypeScript without its types, for child processes too: a start takes half
// the time. Without write access to the folder nothing is kept.
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import { isPackage } from './program.mjs'

process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../node_modules/.cache/compile', import.meta.url))
enableCompileCache(process.env.NODE_COMPILE_CACHE)

if (!isPackage) {
  const stripCache = new URL('./strip-cache.mjs', import.meta.url).href
  process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ''} --import=${stripCache}`
  await import(stripCache)
}
