// Where an agent keeps its key: a file that only its user may read.
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

/** Bits of a file's mode for others than its owner. */
const OTHERS = 0o077

/** One file for each server. */
export const defaultKeyFile = (baseUrl: string): string =>
  join(homedir(), '.mintlake', `${new URL(baseUrl).host.replaceAll(':', '_')}.key`)

/** The key in the file; null where there is no such file. @throws Error where others may read it. */
export function readKey(path: string): string | null {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return null
  if (process.platform !== 'win32' && (stats.mode & OTHERS) !== 0)
    throw new Error(`${path} can be read by others; run chmod 600 ${path}`)
  return readFileSync(path, 'utf8').trim()
}

/** Writes the key into a new file. @throws Error where the file exists. */
export function writeKey(path: string, key: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  writeFileSync(path, `${key}\n`, { mode: 0o600, flag: 'wx' })
}
