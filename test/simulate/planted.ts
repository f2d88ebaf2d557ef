// Bugs that are planted to prove that the simulation finds them: each is a change of the source text, made while it is loaded.
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

export interface PlantedBug {
  /** What goes wrong, as a sentence. */
  is: string
  /** A seed that finds it, the steps within which it does, and the invariant that does not hold then. */
  seed: number
  steps: number
  violates: string
  /** Below `src`. */
  file: string
  /** The text that is replaced, which the file has once. */
  from: string
  to: string
}

export const PLANTED = {
  'acknowledged-unsynced': {
    is: 'a submission is acknowledged before its row is synced',
    seed: 2,
    steps: 120,
    violates: 'a key that was handed out is known',
    file: 'store/log/segments/segment-file.ts',
    from: "path, 'createSynced'",
    to: "path, 'create'",
  },
  'state-not-replayed': {
    is: 'a start does not apply the commits that the log holds beyond the last flush',
    seed: 5,
    steps: 60,
    violates: 'ledger, totals and standing agree',
    file: 'store/store.ts',
    from: '    applyCommit(state, { lsn, knownAtMs, rows })',
    to: '    state.lsn = lsn',
  },
  'retry-stored-twice': {
    is: 'a restart forgets which answers were given under an Idempotency-Key',
    seed: 52,
    steps: 180,
    violates: 'one Idempotency-Key has one answer',
    file: 'submissions/rate-limits/restore.ts',
    from: '    idempotency.remember(row.agent_id, row.idempotency_key, response)',
    to: '    void response',
  },
  'rate-forgotten': {
    is: 'a restart forgets how often an agent has submitted',
    seed: 7,
    steps: 120,
    violates: 'the rate limit is not exceeded',
    file: 'submissions/rate-limits/restore.ts',
    from: '    rate.take(row.agent_id, atMs)',
    to: '    void atMs',
  },
  'cooldown-forgotten': {
    is: 'a restart forgets cooldowns',
    seed: 3,
    steps: 180,
    violates: 'a cooldown is kept',
    file: 'submissions/rate-limits/restore.ts',
    from: '    cooldowns.start(agentId, mint, atMs)',
    to: '    void [agentId, mint, atMs]',
  },
  'gap-untold': {
    is: 'the time in which no server ran is not told as a gap',
    seed: 13,
    steps: 60,
    violates: 'an event that is missing lies in a gap that was told',
    file: 'checkpoint/begin-run.ts',
    from: "apply({ type: 'gap', ts, fromMs, toMs: ts, reason: 'downtime' }, nowMs)",
    to: 'void fromMs',
  },
  'label-early': {
    is: 'labels are shown to others after half of their delay',
    seed: 1,
    steps: 180,
    violates: 'labels are never shown before their time',
    file: 'submissions/xp/withheld-labels.ts',
    from: '    const announcedMs = submittedAtMs + this.#delayMs',
    to: '    if (now.wallMs - submittedAtMs > this.#delayMs / 2) return null\n    const announcedMs = submittedAtMs + this.#delayMs',
  },
  'change-missed': {
    is: 'followers miss the first change behind the position that they have',
    seed: 4,
    steps: 180,
    violates: 'every follower has the rows of the market',
    file: 'market/output/row-changes.ts',
    from: 'this.#log.since(since, (slot, seq, eviction) =>',
    to: 'this.#log.since(since + 1, (slot, seq, eviction) =>',
  },
  'removal-missed': {
    is: 'followers are not told of a token that was evicted',
    seed: 9,
    steps: 180,
    violates: 'no follower has a row that the market has not',
    file: 'market/output/row-changes.ts',
    from: '        parts.push({ left: eviction.mint, seq })',
    to: '        void eviction.mint',
  },
  'bars-not-sent-again': {
    is: 'closed bars that a lake process took with it are not sent to the next one',
    seed: 1,
    steps: 60,
    violates: 'everything heals in time',
    file: 'store/market-data/bar-outbox.ts',
    from: '    this.#buffer.requeueSent()',
    to: '    void this.#buffer',
  },
  'position-back': {
    is: 'positions begin anew at each start',
    seed: 13,
    steps: 120,
    violates: 'positions of a stream never go back',
    file: 'store/data-folder/positions.ts',
    from: 'Math.max(reservedTo + 1, positionAt(nowMs))',
    to: '1',
  },
  'ban-not-stored': {
    is: 'a ban by the operator does not outlive the process',
    seed: 15,
    steps: 240,
    violates: 'a ban holds',
    file: 'submissions/accounts/agent-registry.ts',
    from: "    await this.#append(agentId, { kind: 'banned', data: { untilMs, reason } })",
    to: '    this.#record(agentId).bans.ban(this.#options.clock.now(), untilMs, readClock(this.#options.clock))',
  },
  'journal-unsynced': {
    is: 'recorded events are not synced',
    seed: 7,
    steps: 60,
    violates: 'no more events are lost than a kill or a power cut may take',
    file: 'journal/writer/batch-writer.ts',
    from: '    if (this.syncedEventNo < this.writtenEventNo) this.#syncing ??= this.#syncNow()',
    to: '    void this.syncedEventNo',
  },
  'hang-untold': {
    is: 'a disk that takes no market events is not told',
    seed: 38,
    steps: 60,
    violates: 'what is not well is told in /health',
    file: 'journal/journal.ts',
    from: 'isHanging ? NO_ANSWER : null',
    to: 'null',
  },
  'bonus-twice': {
    is: 'of two agents that are first at once both get the bonus',
    seed: 3,
    steps: 120,
    violates: 'XP follows the rule',
    file: 'submissions/xp/scoreboard.ts',
    from: '    return this.count(mint) + this.#pendingByMint.get(mint)',
    to: '    return this.count(mint)',
  },
  'segment-removed-early': {
    is: 'a segment of the log is removed although the lake could not be written',
    seed: 196,
    steps: 120,
    violates: 'what was acknowledged is stored once, and what was refused is not',
    file: 'store/flush-scheduler.ts',
    from: "await client.ask('flush', ask, FLUSH_TIMEOUT_MS)",
    to: `await client.ask('flush', ask, FLUSH_TIMEOUT_MS).catch(async (error) => {
      for (const { firstLsn } of round) await commits.remove(firstLsn)
      throw error
    })`,
  },
  'late-bars-lost': {
    is: 'a checkpoint does not wait for the bars of late trades that no file has',
    seed: 194,
    steps: 120,
    violates: 'the lake has the bars of the recorded trades',
    file: 'store/store.ts',
    from: '    return this.#flushes.bars.firstEndMs',
    to: '    return Number.POSITIVE_INFINITY',
  },
  'open-bars-lost': {
    is: 'a start takes a bar that was open at the checkpoint as written, since it ended before the lake reached so far',
    seed: 195,
    steps: 240,
    violates: 'the lake has the bars of the recorded trades',
    file: 'market/bars/bar-cascade.ts',
    from: 'Math.min(endedAfterMs, watermarkMs)',
    to: 'endedAfterMs',
  },
  'folder-unsynced': {
    is: 'the name of a new data folder is not synced',
    seed: 2,
    steps: 120,
    violates: 'a key that was handed out is known',
    file: 'store/store.ts',
    from: '    syncNamesOf(path)\n',
    to: '',
  },
  'outcome-early': {
    is: 'outcomes are labelled at their horizon, before its last bars have closed',
    seed: 10,
    steps: 120,
    violates: 'no label is made before its time',
    file: 'store/limits.ts',
    from: 'export const LABEL_DELAY_MS = 60_000',
    to: 'export const LABEL_DELAY_MS = 0',
  },
  'expired-early': {
    is: 'rows leave the lake a day before their time',
    seed: 50,
    steps: 240,
    violates: 'no row leaves before its time',
    file: 'store/lake/retention.ts',
    from: 'nowMs - days * DAY_MS',
    to: 'nowMs - (days - 1) * DAY_MS',
  },
  'merged-across-dates': {
    is: 'files of different dates are merged into one',
    seed: 5,
    steps: 180,
    violates: 'a file has rows of its date and its numbers alone',
    file: 'store/compaction/merge-plan.ts',
    from: 'Map.groupBy(files, ({ date }) => date)',
    to: 'Map.groupBy(files, ({ table }) => table)',
  },
  'clock-believed': {
    is: 'a clock that has jumped is believed, and rows leave by it',
    seed: 108,
    steps: 240,
    violates: 'no row leaves by a clock that is wrong',
    file: 'store/lake/clock-guard.ts',
    from: 'wallMs - expectedMs <= CLOCK_JUMP_MAX_MS',
    to: 'wallMs - expectedMs <= CLOCK_JUMP_MAX_MS * 1e6',
  },
  'checkpoint-misnumbered': {
    is: 'a reader takes a checkpoint for that of the event before, and applies its last event twice',
    seed: 34,
    steps: 60,
    violates: 'no reader shows the past as now',
    file: 'cluster/reader/bus-checkpoints.ts',
    from: 'folderId, eventNo, lostEvents, settings, uploaderRunId }',
    to: 'folderId, eventNo: eventNo - 1, lostEvents, settings, uploaderRunId }',
  },
  'cut-off-untold': {
    is: 'the health of a reader that is cut off is silent',
    seed: 23,
    steps: 120,
    violates: 'a reader whose market stands still says so in /health',
    file: 'cluster/reader/reader-health.ts',
    from: 'const reasons = this.#reasons()',
    to: 'const reasons: string[] = []',
  },
  'standstill-untold': {
    is: 'a reader takes what tells nothing new for the newest state: a writer that cannot record looks well there',
    seed: 284,
    steps: 120,
    violates: 'a reader whose market stands still says so in /health',
    file: 'cluster/reader/lag.ts',
    from: '  heard(busMs: number): void {\n',
    to: '  heard(busMs: number): void {\n    this.#appliedBusMs = busMs\n',
  },
  'past-as-now': {
    is: 'a reader does not know how far it is behind',
    seed: 17,
    steps: 120,
    violates: 'no reader shows the past as now',
    file: 'cluster/reader/lag.ts',
    from: 'return Math.min(this.silentMs(nowMs), nowMs - this.#confirmedAtMs)',
    to: 'return this.silentMs(nowMs) < Infinity ? 0 : nowMs - this.#confirmedAtMs',
  },
  'replica-goes-back': {
    is: 'a reader shows a restored market although its position is before the one that it has shown',
    seed: 27,
    steps: 180,
    violates: 'the position of a replica never goes back',
    file: 'cluster/reader/replica.ts',
    from: 'if (applied.market.seq < market.seq && this.#folderId === applied.folderId) return',
    to: 'if (applied.market.seq < 0) return',
  },
  'hole-unnoticed': {
    is: 'a reader does not notice that a batch of the stream is missing, and goes on behind it',
    seed: 487,
    steps: 240,
    violates: 'a DataPoint is that of the recorded events',
    file: 'cluster/reader/applied-market.ts',
    from: 'if (firstEventNo > this.eventNo + 1) return missing(',
    to: 'if (firstEventNo < 0) return missing(',
  },
  'etag-without-position': {
    is: 'the ETag of a page does not tell the position of its rows',
    seed: 23,
    steps: 180,
    violates: 'with one ETag all nodes send the same bytes',
    file: 'market/output/pages.ts',
    from: '[version, this.#changes.seq, rowsVersion(slots, total)]',
    to: '[rowsVersion(slots, total)]',
  },
  'loss-uncounted': {
    is: 'nobody counts what a market lacks of a damaged journal: its checkpoint is brought to the bus, and its run goes on with the stream',
    seed: 80,
    steps: 60,
    violates: 'with one ETag all nodes send the same bytes',
    file: 'checkpoint/find-base.ts',
    from: '(head?.lostEvents ?? 0) + eventNo - afterEventNo - applied',
    to: 'Math.min(0, (head?.lostEvents ?? 0) + eventNo - afterEventNo - applied)',
  },
  'new-stream-unnoticed': {
    is: 'a reader does not notice that the stream was made anew, or has lost its last messages',
    seed: 34,
    steps: 120,
    violates: 'every reader is level with the writer in time',
    file: 'cluster/reader/bus-watch.ts',
    from: 'if (created !== this.#watched.created || last < sequence) return true',
    to: 'if (created === last.toString()) return true',
  },
  'key-anew': {
    is: 'a reader adds another Idempotency-Key each time that it tries a submission again',
    seed: 504,
    steps: 120,
    violates: 'what was acknowledged is stored once, and what was refused is not',
    file: 'cluster/proxy/passed-route.ts',
    from: '  return { request, isKeyOurs }',
    to: `  const another = { get: () => randomUUID().replaceAll('-', ''), enumerable: true }
  if (isKeyOurs) Object.defineProperty(request.headers, 'Idempotency-Key', another)
  return { request, isKeyOurs }`,
  },
  'doubt-untold': {
    is: 'a reader that got no answer says that nothing is stored',
    seed: 504,
    steps: 120,
    violates: 'what was acknowledged is stored once, and what was refused is not',
    file: 'cluster/proxy/passing-on.ts',
    from: 'isDoubtful ||= made.mayHaveArrived',
    to: 'if (made.mayHaveArrived) throw unavailable(false)',
  },
  'own-write-unseen': {
    is: 'a reader answers who writes before it shows what was written',
    seed: 21,
    steps: 240,
    violates: 'an own submission is seen through the same reader',
    file: 'cluster/proxy/passing-on.ts',
    from: 'if (position !== null) await this',
    to: 'if (position === undefined) await this',
  },
  'lease-endless': {
    is: 'a writer that the bus has confirmed once acknowledges for ever, also when another one may have taken its place',
    seed: 236,
    steps: 120,
    violates: 'what was acknowledged is stored once, and what was refused is not',
    file: 'cluster/writer/lease.ts',
    from: 'performance.now() - this.#confirmedMs <= LEASE_MS',
    to: 'this.#confirmedMs >= 0',
  },
  'sequence-unexpected': {
    is: 'a writer publishes behind whatever the stream has, also behind what another one has published since',
    seed: 514,
    steps: 120,
    violates: 'one writer publishes after another',
    file: 'cluster/writer/stream-tail.ts',
    from: '          expect: { streamName: names.stream, lastSequence: sequence + index },\n',
    to: '          expect: { streamName: names.stream },\n',
  },
  'same-market-twice': {
    is: 'a simulated market that begins anew has the tokens of the one before it',
    seed: 29,
    steps: 60,
    violates: 'no token is of two simulated markets',
    file: 'ingest/simulated-market.ts',
    from: 'before.generation + 1',
    to: 'before.generation',
  },
  'chain-cut-untold': {
    is: 'what an endpoint of the chain told nobody while its connection was cut is neither fetched nor told as missing',
    seed: 204,
    steps: 120,
    violates: 'a trade of the chain that is missing lies in a gap that was told',
    file: 'ingest/solana/solana.ts',
    from: 'if (wasConnected && !isEnd) {',
    to: 'if (wasConnected && isEnd) {',
  },
} as const satisfies Record<string, PlantedBug>

export type PlantedName = keyof typeof PLANTED
export const isPlantedName = (name: string): name is PlantedName => Object.hasOwn(PLANTED, name)

const urlOf = (name: PlantedName): URL => new URL(`../../src/${PLANTED[name].file}`, import.meta.url)

/** The file with the bug. @throws where the source does not have the text once */
export function plantedSource(name: PlantedName): string {
  const { file, from, to } = PLANTED[name]
  const parts = readFileSync(urlOf(name), 'utf8').split(from)
  if (parts.length !== 2) throw new Error(`${file} has the text of ${name} ${parts.length - 1} times`)
  return parts.join(to)
}

/** From now on the file is loaded with the bug. @throws where the source does not have the text once */
export function plant(name: PlantedName): void {
  const { href } = urlOf(name)
  const source = plantedSource(name)
  registerHooks({
    load: (loaded, context, next) =>
      loaded === href ? { format: 'module-typescript', source, shortCircuit: true } : next(loaded, context),
  })
}
