// node bench/servers/chain-outage.ts RATE AWAY_S: an RPC node that makes a seeded market as time passes, keeps it, and tells it to whom
// subscribes. Prints its port. At SIGUSR2 nobody is connected any more, nor can connect, for so long; then it prints `back`.
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { ChainWorld, slotAt } from '../../test/support/chain/world.ts'
import { SolanaNode } from '../../test/support/upstreams/solana-node.ts'

const [rate, awayS] = process.argv.slice(2).map(Number)
const TICK_MS = 5
/** Tokens before the first subscription: a market does not begin with one. */
const TOKENS = 500

const node = await SolanaNode.start()
node.beginTime()
const startMs = Date.now()
node.setSolPrice(150, startMs)
const world = new ChainWorld(35, { startMs, slot: slotAt(startMs), launches: 0.006, truncated: 0 })
for (let count = 0; count < TOKENS; count++) world.launch()
let made = 0
let beganMs = Number.POSITIVE_INFINITY
const making = setInterval(() => {
  const nowMs = Date.now()
  world.pass(Math.max(0, nowMs - world.nowMs))
  for (; made < ((nowMs - beganMs) * rate) / 1_000; made++) node.confirm(world.step())
  for (const [address, account] of world.accounts) node.accounts.set(address, account)
}, TICK_MS)
console.log(node.port)

const subscribed = async (): Promise<void> => {
  while (node.peers.size === 0 || node.asked('logsSubscribe').length < 2) await sleep(TICK_MS)
}
await subscribed()
beganMs = Date.now()
await once(process, 'SIGUSR2')
if (awayS > 0) {
  node.handshake = 503
  for (const peer of node.peers) peer.terminate()
  node.refusals = { getSlot: { status: 503 }, getBlocks: { status: 503 }, getGenesisHash: { status: 503 } }
  await sleep(awayS * 1_000)
  node.handshake = null
  node.refusals = {}
}
console.log('back')
process.once('SIGTERM', () => {
  clearInterval(making)
  void node.close()
})
