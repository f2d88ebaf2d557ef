import type { ChildProcess } from 'node:child_process'
import type { Config } from '../config/settings.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { RetainedDays } from '../store/lake/retention.ts'
import { openStore } from '../store/store.ts'
import type { Provenance, Store } from '../store/types.ts'

const GIGABYTE = 1e9

/** Opens the store as the settings say. @param lakeProcess one that waits for its options; by default one is started */
export function openConfiguredStore(
  config: Config,
  provenance: Provenance | null,
  clock: Clock,
  log: Log,
  lakeProcess?: ChildProcess,
): Promise<Store> {
  const { dataDir, lakeFlushMs, lakeTidyMs, lakeGraceMs, diskReserveMb } = config
  return openStore({
    dataDir,
    lakeFlushMs,
    lakeTidyMs,
    lakeGraceMs,
    diskReserveMb,
    retainDays: retainedDays(config),
    retainUnaskedPct: config.retainUnaskedPct,
    retainEvents: {
      days: config.retainTradesDays,
      bytesMax: config.retainTradesGb * GIGABYTE,
      diskPct: config.retainTradesDiskPct,
    },
    cooldownMs: config.submitCooldownMs,
    labelsDelayMs: config.labelsDelayMs,
    provenance,
    isMixed: config.mixed,
    lakeProcess,
    clock,
    log,
  })
}

/** Days by table; tables that are kept for ever (0 in the configuration) are left out. */
function retainedDays(config: Config): RetainedDays {
  const { retainTrainingDays, retainRejectionsDays, retainBarsDays, retainOutcomesDays } = config
  const days: RetainedDays = {
    training: retainTrainingDays,
    rejections: retainRejectionsDays,
    bars: retainBarsDays,
    outcomes: retainOutcomesDays,
  }
  return Object.fromEntries(Object.entries(days).filter(([, retained]) => retained > 0))
}
