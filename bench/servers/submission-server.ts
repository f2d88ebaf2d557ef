// In: a store and a folder (`node bench/servers/submission-server.ts KIND FOLDER`). Out: a server that takes submissions over HTTP and
// answers each once its row is durable; it prints its port. What a user would write around that store with the HTTP engine
// that we use: a body parsed, a row written, no check, no verdict. `sqlite` commits all that came in one turn of the event
// loop together, `lmdb` all that wait.
import { App, type HttpResponse, us_socket_local_port } from 'uWebSockets.js'
import { join } from 'node:path'
import { installed } from '../harness.ts'
import { COLUMNS, LMDB, type Lmdb, SQLITE, type Sqlite } from './peer-stores.ts'

type Keep = (values: readonly unknown[]) => Promise<void>

/** All that came in one turn are one transaction. */
function sqlite(folder: string): Keep {
  const Database = installed<new (path: string) => Sqlite>(...SQLITE)
  const database = new Database(join(folder, 'peer.sqlite'))
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = FULL')
  database.exec(`CREATE TABLE submissions (${COLUMNS.join(', ')})`)
  const insert = database.prepare(`INSERT INTO submissions VALUES (${COLUMNS.map(() => '?').join(', ')})`)
  let waiting: { values: readonly unknown[]; done: () => void }[] = []
  const commit = () => {
    const group = waiting
    waiting = []
    database.exec('BEGIN')
    for (const { values } of group) insert.run(...values)
    database.exec('COMMIT')
    for (const { done } of group) done()
  }
  return (values) =>
    new Promise((done) => {
      if (waiting.push({ values, done }) === 1) setImmediate(commit)
    })
}

function lmdb(folder: string): Keep {
  const { open } = installed<Lmdb>(...LMDB)
  // A put resolves once it is on the disk.
  const database = open({ path: join(folder, 'peer.lmdb'), overlappingSync: false })
  let next = 0
  return async (values) => void (await database.put(next++, values))
}

const [kind, folder] = process.argv.slice(2)
const keep = kind === 'sqlite' ? sqlite(folder) : lmdb(folder)
let count = 0

interface Sent {
  mint: string
  sentiment: string
  summary: string
  score: number
  quant: Record<string, unknown>
}

async function take(res: HttpResponse, body: Buffer): Promise<void> {
  const { mint, sentiment, summary, score, quant } = JSON.parse(body.toString()) as Sent
  const id = `an_${count++}`
  await keep([id, 'ag', mint, sentiment, summary, quant.riskLevel, Date.now(), score, 1, 2, 3, 4, 0, 50])
  const answer = JSON.stringify({ ok: true, data: { analysisId: id, xpEarned: 50, ...quant } })
  res.cork(() => {
    res.writeStatus('201 Created').writeHeader('Content-Type', 'application/json').end(answer)
  })
}

App()
  .post('/api/v1/keys/register', (res) => void res.end('{"data":{"key":"peer"}}'))
  .post('/api/v1/analysis/submit', (res) => {
    const chunks: Buffer[] = []
    res.onAborted(() => {})
    res.onData((chunk, isLast) => {
      chunks.push(Buffer.from(new Uint8Array(chunk.slice(0))))
      if (isLast) void take(res, Buffer.concat(chunks))
    })
  })
  .listen(0, (socket) => {
    if (!socket) throw new Error('no port')
    console.log(us_socket_local_port(socket))
  })
