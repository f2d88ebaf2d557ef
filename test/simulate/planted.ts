// Bugs that are planted to prove that the simulation finds them: each is a change of the source text, made while it is loaded.
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

export interface PlantedBug {
  /** What goes wrong, as a sentence. */
  is: string
  /** Below `src`. */
  file: string
  /** The text that is replaced, which the file has once. */
  from: string
  to: string
}

export const PLANTED = {
  'acknowledged-unsynced': {
    is: 'a submission is acknowledged before its row is synced',
    file: 'store/log/segments/segment-file.ts',
    from: "createAnew(disk, next, 'createSynced')",
    to: "createAnew(disk, next, 'create')",
  },
  'state-not-replayed': {
    is: 'a start does not apply the commits that the log holds beyond the last flush',
    file: 'store/store.ts',
    from: '    applyCommit(state, { lsn, knownAtMs, rows })',
    to: '    state.lsn = lsn',
  },
  'retry-stored-twice': {
    is: 'a restart forgets which answers were given under an Idempotency-Key',
    file: 'submissions/rate-limits/restore.ts',
    from: '    idempotency.remember(row.agent_id, row.idempotency_key, response)',
    to: '    void response',
  },
  'rate-forgotten': {
    is: 'a restart forgets how often an agent has submitted',
    file: 'submissions/rate-limits/restore.ts',
    from: '    rate.take(row.agent_id, atMs)',
    to: '    void atMs',
  },
  'cooldown-forgotten': {
    is: 'a restart forgets cooldowns',
    file: 'submissions/rate-limits/restore.ts',
    from: '    cooldowns.start(agentId, mint, atMs)',
    to: '    void [agentId, mint, atMs]',
  },
  'gap-untold': {
    is: 'the time in which no server ran is not told as a gap',
    file: 'checkpoint/begin-run.ts',
    from: "apply({ type: 'gap', ts, fromMs, toMs: ts, reason: 'downtime' }, nowMs)",
    to: 'void fromMs',
  },
  'label-early': {
    is: 'labels are shown to others after half of their delay',
    file: 'submissions/xp/withheld-labels.ts',
    from: '    const announcedMs = submittedAtMs + this.#delayMs',
    to: '    if (now.wallMs - submittedAtMs > this.#delayMs / 2) return null\n    const announcedMs = submittedAtMs + this.#delayMs',
  },
  'removal-missed': {
    is: 'followers are not told of a token that was evicted',
    file: 'market/output/row-changes.ts',
    from: '        parts.push({ left: eviction.mint, seq })',
    to: '        void eviction.mint',
  },
  'change-missed': {
    is: 'of a burst of changes followers miss one',
    file: 'market/output/row-changes.ts',
    from: '        nextSeq = seq - 1\n        return false',
    to: '        nextSeq = seq\n        return false',
  },
  'bars-not-sent-again': {
    is: 'closed bars that a lake process took with it are not sent to the next one',
    file: 'store/market-data/bar-outbox.ts',
    from: '    this.#buffer.requeueSent()',
    to: '    void this.#buffer',
  },
  'segment-removed-early': {
    is: 'a segment of the log is removed although the lake could not be written',
    file: 'store/flush-scheduler.ts',
    from: "await client.ask('flush', ask, FLUSH_TIMEOUT_MS)",
    to: "await client.ask('flush', ask, FLUSH_TIMEOUT_MS).catch(() => ({ bars: this.barAudit as never, damage: [], deadRows: 0 }))",
  },
  'position-back': {
    is: 'positions begin anew at each start',
    file: 'store/data-folder/positions.ts',
    from: 'Math.max(reservedTo + 1, positionAt(nowMs))',
    to: '1',
  },
  'ban-not-stored': {
    is: 'a ban by the operator does not outlive the process',
    file: 'submissions/accounts/agent-registry.ts',
    from: "    await this.#append(agentId, { kind: 'banned', data: { untilMs, reason } })",
    to: '    this.#record(agentId).bans.ban(this.#options.clock.now(), untilMs, readClock(this.#options.clock))',
  },
  'bonus-twice': {
    is: 'of two agents that are first at once both get the bonus',
    file: 'submissions/xp/scoreboard.ts',
    from: '    return isFirstOpen || isLowCoverageOpen ? this.#decided.wait(mint) : null',
    to: '    return isFirstOpen && isLowCoverageOpen ? this.#decided.wait(mint) : null',
  },
  'journal-unsynced': {
    is: 'recorded events are not synced',
    file: 'journal/writer/batch-writer.ts',
    from: '    if (this.syncedEventNo < this.writtenEventNo) this.#syncing ??= this.#syncNow()',
    to: '    void this.syncedEventNo',
  },
  'hang-untold': {
    is: 'a disk that takes no market events is not told',
    file: 'journal/journal.ts',
    from: 'isHanging ? NO_ANSWER : null',
    to: 'null',
  },
  'folder-unsynced': {
    is: 'the name of a new data folder is not synced',
    file: 'store/store.ts',
    from: '    syncNamesOf(path)\n',
    to: '',
  },
} as const satisfies Record<string, PlantedBug>

export type PlantedName = keyof typeof PLANTED
export const isPlantedName = (name: string): name is PlantedName => Object.hasOwn(PLANTED, name)

/** From now on the file is loaded with the bug. @throws where the source does not have the text once */
export function plant(name: PlantedName): void {
  const { file, from, to } = PLANTED[name]
  const url = new URL(`../../src/${file}`, import.meta.url)
  const parts = readFileSync(url, 'utf8').split(from)
  if (parts.length !== 2) throw new Error(`${file} has the text of ${name} ${parts.length - 1} times`)
  registerHooks({
    load: (loaded, context, next) =>
      loaded === url.href
        ? { format: 'module-typescript', source: parts.join(to), shortCircuit: true }
        : next(loaded, context),
  })
}
