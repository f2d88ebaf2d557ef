// Says in our words what is wrong with a command line that `parseArgs` of Node refuses, or takes although it should not.

import type { parseArgs } from 'node:util'

/** Whether a flag takes a value; undefined: there is no such flag. */
type TakesValue = (name: string) => boolean | undefined

/**
 * The first fault of the flags, as a sentence without its full stop; null: none is known here.
 * @param takesWords whether words that belong to no flag are taken
 */
export function wrongFlags(
  args: readonly string[],
  takesValue: TakesValue,
  takesWords: boolean,
): string | null {
  for (let at = 0; at < args.length && args[at] !== '--'; at++) {
    const word = args[at] ?? ''
    if (!word.startsWith('-')) {
      if (!takesWords) return `"${word}" belongs to no flag: flags begin with two dashes`
      continue
    }
    if (!word.startsWith('--')) return `${word} is no flag: flags begin with two dashes`
    const [flag = ''] = word.split('=', 1)
    const needsValue = takesValue(flag.slice(2))
    const hasValue = flag !== word
    if (needsValue === false && hasValue) return `${flag} takes no value`
    if (needsValue !== true || hasValue) continue
    const value = args[++at]
    if (value === undefined || takesValue(value.split('=', 1)[0]?.slice(2) ?? '') !== undefined)
      return `${flag} needs a value`
    if (value.startsWith('-')) return `${flag}: a value that begins with a dash is written ${flag}=${value}`
  }
  return null
}

/**
 * The sentence for a flag that is given twice, of which `parseArgs` would take the last alone: the revocation of two keys would be
 * that of one. Null: there is none.
 */
export function repeatedFlag(tokens: ReturnType<typeof parseArgs>['tokens'] = []): string | null {
  const names = tokens.flatMap((token) => (token.kind === 'option' ? token.name : []))
  const repeated = names.find((name, at) => names.indexOf(name) < at)
  return repeated === undefined ? null : `--${repeated} is given twice`
}
