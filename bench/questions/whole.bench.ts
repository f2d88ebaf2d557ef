// Sending the whole market of 100 000 rows as NDJSON, compared with a C program that sends as many constant bytes; and the
// memory taken by sixteen clients that request it and never read.
import { connect, type Socket } from 'node:net'
import type { Measured, Question, RunOptions } from '../harness.ts'
import { compiled, rssBytes } from '../harness.ts'
import { endProgram, measureLoad, startProgram, startServer } from '../load.ts'

const LIMIT = new URL('../limits/http.c', import.meta.url)
const STALLED_READERS = 16
/** Size of 100 000 rows; the C program sends as much. */
const ROW_BYTES = 597
const MEBIBYTE = 1_048_576

const sizes = ({ small }: RunOptions) => (small ? 1_000 : 100_000)
const pathOf = (rows: number) => `/api/v1/market?format=ndjson&limit=${rows}`

function stall(port: number, rows: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.pause()
      socket.write(`GET ${pathOf(rows)} HTTP/1.1\r\nHost: bench\r\n\r\n`, () => resolve(socket))
    })
    socket.on('error', reject)
  })
}

const settled = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

async function ours(options: RunOptions): Promise<Measured> {
  const rows = sizes(options)
  const server = await startServer('mintlake', {
    tokens: rows,
    ticksPerSecond: 0,
    body: 'page',
  })
  try {
    const measured = await measureLoad(server, pathOf(rows), { ...options, connections: 1 })
    await settled(options.small ? 50 : 1_000)
    const before = rssBytes(server.pid)
    const readers = await Promise.all(Array.from({ length: STALLED_READERS }, () => stall(server.port, rows)))
    await settled(options.small ? 50 : 2_000)
    // Negative when garbage was collected in between.
    const stalledMiB = Math.max(0, (rssBytes(server.pid) - before) / MEBIBYTE / STALLED_READERS)
    for (const reader of readers) reader.destroy()
    return { ...measured, metrics: { ...measured.metrics, stalledMiB } }
  } finally {
    await endProgram(server)
  }
}

async function limit(options: RunOptions): Promise<Measured> {
  const server = await startProgram(compiled(LIMIT), [`${sizes(options) * ROW_BYTES}`])
  try {
    return await measureLoad(server, '/', { ...options, connections: 1 })
  } finally {
    await endProgram(server)
  }
}

export const question: Question = {
  name: 'whole',
  title: 'the whole market, 100 000 rows',
  rounds: 3,
  candidates: { ours, 'C loop': limit },
  comparisons: [
    {
      title: 'whole market, 100 000 rows',
      metric: 'perSecond',
      against: 'C loop',
      unit: 'answers/s',
      gate: 0.8,
      stretch: 0.9,
      better: 'higher',
    },
    {
      title: 'whole market: memory for a stalled reader',
      metric: 'stalledMiB',
      unit: 'MiB',
      gate: 1,
      stretch: 0.1,
      better: 'lower',
    },
  ],
  prepare: () => void compiled(LIMIT),
}
