// node bench/servers/submission-server.ts KIND FOLDER
// Takes submissions over HTTP and answers each once its row is durable in `sqlite` or `lmdb`: what a user would write around
// that store with the HTTP engine that we use. It parses the body and writes a row, without checks or a verdict. SQLite
// commits all that arrived in one turn of the event loop together, LMDB all that wait. Prints its port.
import { App, type HttpResponse, us_socket_local_port } from 'uWebSockets.js'
import { type Keep, keepInSqlite, openLmdb } from './peer-stores.ts'

function lmdb(folder: string): Keep {
  const database = openLmdb(folder)
  let next = 0
  return async (values) => void (await database.put(next++, values))
}

const [kind, folder] = process.argv.slice(2)
const keep = kind === 'sqlite' ? keepInSqlite(folder) : lmdb(folder)
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
  .get('/*', (res) => void res.writeHeader('Content-Type', 'application/json').end('{"ok":true}'))
  .listen(0, (socket) => {
    if (!socket) throw new Error('no port')
    console.log(us_socket_local_port(socket))
  })
