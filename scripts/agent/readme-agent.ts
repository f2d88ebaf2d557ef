// The agent of README.md, for those who run it exactly as it stands there.
import { readFileSync } from 'node:fs'

const README = new URL('../../README.md', import.meta.url)

/** Its text: the one block of JavaScript that imports the client. @throws Error where README has none. */
export function readmeAgent(): string {
  const [, text] =
    /```js\n([^`]*?from 'mintlake\/client'[\s\S]*?)```/.exec(readFileSync(README, 'utf8')) ?? []
  if (text === undefined) throw new Error("README.md has no agent: no block of js imports 'mintlake/client'")
  return text
}
