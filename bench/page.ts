// In: nothing (`node bench/page.ts`). Out: the market page of 100 rows over loopback, ours against the same HTTP engine
// answering one ready buffer; deep pages against the first; a DataPoint. Each candidate in a process of its own,
// alternated; medians of requests per CPU-second of the server, which the load's own limits do not touch.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { mintOfSymbol } from '../src/schema/mint.ts'

const ROUNDS = Number(process.argv[2] ?? 5)
const SECONDS = 2
const CONNECTIONS = 32
const CLOCK_TICKS_PER_SECOND = 100
const run = promisify(execFile)
const file = (name: string) => new URL(name, import.meta.url).pathname
const PAGE = '/api/v1/market?format=ndjson&limit=100&sort=hot'
const MINT = mintOfSymbol('token 7')

const CANDIDATES = [
  { name: 'constant buffer', server: 'constant', path: PAGE },
  { name: 'page, 20 000 trades/s', server: 'mintlake', path: PAGE },
  { name: 'page, no trades', server: 'mintlake-idle', path: PAGE },
  { name: 'page at 50 000, 20 000 trades/s', server: 'mintlake', path: `${PAGE}&offset=50000` },
  { name: 'DataPoint, 20 000 trades/s', server: 'mintlake', path: `/api/v1/datapoint?mint=${MINT}` },
]

interface Server {
  child: ChildProcess
  port: number
}

async function start(name: string): Promise<Server> {
  const child = spawn('taskset', ['-c', '0', process.execPath, file('page-server.ts'), name], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const port = await new Promise<number>((resolve) =>
    child.stdout!.once('data', (line) => resolve(Number(line))),
  )
  return { child, port }
}

/** CPU seconds of a process so far, from the kernel's own account. */
function cpuSeconds({ child }: Server): number {
  const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1].split(' ')
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_SECOND
}

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]

const servers = new Map<string, Server>()
for (const { server } of CANDIDATES) if (!servers.has(server)) servers.set(server, await start(server))
const results = new Map(
  CANDIDATES.map(({ name }) => [
    name,
    [] as { perCpuSecond: number; perSecond: number; p50Ms: number; p99Ms: number }[],
  ]),
)
for (let round = 1; round <= ROUNDS; round++) {
  for (const { name, server, path } of CANDIDATES) {
    const target = servers.get(server)!
    const before = cpuSeconds(target)
    const { stdout } = await run('taskset', [
      '-c',
      '1',
      process.execPath,
      file('load.ts'),
      `${target.port}`,
      path,
      `${CONNECTIONS}`,
      `${SECONDS}`,
    ])
    const { answers, p50Ms, p99Ms } = JSON.parse(stdout)
    results.get(name)!.push({
      perCpuSecond: answers / (cpuSeconds(target) - before),
      perSecond: answers / SECONDS,
      p50Ms,
      p99Ms,
    })
  }
  console.error(`round ${round} of ${ROUNDS}`)
}
for (const { child } of servers.values()) child.kill()
const base = median(results.get('constant buffer')!.map(({ perCpuSecond }) => perCpuSecond))
for (const [name, rounds] of results) {
  const perCpuSecond = median(rounds.map((round) => round.perCpuSecond))
  console.log(
    [
      name.padEnd(34),
      `${Math.round(perCpuSecond)}/CPU-s`.padStart(14),
      `${Math.round(median(rounds.map((round) => round.perSecond)))}/s`.padStart(10),
      `p50 ${median(rounds.map((round) => round.p50Ms)).toFixed(2)} ms`.padStart(14),
      `p99 ${median(rounds.map((round) => round.p99Ms)).toFixed(2)} ms`.padStart(14),
      `${(perCpuSecond / base).toFixed(2)} of the constant buffer`.padStart(30),
    ].join(' '),
  )
}
