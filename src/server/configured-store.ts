import type { ChildProcess } from 'node:child_process'
import type { Config } from '../config/settings.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { openStore } from '../store/store.ts'
import type { Provenance, Store } from '../store/types.ts'

/** Opens the store as the settings say. @param lakeProcess one that waits for its options; by default one is started */
export function openConfiguredStore(
  config: Config,
  provenance: Provenance | null,
  clock: Clock,
  log: Log,
  lakeProcess?: ChildProcess,
): Promise<Store> {
  const { lakeFlushMs, lakeTidy, diskReserveMb, retain, isMixed } = config.store
  return openStore({
    dataDir: config.dataDir,
    lakeFlushMs,
    lakeTidyMs: lakeTidy.everyMs,
    lakeGraceMs: lakeTidy.graceMs,
    diskReserveMb,
    retainDays: retain.days,
    retainUnaskedPct: retain.unaskedPct,
    retainEvents: retain.events,
    cooldownMs: config.submitLimits.cooldownMs,
    labelsDelayMs: config.labelsDelayMs,
    provenance,
    isMixed,
    lakeProcess,
    clock,
    log,
  })
}
