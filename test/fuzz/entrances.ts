// Every place where untrusted data enters, as a function of one case. It returns if the data is accepted or refused
// as specified, and throws otherwise.
import { Packr } from 'msgpackr'
import { ConfigError, readConfig } from '../../src/config/config.ts'
import { SETTINGS_BY_PATH } from '../../src/config/settings.ts'
import type { Context } from '../../src/http/context.ts'
import { jsonObject } from '../../src/http/routes/agents.ts'
import {
  parseMarketRequest,
  parseMessage,
  parseTopic,
  requiredWord,
} from '../../src/http/stream/stream-request.ts'
import { parseEnvelope } from '../../src/ingest/birdeye/birdeye-client.ts'
import { toEnrichedFields, toTop10Percent } from '../../src/ingest/birdeye/enriched-fields.ts'
import { parseFrame } from '../../src/ingest/pumpportal/pumpportal-frame.ts'
import { ingest, ingestFrame } from '../../src/ingest/push/push.ts'
import { Market } from '../../src/market/market.ts'
import { ServiceError } from '../../src/schema/errors.ts'
import { ingestRecordSchema, type MarketEvent } from '../../src/schema/event.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { AgentRegistry } from '../../src/submissions/accounts/agent-registry.ts'
import { SubmissionError } from '../../src/submissions/errors.ts'
import { validateSubmission } from '../../src/submissions/validate.ts'
import type { Mutator } from '../support/mutations.ts'
import { submission, VALUES } from '../support/submission.ts'

export const NOW = 1_772_000_000_000
const NDJSON = 'application/x-ndjson'
const MSGPACK = 'application/msgpack'
const mint = mintOfSymbol('fuzz')
const packr = new Packr({ useRecords: false })
/** Packs a value without members named `toJSON`, which the encoder would call. */
const packed = (value: unknown) =>
  packr.pack(JSON.parse(JSON.stringify(value).replaceAll('"toJSON"', '"toJSO"')))

const trade = { type: 'trade', mint, ts: NOW, side: 'buy', tokenAmount: 5, priceUsd: 0.25 }
const patch = {
  type: 'patch',
  mint,
  ts: NOW,
  fields: {
    ...VALUES,
    topHolders: [{ address: mint, amount: 1, pct: 2 }],
    name: 'Name',
    streamSource: 'pump',
    isLive: true,
    enriched_at: NOW,
    createdAt: NOW,
  },
}
export const RECORDS: readonly object[] = [
  { ...trade, solAmount: 1, vSol: 30, vTokens: 1e9, wallet: mint, tx: 'tx' },
  patch,
  // With few other members, so that most mutations change the list that zod validates.
  { type: 'patch', mint, ts: NOW, fields: { topHolders: [{ address: mint, amount: 1, pct: 2 }] } },
  { type: 'token', mint, ts: NOW, name: 'N', symbol: 'S', uri: 'u', description: 'd', totalSupply: 1e9 },
  { type: 'graduated', mint, ts: NOW, pool: 'pump-amm' },
  { type: 'live', mint, ts: NOW, isLive: true, viewerCount: 3 },
  { type: 'solPrice', ts: NOW, usd: 150 },
  { type: 'disconnect', ts: NOW, sinceMs: NOW - 1 },
  { type: 'reconnect', ts: NOW },
]
const curve = { bondingCurveKey: mint, vTokensInBondingCurve: 1e9, vSolInBondingCurve: 32, marketCapSol: 32 }
export const FRAMES: readonly object[] = [
  {
    ...{ signature: 'sig', mint, traderPublicKey: mint, txType: 'create', initialBuy: 6e7, solAmount: 1.78 },
    ...curve,
    ...{ name: 'A Token', symbol: 'TOK', uri: 'https://example.com/meta.json', pool: 'pump' },
  },
  {
    ...{ signature: 'sig', mint, traderPublicKey: mint, txType: 'buy', tokenAmount: 1_000, solAmount: 0.5 },
    ...{ newTokenBalance: 1_000, pool: 'pump', ...curve },
  },
  { signature: 'sig', mint, txType: 'migrate', pool: 'pump-amm' },
  { message: 'Successfully subscribed' },
  { errors: 'Invalid API key' },
]
const security = {
  freezeAuthority: null,
  ownerAddress: 'someone',
  transferFeeEnable: null,
  isToken2022: false,
  mutableMetadata: true,
  top10HolderPercent: 0.254,
  ...{ uniqueWallet24h: 1_234, uniqueWallet1h: 0, vBuy24hUSD: 10.5, vSell24hUSD: 0 },
}
export const PROFILES: readonly object[] = [
  { name: 'agent', description: 'an agent' },
  { name: 'agent', avatarUrl: 'https://a', twitterHandle: '@a', website: 'https://b' },
]
export const SUBMISSIONS: readonly object[] = [
  submission(mint),
  submission(mint, { snapshot: { ...VALUES, snapshotAt: NOW } }),
  { quant: { riskFactors: ['bonding_curve_risk'] } },
]
const MESSAGES: readonly object[] = [
  { op: 'subscribe', topic: 'market', tab: 'new', sort: 'hot', order: 'asc', limit: 20, offset: 0, since: 5 },
  { op: 'subscribe', topic: 'ohlc', mint, tf: '1m', limit: 10, from: NOW },
  { op: 'ping' },
]

/** Errors with which a service may refuse untrusted data. */
function mayRefuse<Result>(act: () => Result): Result | null {
  try {
    return act()
  } catch (error) {
    if (error instanceof ServiceError || error instanceof SubmissionError) return null
    if (error instanceof ConfigError) return null
    throw error
  }
}

function expectAccount(
  result: { accepted: number; rejected: number } | null,
  acceptedMin: number,
  total: number,
): void {
  if (result === null || result.accepted < acceptedMin || result.accepted + result.rejected !== total)
    throw new Error(`of ${total} records, at least ${acceptedMin} good, came ${JSON.stringify(result)}`)
}

/** The places where untrusted data enters. Each call is one case. */
export function entrances(): Record<string, (mutator: Mutator) => void | Promise<void>> {
  const market = new Market({ tokensMax: 200 })
  market.advanceTo(NOW)
  const good = JSON.stringify(trade)
  const empty = { agents: [], agentKeys: [], agentEvents: [] }
  const agents = new AgentRegistry({
    recovered: empty,
    store: { commit: async () => {} },
    clock: { now: () => NOW, monotonicMs: () => NOW },
    random: () => 0.5,
    randomBytes: (size: number) => Buffer.alloc(size, 7),
    registrationOpen: true,
  })
  const caller = {
    agent: { agentId: 'none', name: 'n', description: null, type: 'agent' as const, createdAtMs: 0 },
  }
  const objectOf = (text: string) => mayRefuse(() => jsonObject({ body: Buffer.from(text) } as Context))
  const settle = (asked: Promise<unknown>) =>
    asked.then(
      () => {},
      (error) =>
        void mayRefuse(() => {
          throw error
        }),
    )
  /** Events of the server's own feeds must be within the bounds of pushed events. */
  const applyAsPushed = (event: MarketEvent) => {
    const { error } = ingestRecordSchema.safeParse(event)
    if (error !== undefined)
      throw new Error(`an event that nobody may push: ${JSON.stringify(event)}: ${error.message}`)
    market.apply(event, NOW)
  }
  const settings = Object.values(SETTINGS_BY_PATH)

  return {
    'a line of a push': (mutator) => {
      const body = `${good}\n${mutator.json(mutator.pick(RECORDS))}\n${good}`
      expectAccount(
        mayRefuse(() => ingest(Buffer.from(body), NDJSON, market, NOW)),
        2,
        3,
      )
    },
    'an item of a msgpack push': (mutator) => {
      const value = mutator.value(mutator.pick(RECORDS))
      const body = packed([trade, value, trade])
      expectAccount(
        mayRefuse(() => ingest(body, MSGPACK, market, NOW)),
        2,
        3,
      )
    },
    'the bytes of a push': (mutator) => {
      const [first, second] = [mutator.pick(RECORDS), mutator.pick(RECORDS)]
      const text = Buffer.from(`${JSON.stringify(first)}\n${JSON.stringify(second)}\n`)
      const packed = packr.pack([first, second])
      mayRefuse(() => ingest(mutator.bytes(text), NDJSON, market, NOW))
      mayRefuse(() => ingest(mutator.bytes(packed), MSGPACK, market, NOW))
    },
    'a frame of a held connection': (mutator) => {
      const text = mutator.json([mutator.pick(RECORDS), mutator.pick(RECORDS)])
      mayRefuse(() => ingestFrame(Buffer.from(text), false, market, NOW))
    },
    'a submission': (mutator) => {
      const body = Buffer.from(mutator.json(mutator.pick(SUBMISSIONS)))
      mayRefuse(() => validateSubmission(mutator.below(10) === 0 ? mutator.bytes(body) : body))
    },
    'a registration or a profile': async (mutator) => {
      const body = objectOf(mutator.json(mutator.pick(PROFILES)))
      if (body !== null) await settle(agents.setProfile({ ...caller, keyHash: '' }, body))
      if (body !== null && mutator.below(50) === 0) await settle(agents.register(body))
    },
    'a frame of PumpPortal': (mutator) => {
      const frame = JSON.parse(mutator.json(mutator.pick(FRAMES))) as unknown
      const reading = parseFrame(frame, NOW)
      if (reading.kind === 'events') for (const event of reading.events) applyAsPushed(event)
    },
    'an answer of Birdeye': (mutator) => {
      const data = parseEnvelope(mutator.json({ success: true, data: security }))
      const fields = { ...toEnrichedFields(data, data), enriched_at: NOW, enriched_source: 'birdeye' }
      toTop10Percent(data?.top10HolderPercent)
      applyAsPushed({ type: 'patch', mint, ts: NOW, fields })
    },
    'a message of a stream': (mutator) => {
      const message = mutator.pick(MESSAGES)
      const isBinary = mutator.below(2) === 0
      const frame = isBinary ? packed(mutator.value(message)) : Buffer.from(mutator.json(message))
      mayRefuse(() => {
        const fields = parseMessage(mutator.below(5) === 0 ? mutator.bytes(frame) : frame, isBinary)
        requiredWord(fields, 'op', ['subscribe', 'unsubscribe', 'ping'])
        parseTopic(fields, 500)
      })
    },
    'a query': (mutator) => {
      const fields = mutator.value(mutator.pick(MESSAGES))
      const pairs = Object.entries(fields ?? {}).map(([name, value]) => `${name}=${JSON.stringify(value)}`)
      mayRefuse(() => parseMarketRequest(new URLSearchParams(pairs.join('&')), 500))
    },
    'a setting': (mutator) => {
      const { flag, env } = mutator.pick(settings)
      const text = mutator.json([mutator.pick(['8080', 'max', 'a=b,c=d', 'simulator', ''])])
      mayRefuse(() => readConfig(flag === null ? [] : [`--${flag}`, text], { [env]: text }))
    },
  }
}
