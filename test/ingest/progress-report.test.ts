// How far a replay is: a bar on a terminal, a line every ten seconds elsewhere.
import { expect, it } from 'vitest'
import { REPLAY_LINE_MS } from '../../src/ingest/limits.ts'
import { ProgressReport } from '../../src/ingest/replay/progress-report.ts'
import { silentLog } from './memory-sink.ts'

const part = { done: 45, total: 100, percent: 45.4, perSecond: 9, etaMs: 75_400 }

it('a terminal has one line, drawn over itself, which goes at the end', () => {
  const written: string[] = []
  const terminal = { write: (text: string) => void written.push(text) }
  const log = { ...silentLog, info: () => expect.unreachable('the log has no lines beside a bar') }
  const report = new ProgressReport('rows', log, terminal)
  for (const percent of [0, 50, 100]) report.note({ ...part, percent }, {})
  for (const text of written) expect(text.startsWith('\r\x1b[2K')).toBe(true)
  expect(written.join('')).not.toContain('\n')
  expect(written.map((text) => (text.match(/█/g) ?? []).length)).toEqual([0, 15, 30])
  expect(written[1]).toContain('50 %, 45 of 100 rows, 9 a second, 1 min left')
  report.end()
  expect(written.at(-1)).toBe('\r\x1b[2K')
})

it('elsewhere the log has a line every ten seconds, with percent and time left', () => {
  const lines: [object, string][] = []
  const log = {
    ...silentLog,
    info: (details: object, message: string) => void lines.push([details, message]),
  }
  let nowMs = 0
  const report = new ProgressReport('events', log, null, () => nowMs)
  for (; nowMs < 3 * REPLAY_LINE_MS; nowMs += 1_000) report.note(part, { atMs: 7 })
  report.end()
  expect(lines).toHaveLength(2)
  expect(lines[0]).toEqual([{ atMs: 7 }, 'replay: 45 %, 45 of 100 events, 9 a second, 1 min left'])
})

it.each([
  [{ percent: null, total: null, etaMs: null }, '45 rows, 9 a second'],
  [{ etaMs: 5_000 }, '45 %, 45 of 100 rows, 9 a second, 5 s left'],
  [{ etaMs: 7_500_000 }, '45 %, 45 of 100 rows, 9 a second, 2 h 5 min left'],
])('of %j it says what it knows', (known, expected) => {
  const lines: string[] = []
  let nowMs = 0
  const log = { ...silentLog, info: (_: object, message: string) => void lines.push(message) }
  const report = new ProgressReport('rows', log, null, () => nowMs)
  nowMs = REPLAY_LINE_MS
  report.note({ ...part, ...known }, {})
  expect(lines).toEqual([`replay: ${expected}`])
})
