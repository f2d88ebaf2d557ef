// The project speaks its field's language. This test keeps the private vocabulary of its first version from coming back: in
// identifiers and file names as words, in comments, texts and documents as phrases.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const ROOT = new URL('..', import.meta.url).pathname
const SELF = 'test/language.test.ts'

/** Words of identifiers and file names, with the term that takes their place. */
const WORDS: Readonly<Record<string, string>> = {
  house: 'app, server',
  hall: 'http',
  cellar: 'store',
  shelf: 'links',
  shelve: 'link',
  desk: 'submission service',
  door: 'the name of the interface',
  doors: 'the names of the interfaces',
  furnish: 'compose',
  judge: 'evaluate',
  judged: 'evaluation',
  tape: 'change log',
  rare: 'sparse',
  happen: 'append event',
  outlive: 'detach',
  byes: 'disconnects',
  stranger: 'unknown file',
  supersede: 'record version',
  sound: 'valid',
  slowly: 'with schema',
  halls: 'http',
  cellars: 'store',
  shelves: 'links',
  desks: 'submission service',
  furnished: 'composed',
  judges: 'evaluates',
  judging: 'evaluating',
  happened: 'appended event',
  outlives: 'detaches',
  strangers: 'unknown files',
  supersedes: 'records version',
  superseded: 'recorded version',
  board: 'leaderboard',
  chore: 'periodic job',
  chores: 'periodic jobs',
  facts: 'market reader',
  gather: 'group commit',
  hub: 'broadcaster',
  intake: 'ingest batch',
  lane: 'queue',
  looker: 'verifier',
  noted: 'pending',
  retract: 'roll back',
  tally: 'counters',
  thin: 'evict',
  unsent: 'discarded',
}
/** Parts of identifiers. */
const COMPOUNDS =
  /giveAgain|answerAnew|bornAt|takeBack|lieAbout|handOut|DeferredRanking|AgentBook|MintTable|recordEnd/
/** Phrases of comments, texts and documents. */
const PHRASES: readonly RegExp[] = [
  /^\s*\/\/ In: /m,
  /\bOut: .*\bNever\b/,
  /\b(the|a|this|our) (house|hall|cellar|shelf|desk)\b/i,
  /\b(same|every|through the) doors?\b/i,
  /\bgiven again\b/i,
  /\bfurnish(es|ed)?\b/i,
  /\bfor whoever\b/i,
  /\blies? about\b/i,
  /\bstands? below the floor\b/i,
  /\bsays nothing, or\b/i,
  /\bclears nobody\b/i,
  /\bof the looker\b/i,
  /\bby another way must\b/i,
  /\bthan any man\b/i,
  /\bit must not look\b/i,
  /\bgone, says\b/i,
  /\bstands? for (itself|themselves)\b/i,
  /\bas its end\b/i,
  /\bby the word of\b/i,
  /\bborrows a\b/i,
  /\bof the two must go\b/i,
  /\bopens? no door\b/i,
  /\banswers? bears?\b/i,
  /\btakes? it back\b/i,
  /\b(is|are) told so\b/i,
  /\bhangs on what\b/i,
  /\b(end of the power|power's end)\b/i,
  /\bschema knows nothing\b/i,
  /(^|[.:;(] )who (asks|comes|follows|goes|reads|speaks|stalls|waits) (?!.*\?)/im,
]

const ours = (name: string): boolean => /\.(ts|mjs|c|md)$/.test(name) && name !== SELF
const files = ['src', 'bench', 'test', 'scripts', 'data']
  .flatMap((top) =>
    readdirSync(join(ROOT, top), { recursive: true, encoding: 'utf8' }).map((name) => `${top}/${name}`),
  )
  .concat('README.md')
  .filter(ours)
  .map((name) => ({ name, text: readFileSync(join(ROOT, name), 'utf8') }))

const wordsOf = (identifier: string): string[] =>
  identifier
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/)
/** Code without comments and quoted text. Template texts stay: they hold code. */
const codeOf = (text: string): string =>
  text.replace(/\/\*[\s\S]*?\*\/|(^|\s)\/\/.*$|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`[^`$]*`/gm, ' ')

describe.each(files)('$name', ({ name, text }) => {
  it('names things by the terms of the field', () => {
    const identifiers = name.endsWith('.md') ? [] : (codeOf(text).match(/[A-Za-z_$][\w$]*/g) ?? [])
    const found = [...identifiers, name].filter(
      (identifier) =>
        wordsOf(identifier).some((word) => Object.hasOwn(WORDS, word)) || COMPOUNDS.test(identifier),
    )
    expect([...new Set(found)]).toEqual([])
  })

  it('holds no phrase of the old vocabulary', () => {
    expect(PHRASES.flatMap((phrase) => phrase.exec(text)?.[0] ?? [])).toEqual([])
  })
})
