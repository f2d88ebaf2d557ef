/** Characters that JSON allows in a string and at which readers of lines split, beside the newline. */
const LINE_BREAKS = /[\u0085\u2028\u2029]/g

/** JSON in which no reader of lines finds the end of one: such characters stand in strings alone, where an escape means the same. */
export const escapeLineBreaks = (json: string): string =>
  json.search(LINE_BREAKS) === -1
    ? json
    : json.replace(LINE_BREAKS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** The value as JSON on one line, whatever a reader takes for the end of a line. */
export const jsonLine = (value: unknown): string => escapeLineBreaks(JSON.stringify(value))

/** What a JSON text says; undefined, which JSON cannot say, where it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
