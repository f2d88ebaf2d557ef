// The endpoints of the chain that the feed solana would use.
import type { Config } from '../../config/settings.ts'
import type { Clock } from '../../lib/clock.ts'
import { type Check, type CheckResult, fail, ok, warn } from './check.ts'

const PRICE_AGE_MS_MAX = 600_000

/** A check for each endpoint of the settings. */
export const endpointChecks = ({ solana: { rpcUrls, socketUrls } }: Config, clock: Clock): Check[] =>
  rpcUrls.map((url, index) => ({
    name: rpcUrls.length === 1 ? 'endpoint' : `endpoint ${index + 1}`,
    run: () => checkOne(url, socketUrls[index] ?? null, clock),
  }))

async function checkOne(rpcUrl: string, socketUrl: string | null, clock: Clock): Promise<CheckResult> {
  // Loaded here: no other check reads the chain.
  const { checkEndpoint } = await import('../../ingest/solana/check-endpoint.ts')
  const { host, problem, lacks, unchecked, slot, priceAgeMs } = await checkEndpoint(rpcUrl, socketUrl, clock)
  if (problem !== null)
    return fail(
      `${host} cannot serve the feed: ${problem}`,
      'correct --solana-rpc and --solana-ws, or take another endpoint',
    )
  const notAsked = `${host} did not answer ${unchecked.join(', ')}: it asked for a pause, or was slow`
  if (lacks.length > 0)
    return warn(
      `${host} refuses ${lacks.join('; ')}${unchecked.length > 0 ? `; ${notAsked}` : ''}`,
      'a plan that allows it, or a second endpoint in --solana-rpc',
    )
  if (unchecked.length > 0)
    return warn(
      notAsked,
      'try again later; if that stays so, a plan that allows more, or a second endpoint in --solana-rpc',
    )
  if (priceAgeMs === null || priceAgeMs > PRICE_AGE_MS_MAX)
    return warn(
      `${host} has no price of SOL of the last ten minutes: trades in SOL would have no price`,
      'is this machine’s clock right? Else set --sol-price',
    )
  return ok(
    `${host} serves the chain at slot ${slot}; its price of SOL is ${Math.round(priceAgeMs / 1_000)} s old`,
  )
}
