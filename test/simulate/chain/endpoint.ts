// Solana, as one endpoint shows it: a seeded market of `test/support/chain`, its past, calls and subscriptions. It is cut off, ends, falls silent
// and says what is late, twice or nonsense; what happens on the chain happens all the same.
import {
  MAINNET_GENESIS,
  ORCA_OWNER,
  ORCA_SOL_USDC,
  PYTH_OWNER,
  PYTH_SOL_USD,
} from '../../../src/ingest/solana/programs.ts'
import { MINUTE_MS } from '../../../src/lib/time.ts'
import { orcaAccount, pythAccount } from '../../support/chain/encode.ts'
import { ChainHistory } from '../../support/chain/history.ts'
import { logsNotification, type TestTransaction } from '../../support/chain/transaction.ts'
import { ChainWorld, type LedgerTrade, slotAt } from '../../support/chain/world.ts'
import { type RequestMessage, readMessage } from '../machine/http-request.ts'
import { type Draws, drawsOf, type Machine, type SimulatedProcess } from '../machine/machine.ts'
import type { ConnectionEnd, Network } from '../machine/network.ts'
import { type CallAnswer, FRAME, frameOf } from '../machine/web.ts'

export const CHAIN_PORT = 8_899
const CALL_BEGINS = '{'.charCodeAt(0)

const SLOT_MS = 400
/** How often a block has a transaction that names one of the programs. */
const HAS_TRANSACTION = 0.35
const PRICE_EVERY_SLOTS = 25
/** Its past reaches so far back; nothing happens once nobody has asked it for so long. */
const KEPT_MS = 20 * MINUTE_MS
const IDLE_MS = 3 * MINUTE_MS
/** Calls and subscriptions tell what is confirmed: so many slots later. */
const CONFIRM_SLOTS = 2
const DOWN_MS_MAX = 60_000
/** Of slots: how often each fault begins. Of what is said: how often it is late, twice, or has nonsense before it. */
const RATES = { cut: 0.002, down: 0.001, silent: 0.001, late: 0.1, twice: 0.05, garbage: 0.01, failing: 0.03 }
const LATE_MS_MAX = 1_000
const GARBAGE = ['{', '[]', '{"jsonrpc":"2.0","method":"rumourNotification","params":{}}', '\u0000', 'null']
/** Of each topic, in the order in which the feed subscribes to them, which is that of their requests. */
const TOPIC = { pump: 1, slot: 3, pyth: 4, orca: 5 } as const

const encoded = (owner: string, data: Buffer) => ({ owner, data: [data.toString('base64'), 'base64'] })

export interface ChainEndpointOptions {
  seed: number
  machine: Machine
  network: Network
  /** Told of each fault. */
  onFault(name: string): void
}

export class ChainEndpoint {
  /** No fault begins. */
  isWell = false
  /** When something last was wrong, on the machine's own time. */
  disturbedMs = 0
  readonly #machine: Machine
  readonly #network: Network
  readonly #onFault: (name: string) => void
  readonly #world: ChainWorld
  readonly #history = new ChainHistory()
  readonly #draws: Draws
  readonly #faults: Draws
  readonly #connections = new Set<ConnectionEnd>()
  #process: SimulatedProcess | null = null
  #upAtMs = 0
  /** What each connection is told once the endpoint speaks again. */
  readonly #held = new Map<ConnectionEnd, Buffer[]>()
  #silentUntilMs = 0
  #askedMs = 0
  #slots = 0
  /** Not told yet. */
  readonly #unconfirmed: TestTransaction[] = []
  #usd = 150
  #isEnded = false
  #isAwake = false

  constructor({ seed, machine, network, onFault }: ChainEndpointOptions) {
    this.#machine = machine
    this.#network = network
    this.#onFault = onFault
    this.#draws = drawsOf(seed, 'chain')
    this.#faults = drawsOf(seed, 'faults of the chain')
    this.#world = new ChainWorld(seed, {
      startMs: machine.trueMs,
      slot: slotAt(machine.trueMs),
      truncated: 0.03,
    })
    this.#keepUp()
    this.#wake()
  }

  /** Everything that was traded. */
  get ledger(): readonly LedgerTrade[] {
    return this.#world.ledger
  }

  /** All is well until `isWell` is taken back. */
  heal(): void {
    this.isWell = true
    this.#silentUntilMs = 0
    this.#upAtMs = 0
    this.#keepUp()
    this.disturbedMs = this.#machine.nowMs
  }

  end(): void {
    this.#process?.kill()
    this.#isEnded = true
  }

  #wake(): void {
    this.#askedMs = this.#machine.nowMs
    if (this.#isAwake) return
    this.#isAwake = true
    this.#nextSlot()
  }

  #tick(): void {
    const machine = this.#machine
    machine.after(SLOT_MS, () => this.#nextSlot(), machine.world)
  }

  /** Nobody asks it for a while, as where no server runs for days: then nothing happens on it either. */
  get #isIdle(): boolean {
    return this.#connections.size === 0 && this.#machine.nowMs - this.#askedMs > IDLE_MS
  }

  #nextSlot(): void {
    if (this.#isEnded || this.#isIdle) {
      this.#isAwake = false
      return
    }
    this.#tick()
    const world = this.#world
    world.pass(this.#machine.trueMs - world.nowMs)
    this.#history.addBlock(world.slot)
    this.#history.forgetBefore(slotAt(world.nowMs - KEPT_MS))
    this.#keepUp()
    this.#fail()
    if (++this.#slots % PRICE_EVERY_SLOTS === 0) this.#movePrice()
    const { slot } = world
    this.#tell('slot', 'slotNotification', { slot, parent: slot - 1, root: slot - 32 })
    while ((this.#unconfirmed[0]?.slot ?? slot) <= slot - CONFIRM_SLOTS)
      this.#notify(this.#unconfirmed.shift()!)
    if (!this.#draws.chance(HAS_TRANSACTION)) return
    const transaction = world.step()
    this.#history.add(transaction)
    this.#unconfirmed.push(transaction)
  }

  #keepUp(): void {
    if (this.#process !== null || this.#machine.nowMs < this.#upAtMs) return
    const process = this.#machine.fork('chain', 'chain')
    this.#process = process
    this.#network.listen(CHAIN_PORT, process, (end) => {
      end.onClose = () => void this.#connections.delete(end)
      // Calls and subscriptions are at one address, as with providers.
      end.onBytes = (bytes) => {
        this.#wake()
        if (bytes[0] === CALL_BEGINS) this.#answer(end, readMessage<RequestMessage>(bytes))
        else this.#hear(end, bytes.toString())
      }
    })
  }

  #fail(): void {
    const draws = this.#faults
    const [isCut, isDown, isSilent] = [RATES.cut, RATES.down, RATES.silent].map((rate) => draws.chance(rate))
    if (this.isWell) return
    if (isCut) this.#disturb('cut', () => this.#cut())
    if (isDown)
      this.#disturb('down', () => {
        this.#upAtMs = this.#machine.nowMs + draws.between(100, DOWN_MS_MAX)
        this.#cut()
        this.#process?.kill()
        this.#process = null
      })
    if (isSilent)
      this.#disturb('silent', () => {
        this.#silentUntilMs = this.#machine.nowMs + draws.between(500, 15_000)
      })
  }

  #disturb(name: string, act: () => void): void {
    this.#onFault(name)
    this.disturbedMs = this.#machine.nowMs
    act()
  }

  #cut(): void {
    for (const end of this.#connections) end.close()
    this.#connections.clear()
  }

  #movePrice(): void {
    this.#usd = Math.round(this.#usd * this.#draws.between(0.995, 1.005) * 100) / 100
    const { slot } = this.#world
    for (const topic of ['pyth', 'orca'] as const)
      this.#tell(topic, 'accountNotification', { context: { slot }, value: this.#account(topic) })
  }

  #account(topic: 'pyth' | 'orca'): object {
    return topic === 'pyth'
      ? encoded(PYTH_OWNER, pythAccount(this.#usd, this.#machine.trueMs))
      : encoded(ORCA_OWNER, orcaAccount(this.#usd))
  }

  #tell(topic: keyof typeof TOPIC, method: string, result: object): void {
    this.#send({ jsonrpc: '2.0', method, params: { subscription: TOPIC[topic], result } })
  }

  /** Both programs' subscriptions tell of a transaction that names both: one is enough. */
  #notify(transaction: TestTransaction): void {
    const draws = this.#faults
    const frame = logsNotification(transaction, TOPIC.pump)
    const [isLate, isTwice, isGarbled] = [RATES.late, RATES.twice, RATES.garbage].map((rate) =>
      draws.chance(rate),
    )
    const lateMs = draws.between(0, LATE_MS_MAX)
    const garbage = draws.of(GARBAGE)
    if (isGarbled && !this.isWell) for (const end of this.#connections) end.send(frameOf('text', garbage))
    if (isTwice && !this.isWell) this.#send(frame)
    if (isLate && !this.isWell) {
      const [connections, machine] = [[...this.#connections], this.#machine]
      machine.after(lateMs, () => this.#sendTo(connections, frame), machine.world)
    } else this.#send(frame)
  }

  #send(frame: object): void {
    this.#sendTo(this.#connections, frame)
  }

  #sendTo(connections: Iterable<ConnectionEnd>, frame: object): void {
    const bytes = frameOf('text', JSON.stringify(frame))
    for (const end of connections) this.#say(end, bytes)
  }

  /** One that has fallen silent says it later, all of a connection in its order. */
  #say(end: ConnectionEnd, bytes: Buffer): void {
    const held = this.#held.get(end)
    if (held !== undefined) held.push(bytes)
    else if (this.#silentUntilMs <= this.#machine.nowMs) end.send(bytes)
    else {
      this.#held.set(end, [bytes])
      this.#sayHeld(end)
    }
  }

  #sayHeld(end: ConnectionEnd): void {
    const silentMs = this.#silentUntilMs - this.#machine.nowMs
    if (silentMs > 0) return void this.#machine.after(silentMs, () => this.#sayHeld(end), this.#machine.world)
    for (const bytes of this.#held.get(end) ?? []) end.send(bytes)
    this.#held.delete(end)
  }

  #hear(end: ConnectionEnd, message: string): void {
    this.#connections.add(end)
    if (message[0] === FRAME.ping) {
      this.#say(end, frameOf('pong'))
      return
    }
    const { id } = JSON.parse(message.slice(1))
    // The number of a request is that of its topic.
    this.#say(end, frameOf('text', JSON.stringify({ jsonrpc: '2.0', id, result: id })))
  }

  #answer(end: ConnectionEnd, { body }: RequestMessage): void {
    const { id, method, params } = JSON.parse(Buffer.from(body, 'base64').toString())
    const isFailing = this.#faults.chance(RATES.failing)
    const status = this.#faults.of([429, 500, 503, 200])
    const reply = (answer: CallAnswer): void => this.#say(end, Buffer.from(JSON.stringify(answer)))
    const text = JSON.stringify({ jsonrpc: '2.0', id, ...this.#resultOf(method, params) })
    if (isFailing && !this.isWell) reply({ status, headers: {}, text: 'not now' })
    else reply({ status: 200, headers: {}, text })
  }

  #resultOf(method: string, params: readonly unknown[]): object {
    const { slot } = this.#world
    if (method === 'getGenesisHash') return { result: MAINNET_GENESIS }
    if (method === 'getSlot') return { result: slot - CONFIRM_SLOTS }
    if (method === 'getMultipleAccounts') {
      const value = (params[0] as string[]).map((address) => this.#accountAt(address))
      return { result: { context: { slot }, value } }
    }
    const confirmed = method === 'getTransaction' ? slot : slot - CONFIRM_SLOTS
    return (
      this.#history.answer(method, params, confirmed) ?? {
        error: { code: -32_601, message: 'Method not found' },
      }
    )
  }

  #accountAt(address: string): object | null {
    if (address === PYTH_SOL_USD) return this.#account('pyth')
    if (address === ORCA_SOL_USDC) return this.#account('orca')
    const account = this.#world.accounts.get(address)
    return account === undefined ? null : encoded(account.owner, account.data)
  }
}
