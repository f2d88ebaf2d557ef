// What the parts of a run share.

import type { ChainEndpoint } from './chain/endpoint.ts'
import type { Cluster } from './cluster.ts'
import type { LakeContents } from './lake/contents.ts'
import type { LakeTroubles } from './lake/process.ts'
import type { LakeAuditor } from './lake/real/auditor.ts'
import type { RealWorld } from './lake/real/beside.ts'
import type { SimulatedFiles } from './machine/files.ts'
import { type Draws, drawsOf, type Machine } from './machine/machine.ts'
import type { OtherWriters } from './other-writers.ts'
import type { PositionSources } from './positions.ts'
import type { SimulatedNode, SimulatedServer } from './server.ts'
import { type Trace, Violation } from './trace.ts'

/** Where market events come from. */
export type MarketFeed = 'push' | 'simulator' | 'solana'

export interface World {
  seed: number
  feed: MarketFeed
  /** Null: the market is not from the chain. */
  chain: ChainEndpoint | null
  /** Of the simulated market, at each start. */
  simulatorTokens: number
  machine: Machine
  files: SimulatedFiles
  lake: LakeContents
  /** DuckDB and Parquet beside the modelled lake; null: the model is alone. */
  real: (RealWorld & { auditor: LakeAuditor }) | null
  troubles: LakeTroubles
  server: SimulatedServer
  positions: PositionSources
  /** Null: the server is alone. */
  cluster: Cluster | null
  /** Null: there are none beside the server. */
  otherWriters: OtherWriters | null
  trace: Trace
  /** How often each thing was done, by its name. */
  counts: Map<string, number>
  /** Whether the machine's clock was ever wrong: limits that count by stored times are not exact then. */
  hadWrongClock: boolean
  /** The clock was wrong when the lake began: nothing tells it what the time is. */
  hadWrongBegin: boolean
  /** Full days for which the tables that are not kept for ever keep their rows. */
  retain: Readonly<Record<string, number>>
  /** A byte of the journal, or of the log, has changed: what it held may be lost, which has to be told. */
  hasDamagedJournal: boolean
  hasDamagedLog: boolean
  /** A life has said that the next one may not know what was lost. */
  mayForgetLosses: boolean
}

export const count = (world: World, name: string, by = 1): void =>
  void world.counts.set(name, (world.counts.get(name) ?? 0) + by)

export function note(world: World, ...parts: (string | number | null)[]): void {
  world.trace.note(world.machine.nowMs, ...parts)
}

/** Counts that an invariant was checked. @throws Violation where it does not hold */
export function check(world: World, invariant: string, holds: boolean, detail: () => string): void {
  count(world, `checked: ${invariant}`)
  if (!holds) throw new Violation(invariant, detail())
}

/** Whoever takes requests of clients: the server, and the readers of its cluster. */
export const nodesOf = ({ server, cluster }: World): SimulatedNode<never>[] =>
  [server, ...(cluster?.readers ?? [])] as never

export const drawsFor = (world: Pick<World, 'seed'>, purpose: string): Draws => drawsOf(world.seed, purpose)
