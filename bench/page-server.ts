// In: which candidate to serve (`node bench/page-server.ts mintlake|constant`). Out: a server on a free port, whose
// number it prints. `mintlake`: the real hall over a market of 100 000 tokens with 20 000 trades a second running in the
// same process, half of them on the hundred hottest. `constant`: the same HTTP engine with one ready buffer.
import { App, us_socket_local_port } from 'uWebSockets.js'
import { Cursors } from '../src/http/cursors.ts'
import { FollowHub } from '../src/http/follow.ts'
import { marketRoutes } from '../src/http/routes/market.ts'
import { startServer } from '../src/http/server.ts'
import { Market } from '../src/market/market.ts'
import { mintOfSymbol } from '../src/schema/mint.ts'

const TOKENS = 100_000
const TICKS_PER_SECOND = 20_000
const HOT_TOKENS = 100
const TICK_MS = 5

const market = new Market({ tokensMax: TOKENS })
const mints = Array.from({ length: TOKENS }, (_, index) => mintOfSymbol(`token ${index}`))
let count = 0
const trade = (index: number): void => {
  const ts = Date.now()
  const priceUsd = 1e-5 * (1 + (count++ % 97) / 1_000) * (1 + (index % 1_000))
  market.apply(
    {
      type: 'trade',
      mint: mints[index],
      ts,
      side: count % 3 === 0 ? 'sell' : 'buy',
      tokenAmount: 1e4,
      priceUsd,
    },
    ts,
  )
}
for (const [index, mint] of mints.entries()) {
  market.apply(
    {
      type: 'token',
      mint,
      ts: Date.now(),
      name: `Token number ${index}`,
      symbol: `TOK${index}`,
      totalSupply: 1e9,
    },
    Date.now(),
  )
  trade(index)
}
const page = market.page({ tab: 'all', sort: 'hot', order: 'desc', offset: 0, limit: 100 })

if (process.argv[2] === 'constant') {
  const app = App()
  app.get('/*', (res) => {
    res.writeHeader('Content-Type', 'application/x-ndjson; charset=utf-8')
    res.end(page.ndjson)
  })
  app.listen(0, (socket) => console.log(us_socket_local_port(socket as never)))
} else {
  const routes = marketRoutes({ market, hub: new FollowHub(market), cursors: new Cursors(market) })
  const server = await startServer('127.0.0.1', 0, {
    routes,
    ingestFrame: null,
    authenticate: () => {
      throw new Error('no keys here')
    },
    countRead: () => ({}),
    admit: () => {},
    checkOperator: () => {},
    trustedProxies: new Set(),
    reuseMs: Number(process.argv[3] ?? 20),
    observe: () => {},
    onFault: (error) => console.error(error),
  })
  if (process.argv[2] !== 'mintlake-idle') {
    setInterval(() => {
      for (let tick = 0; tick < (TICKS_PER_SECOND * TICK_MS) / 1_000; tick++) {
        trade(tick % 2 === 0 ? (count * 31) % HOT_TOKENS : (count * 7_919) % TOKENS)
      }
    }, TICK_MS)
  }
  process.once('SIGINT', () => process.exit())
  console.log(server.port)
}
