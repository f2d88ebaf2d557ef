// In: an address, a path, connections, a time (`node bench/load.ts PORT PATH CONNECTIONS SECONDS`). Out: one JSON line:
// answers counted, bytes, latencies. Keep-alive connections with one request in flight each; complete answers are told
// by Content-Length. A process of its own, so that the server's figures are the server's.
import { connect } from 'node:net'

const [port, path, connections, seconds] = [
  Number(process.argv[2]),
  process.argv[3],
  Number(process.argv[4]),
  Number(process.argv[5]),
]
const REQUEST = Buffer.from(`GET ${path} HTTP/1.1\r\nHost: bench\r\n\r\n`)
const HEAD_END = Buffer.from('\r\n\r\n')
const latenciesMs: number[] = []
let answers = 0
let bytes = 0
const stopAt = performance.now() + seconds * 1_000

function open(): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let missing = 0
    let head = Buffer.alloc(0)
    let sentAt = 0
    const send = () => {
      sentAt = performance.now()
      socket.write(REQUEST)
    }
    const complete = () => {
      answers++
      latenciesMs.push(performance.now() - sentAt)
      if (performance.now() < stopAt) send()
      else socket.end(() => resolve())
    }
    socket.on('connect', send)
    socket.on('error', reject)
    socket.on('data', (chunk) => {
      bytes += chunk.length
      if (missing > 0) {
        missing -= chunk.length
      } else {
        head = head.length === 0 ? chunk : Buffer.concat([head, chunk])
        const end = head.indexOf(HEAD_END)
        if (end === -1) return
        const length = /content-length: (\d+)/i.exec(head.subarray(0, end).toString('latin1'))
        missing = Number(length?.[1] ?? 0) - (head.length - end - HEAD_END.length)
        head = Buffer.alloc(0)
      }
      if (missing === 0) complete()
    })
  })
}

await Promise.all(Array.from({ length: connections }, open))
latenciesMs.sort((a, b) => a - b)
const quantile = (share: number) =>
  latenciesMs[Math.min(latenciesMs.length - 1, Math.floor(share * latenciesMs.length))]
console.log(JSON.stringify({ answers, bytes, p50Ms: quantile(0.5), p99Ms: quantile(0.99) }))
