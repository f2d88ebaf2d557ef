// Whether an endpoint can serve the feed: which chain it is of, how far it is, and which calls it allows.
import { z } from 'zod'
import type { Clock } from '../../lib/clock.ts'
import { safeParse } from '../../lib/safe-parse.ts'
import { readAccount } from './accounts.ts'
import { ORCA_SOL_USDC, PUMP_PROGRAM, PYTH_SOL_USD } from './programs.ts'
import { type RpcAnswer, verdictOf } from './rpc.ts'
import { readPyth } from './sol-price.ts'
import { LiveSource } from './source.ts'

export interface EndpointReport {
  host: string
  /** Why the feed cannot use it; null: it can. */
  problem: string | null
  /** What it lacks, though the feed works without it. */
  lacks: string[]
  /** Methods of which nobody knows, as there was no time: it has asked for a pause, or was slow. */
  unchecked: string[]
  /** Its newest slot; null: it did not tell. */
  slot: number | null
  /** Age of its price of SOL, ms; null: it did not tell. */
  priceAgeMs: number | null
}

const CHECK_MS_MAX = 10_000
const accountsSchema = z.object({ value: z.array(z.unknown()) })

/** Asks an endpoint what the feed will ask. @param msMax for each of its two parts */
export async function checkEndpoint(
  rpcUrl: string,
  socketUrl: string | null,
  clock: Clock,
  msMax = CHECK_MS_MAX,
): Promise<EndpointReport> {
  const socketUrls = socketUrl === null ? [] : [socketUrl]
  const source = new LiveSource(
    { rpcUrls: [rpcUrl], socketUrls, commitment: 'confirmed', requestsPerSecond: 5 },
    clock,
  )
  const { rpc } = source
  const signal = AbortSignal.timeout(msMax)
  const report: EndpointReport = {
    host: rpc.host,
    problem: null,
    lacks: [],
    unchecked: [],
    slot: null,
    priceAgeMs: null,
  }
  // Which chain it is of is asked before.
  const slot = await rpc.call('getSlot', [], signal)
  if (!slot.ok && slot.fault !== 'rate_limited') {
    const { fault, message } = slot
    if (fault === 'stopped') return { ...report, problem: `it did not answer within ${msMax} ms` }
    const isOther = fault === 'other_chain'
    return { ...report, problem: isOther ? 'it is of another chain than Solana’s mainnet' : message }
  }
  if (slot.ok && typeof slot.result === 'number') report.slot = slot.result
  const prices = await rpc.call(
    'getMultipleAccounts',
    [[PYTH_SOL_USD, ORCA_SOL_USDC], { encoding: 'base64' }],
    signal,
  )
  if (prices.ok) {
    const account = readAccount(safeParse(accountsSchema, prices.result).data?.value[0])
    const price = account === undefined ? null : readPyth(account)
    if (price !== null) report.priceAgeMs = clock.now() - price.atMs
  } else if (isRefusal(prices)) report.lacks.push('getMultipleAccounts: no price of SOL, and no pools')
  else report.unchecked.push('getMultipleAccounts')
  const history = await rpc.call('getSignaturesForAddress', [PUMP_PROGRAM, { limit: 1 }], signal)
  if (!history.ok) report[isRefusal(history) ? 'lacks' : 'unchecked'].push('getSignaturesForAddress')
  const problem = await subscriptionProblem(source, msMax)
  // What was refused before says more: to subscribe, the chain of the endpoint must be known.
  return { ...report, problem: problem === null || slot.ok ? problem : slot.message }
}

/** Whether it answers so each time; else it asked for a pause, was slow, or failed for the moment. */
const isRefusal = (answer: RpcAnswer & { ok: false }): boolean =>
  !['again', 'not_yet', 'over'].includes(verdictOf(answer))

/** Why subscriptions do not work; null: they do. */
async function subscriptionProblem(source: LiveSource, msMax: number): Promise<string | null> {
  const ending = new AbortController()
  const signal = AbortSignal.any([ending.signal, AbortSignal.timeout(msMax)])
  let isPulsing = false
  const nothing = () => {}
  const handlers = {
    onSubscribed: nothing,
    onLogs: nothing,
    onAccount: nothing,
    onUnknown: nothing,
    onRefused: nothing,
    onHandlerError: nothing,
    onSlot: () => {
      isPulsing = true
      ending.abort()
    },
  }
  let reason = ''
  // Where it names a port, its subscriptions may be at the next one.
  for (let attempt = 0; attempt < 2 && !isPulsing && !signal.aborted; attempt++)
    reason = (await source.connect(handlers, signal)).reason
  return isPulsing ? null : `no slot came by subscription (${source.masked(reason)})`
}
