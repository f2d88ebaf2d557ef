// node bench/servers/chain-node.ts RATE SECONDS FILE: an RPC node that tells a seeded market to whom subscribes to both programs, at a
// steady rate. Prints its port, `warm` when half is told, and at the end how many events it had; FILE says when each transaction of the
// second half was told.
import { writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { ChainWorld } from '../../test/support/chain/world.ts'
import { SolanaNode } from '../../test/support/upstreams/solana-node.ts'

const [rate, seconds, file] = [Number(process.argv[2]), Number(process.argv[3]), process.argv[4]]
const TICK_MS = 5
const SLOT_MS = 400
const wallMs = (): number => performance.timeOrigin + performance.now()

const node = await SolanaNode.start()
const world = new ChainWorld(34, { startMs: Date.now(), launches: 0.006, truncated: 0 })
const transactions = Array.from({ length: rate * seconds }, () => {
  world.pass(1_000 / rate)
  return world.step()
})
for (const [address, account] of world.accounts) node.accounts.set(address, account)
node.setSolPrice(150, Date.now())
console.log(node.port)

while (node.asked('logsSubscribe').length < 2 || node.asked('slotSubscribe').length < 1) await sleep(TICK_MS)
await sleep(200)
const toldAtMs: Record<string, number> = {}
const beganMs = wallMs()
let slotMs = beganMs
let isWarm = false
for (let told = 0; told < transactions.length; await sleep(TICK_MS)) {
  const nowMs = wallMs()
  if (!isWarm && told >= transactions.length / 2) {
    isWarm = true
    console.log('warm')
  }
  for (; told < Math.min(transactions.length, ((nowMs - beganMs) * rate) / 1_000); told++) {
    if (isWarm) toldAtMs[transactions[told].signature] = wallMs()
    node.confirm(transactions[told])
  }
  if (nowMs - slotMs < SLOT_MS) continue
  node.nextSlot()
  slotMs = nowMs
}
writeFileSync(file, JSON.stringify(toldAtMs))
node.nextSlot()
console.log(transactions.reduce((sum, { events }) => sum + events.length, 0))
const pulse = setInterval(() => node.nextSlot(), SLOT_MS)
process.once('SIGTERM', () => {
  clearInterval(pulse)
  void node.close()
})
