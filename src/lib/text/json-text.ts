/** Characters that JSON allows in a string and at which readers of lines split, beside the newline. */
const LINE_BREAKS = ['\u0085', '\u2028', '\u2029']
const EACH_LINE_BREAK = new RegExp(`[${LINE_BREAKS.join('')}]`, 'g')

/** JSON in which no reader of lines finds the end of one: such characters stand in strings alone, where an escape means the same. */
export const escapeLineBreaks = (json: string): string =>
  // Searched for one by one, as V8 does that many characters at a time, and not at all for one that no character of the text can be.
  LINE_BREAKS.some((character) => json.includes(character))
    ? json.replace(
        EACH_LINE_BREAK,
        (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
      )
    : json

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
