// What answers depend on besides the market, where several processes (nodes) answer for the same market.
import { randomBytes } from 'node:crypto'
import { ServiceError } from '../schema/errors.ts'
import { tryAgain } from './response/rate-limit-headers.ts'
import type { Route } from './route.ts'

export interface HttpNode {
  /** Part of every ETag and cursor: versions count within one run of the process that takes the events. */
  run(): string
  /** How old the newest state is that this node has of the market, ms; Infinity: not known; without it, it has the market itself. */
  readonly lagMs?: () => number
  /** In a replay: market time, Unix ms, which every answer tells; without it, it follows the clock. */
  readonly marketTimeMs?: (() => number) | undefined
  /** Market time goes on in steps, and all rules on time count by it. */
  readonly marketWaits?: boolean
  /**
   * Waits for a position that a client has from a node that is further ahead. Resolves with whether it is reached; where it is not
   * within a moment, that is false. Without it this node is never behind, so there is no such position.
   */
  readonly reach?: (seq: number) => Promise<boolean>
  /** Without it no other node passes requests on to this one. */
  readonly gate?: RelayGate
}

/**
 * Tells requests that another node has passed on. They have the header X-Mintlake-Relay, which names this node and proves that it was asked
 * who it is on the bus; then it is believed who their client is, and each answer says which node it is of.
 */
export interface RelayGate {
  readonly nodeId: string
  /** Whether a request with that header is for this node, and taken now. */
  admits(relay: string): boolean
}

/** Of a request that another node passes on, and of its answer. */
export const RELAY_HEADER = 'X-Mintlake-Relay'
export const NODE_HEADER = 'X-Mintlake-Node'
/** What the answer names instead of a node where a request was for another one: nothing was carried out. */
export const ANOTHER_NODE = 'another'

/** A request that would be carried out by the wrong process, or for ever passed on. */
export const notForThisNode = (): ServiceError => {
  const detail = `${RELAY_HEADER} names another process than this one, or one that takes no requests of other nodes at present.`
  return new ServiceError('invalid_parameter', detail, {}, { [NODE_HEADER]: ANOTHER_NODE })
}

const RUN = randomBytes(4).toString('hex')

/** A process that has the market for itself. */
export const singleNode = (marketTimeMs?: () => number, marketWaits = false): HttpNode => ({
  run: () => RUN,
  marketTimeMs,
  marketWaits,
})

/** Headers of an answer, and which node has made it where another one has passed the request on. */
export const withNodeName = (
  { gate }: HttpNode,
  isRelayed: boolean,
  headers: Record<string, string>,
): Record<string, string> =>
  isRelayed && gate !== undefined ? { ...headers, [NODE_HEADER]: gate.nodeId } : headers

/**
 * Headers of an answer and what the node says of its market: in a replay its time, and where the answer is about the market, how far
 * this node is behind. @param route null: the answer is of none
 */
export function withMarketState(
  { lagMs, marketTimeMs, marketWaits }: HttpNode,
  route: Pick<Route, 'answersMarket'> | null,
  headers: Record<string, string>,
): Record<string, string> {
  const timed =
    marketTimeMs === undefined
      ? headers
      : {
          ...headers,
          'X-Market-Time': `${Math.floor(marketTimeMs())}`,
          ...(marketWaits && { 'X-Market-Waits': 'true' }),
        }
  if (lagMs === undefined || route?.answersMarket !== true) return timed
  const ms = lagMs()
  return Number.isFinite(ms) ? { ...timed, 'X-Lag-Ms': `${Math.max(0, Math.round(ms))}` } : timed
}

/**
 * Resolves once this node is at a position that a client has, so that the client neither misses nor repeats anything; null: there is
 * nothing to wait for.
 * @throws ServiceError `warming_up` where it takes too long
 */
export function whenReached(node: HttpNode, market: { seq: number }, since: number): Promise<void> | null {
  const { reach } = node
  if (reach === undefined || since <= market.seq) return null
  return reach(since).then((isReached) => {
    if (isReached) return
    const sentence = `This node is at position ${market.seq} and has not reached ${since} yet: try again, or elsewhere.`
    throw tryAgain('warming_up', sentence)
  })
}
