// Several values of one idea as one setting: `rate=10,cooldown-ms=60000`. What is not named has its default.
import { z } from 'zod'
import { firstIssue, safeParse } from '../safe-parse.ts'
import { type Setting, setting } from './setting.ts'

/** One of the values: its default as it would be given, and how its text is parsed. */
interface Part<Schema extends z.ZodType = z.ZodType> {
  defaultText: string
  schema: Schema
}

type Parts = Readonly<Record<string, Part>>
type Values<Of extends Parts> = Readonly<{ [Name in keyof Of]: z.infer<Of[Name]['schema']> }>

/** One value of a setting of pairs. */
export const part = <Schema extends z.ZodType>(
  defaultValue: string | number,
  schema: Schema,
): Part<Schema> => ({ defaultText: `${defaultValue}`, schema })

class PairsError extends Error {}

/** As a flag would be called: `cooldownMs` is `cooldown-ms`. */
const wordOf = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

const textOf = (parts: Parts): string =>
  Object.entries(parts)
    .filter(([, { defaultText }]) => defaultText !== '')
    .map(([name, { defaultText }]) => `${wordOf(name)}=${defaultText}`)
    .join(',')

/** What a text says, pair by pair. Without `unnamed` a piece that has no name is of the value before it: names of files may have commas. */
function piecesOf(text: string, unnamed: string | null): string[] {
  const pieces: string[] = []
  for (const piece of text.split(',').filter((each) => each.trim() !== ''))
    if (piece.includes('=') || pieces.length === 0) pieces.push(piece)
    else pieces.push(unnamed === null ? `${pieces.pop()},${piece}` : piece)
  return pieces
}

/** @throws PairsError */
function splitPairs(text: string, words: readonly string[], unnamed: string | null): Map<string, string> {
  const given = new Map<string, string>()
  for (const sent of piecesOf(text, unnamed)) {
    const pair = unnamed === null || sent.includes('=') ? sent : `${unnamed}=${sent}`
    const at = pair.indexOf('=')
    const word = pair.slice(0, at).trim()
    if (at < 1 || !words.includes(word))
      throw new PairsError(`"${pair}" is not of the form NAME=VALUE, with a name of ${words.join(', ')}`)
    if (given.has(word)) throw new PairsError(`names ${word} twice`)
    given.set(word, pair.slice(at + 1).trim())
  }
  return given
}

/** @throws PairsError */
function parsePairs<Of extends Parts>(text: string, parts: Of, unnamed: string | null): Values<Of> {
  const given = splitPairs(text, Object.keys(parts).map(wordOf), unnamed)
  const values = Object.entries(parts).map(([name, { defaultText, schema }]) => {
    const word = wordOf(name)
    const result = safeParse<z.ZodType>(schema, given.get(word) ?? defaultText)
    if (result.success) return [name, result.data]
    throw new PairsError(`"${word}" ${firstIssue(result.error).message}`)
  })
  // Object.fromEntries forgets the names; each value was parsed by the schema of its part.
  return Object.freeze(Object.fromEntries(values)) as Values<Of>
}

interface PairsOptions<Of extends Parts> {
  /** What is wrong with values that are valid alone but not together; null: nothing. */
  flaw?(values: Values<Of>): string | null
  /** What a value without a name is. */
  unnamed?: string
}

/** A setting that is given as pairs. */
export function pairs<Of extends Parts>(
  flagName: string,
  parts: Of,
  description: string,
  { flaw = () => null, unnamed }: PairsOptions<Of> = {},
): Setting<z.ZodType<Values<Of>>> {
  const schema = z.string().transform((text, context): Values<Of> => {
    try {
      const values = parsePairs(text, parts, unnamed ?? null)
      const wrong = flaw(values)
      if (wrong !== null) throw new PairsError(wrong)
      return values
    } catch (error) {
      if (!(error instanceof PairsError)) throw error
      context.addIssue({ code: 'custom', message: error.message })
      return z.NEVER
    }
  })
  return setting(flagName, textOf(parts), schema, description)
}
