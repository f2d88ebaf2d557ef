// Pages of 10, 100 and 500 rows of the default market while a feed pushes 20 000 trades a second, per CPU second that the pushes
// leave; compared with the same HTTP engine sending one constant buffer.
import { mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Comparison, compiled, type Measured, type Question, type RunOptions } from '../harness.ts'
import { endProgram, measureLoad, measurePushed, pushCost, type Running, startServer } from '../load.ts'
import type { ServerOptions } from '../servers/server.ts'

const ROWS = [10, 100, 500] as const
const TRADES_PER_SECOND = 20_000
/** About as many as the default market has. */
const ROW_BYTES = 910
const FOLDER = join(tmpdir(), 'mintlake-bench')
const pathOf = (rows: number) => `/api/v1/market?format=ndjson&limit=${rows}`
const fileOf = (rows: number) => join(FOLDER, `default-market-${rows}`)

const market = ({ small }: RunOptions): ServerOptions => ({
  market: 'default',
  tokens: small ? 600 : 3_000,
  ticksPerSecond: 0,
  body: 'page',
})

/** Measures each page size on one server. The names of the metrics contain the number of rows. */
async function pages(
  kind: string,
  server: (rows: number) => ServerOptions,
  measure: (running: Running, rows: number) => Promise<Measured>,
): Promise<Measured> {
  const metrics: Record<string, number> = {}
  let running: Running | null = null
  try {
    for (const rows of ROWS) {
      // The peer sends one constant body, so each size needs a process of its own.
      if (running !== null && kind !== 'mintlake') await endProgram(running)
      if (running === null || kind !== 'mintlake') running = await startServer(kind, server(rows))
      const measured = await measure(running, rows)
      for (const [name, value] of Object.entries(measured.metrics)) metrics[`${name}${rows}`] = value
    }
  } finally {
    if (running !== null) await endProgram(running)
  }
  return { metrics, checksum: ROWS.join(' ') }
}

const quiet = (run: RunOptions) =>
  pages(
    'mintlake',
    () => market(run),
    (running, rows) => measureLoad(running, pathOf(rows), run),
  )

const pushed = (perPost: number) => (run: RunOptions) => {
  const push = { perPost, rate: run.small ? 1_000 : TRADES_PER_SECOND }
  let cost: number | null = null
  return pages(
    'mintlake',
    () => market(run),
    async (running, rows) => {
      cost ??= await pushCost(running, push, run)
      return measurePushed(running, pathOf(rows), push, cost, run)
    },
  )
}

const constant = (run: RunOptions) =>
  pages(
    'uws',
    (rows) => ({ ...market(run), bodyFile: fileOf(rows) }),
    (running) => measureLoad(running, '/', run),
  )

/** Pages of a market that has just started, as bodies for the peer. */
async function savePages(run: RunOptions): Promise<void> {
  compiled(new URL('../limits/load.c', import.meta.url))
  mkdirSync(FOLDER, { recursive: true })
  // A small run only shows that it works, and most of its time would be this server's start.
  if (run.small) {
    for (const rows of ROWS) writeFileSync(fileOf(rows), Buffer.alloc(rows * ROW_BYTES, 'row'))
    return
  }
  const running = await startServer('mintlake', market(run))
  try {
    for (const rows of ROWS) {
      const answer = await fetch(`http://127.0.0.1:${running.port}${pathOf(rows)}`)
      writeFileSync(fileOf(rows), Buffer.from(await answer.arrayBuffer()))
    }
  } finally {
    await endProgram(running)
  }
}

const CONSTANT = 'same engine, one constant buffer'
const comparison = (of: string, rows: number, gate?: number): Comparison => ({
  title: `default market, ${rows} rows, ${of}`,
  metric: `perCpuSecond${rows}`,
  of,
  against: CONSTANT,
  unit: 'answers/CPU-s',
  gate,
  stretch: gate === undefined ? undefined : 0.95,
  better: 'higher',
})

export const question: Question = {
  name: 'pushed',
  title: 'pages of the default market, while trades are pushed',
  rounds: 3,
  variants: ['nothing pushed', 'pushed in POSTs of 20'],
  candidates: {
    'nothing pushed': quiet,
    'pushed in POSTs of 200': pushed(200),
    'pushed in POSTs of 20': pushed(20),
    [CONSTANT]: constant,
  },
  comparisons: ['nothing pushed', 'pushed in POSTs of 200', 'pushed in POSTs of 20'].flatMap((of) =>
    ROWS.map((rows) => comparison(of, rows, of === 'nothing pushed' ? undefined : 0.85)),
  ),
  prepare: savePages,
}
