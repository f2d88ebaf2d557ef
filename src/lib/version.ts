// The version of Mintlake, as package.json has it: in a clone and in the package it lies two folders above.
import { readFileSync } from 'node:fs'

const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')

export const MINTLAKE_VERSION: string = JSON.parse(manifest).version
