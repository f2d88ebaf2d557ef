// What sources have said of a token's enriched fields, and which of it counts: the rule is in schema/enrichment.ts.
import {
  ENRICHED_FIELDS,
  type Enriched,
  type EnrichedFrom,
  type PatchFields,
} from '../../schema/datapoint.ts'
import {
  areApart,
  ENRICHED_SOURCES,
  ENRICHMENT_RULES,
  isSourcedField,
  kindOf,
  SOURCE_KINDS,
  SOURCED_FIELDS,
  type SourcedField,
  type SourceKind,
  type TradeFigures,
  UNNAMED_SOURCE,
} from '../../schema/enrichment.ts'
import type { EnrichedField } from '../../schema/features.ts'

type Value = boolean | number

/** What one source has said at one time. */
export interface EnrichmentReport {
  readonly source: string
  /** Unix ms. */
  readonly atMs: number
  /**
   * Without unknown ones. Of each kind of source a field is in the latest report alone that named it; of all kinds a sourced field,
   * whose value is elsewhere.
   */
  readonly values: Readonly<Partial<Record<EnrichedField | SourcedField, Value>>>
}
export type EnrichmentReports = readonly EnrichmentReport[]

/** The fields that count, and whose they are. */
export interface Enrichment {
  values: Enriched
  /** By source and age, the source that is believed first first. */
  from: EnrichedFrom
}

/** Whether a patch says something of an enriched field, or of one whose source is told. */
export const isEnrichment = (fields: PatchFields): boolean =>
  [...ENRICHED_FIELDS, ...SOURCED_FIELDS].some((field) => fields[field] !== undefined)

/** The reports with what a patch says of enriched fields: null takes back what sources of this kind have said. */
export function addReport(reports: EnrichmentReports, fields: PatchFields, nowMs: number): EnrichmentReports {
  const source = fields.enriched_source || UNNAMED_SOURCE
  const kind = kindOf(source)
  const named = ENRICHED_FIELDS.filter((field) => fields[field] !== undefined)
  const sourced = SOURCED_FIELDS.filter((field) => fields[field] !== undefined)
  const kept = reports.flatMap((report) =>
    withoutFields(report, kindOf(report.source) === kind ? [...named, ...sourced] : sourced),
  )
  const values = Object.fromEntries([
    ...named.flatMap((field) => (fields[field] == null ? [] : [[field, fields[field]]])),
    // Feeds that do not say whose they are tell the supply of a launch.
    ...sourced.flatMap((field) => (fields[field] == null || !fields.enriched_source ? [] : [[field, true]])),
  ])
  if (Object.keys(values).length === 0) return kept
  return [...kept, { source, atMs: Math.min(fields.enriched_at ?? nowMs, nowMs), values }]
}

/** Market time has gone back: what was said later was said at `timeMs`. */
export const rewindReports = (reports: EnrichmentReports, timeMs: number): EnrichmentReports =>
  reports.map((report) => ({ ...report, atMs: Math.min(report.atMs, timeMs) }))

/** What is left of a report, if anything. */
function withoutFields(
  report: EnrichmentReport,
  fields: readonly (EnrichedField | SourcedField)[],
): EnrichmentReports {
  const kept = Object.entries(report.values).filter(([field]) => !fields.some((each) => each === field))
  return kept.length === 0 ? [] : [{ ...report, values: Object.fromEntries(kept) }]
}

interface Answer {
  kind: SourceKind
  value: Value
  source: string
  atMs: number
}

/** What sources of a kind say of a field; undefined: nothing. */
function answerOf(
  field: EnrichedField,
  kind: SourceKind,
  reports: EnrichmentReports,
  trades: () => TradeFigures,
  nowMs: number,
): Answer | undefined {
  if (kind === 'trades') {
    const value = trades()[field as keyof TradeFigures]
    return value == null ? undefined : { kind, value, source: ENRICHED_SOURCES.trades, atMs: nowMs }
  }
  for (const { source, atMs, values } of reports) {
    const value = values[field]
    if (value !== undefined && kindOf(source) === kind) return { kind, value, source, atMs }
  }
  return undefined
}

/** The answer that counts: the first that is fresh, else the first; undefined: there is none. */
function countingAnswer(
  field: EnrichedField,
  reports: EnrichmentReports,
  trades: () => TradeFigures,
  nowMs: number,
): Answer | undefined {
  const { kinds, freshMs } = ENRICHMENT_RULES[field]
  let first: Answer | undefined
  for (const kind of kinds) {
    const answer = answerOf(field, kind, reports, trades, nowMs)
    if (answer !== undefined && nowMs - answer.atMs <= freshMs) return answer
    first ??= answer
  }
  return first
}

/** Asks once, and not at all where nobody wants the answer. */
function asked<Value>(ask: () => Value): () => Value {
  let answer: Value | undefined
  return () => {
    answer ??= ask()
    return answer
  }
}

/** The values that count at a time. @param trades what the server's own trades say then, asked where it matters */
export function enrichmentOf(
  reports: EnrichmentReports,
  trades: () => TradeFigures,
  nowMs: number,
): Enrichment {
  const ownTrades = asked(trades)
  const values: Partial<Record<EnrichedField, Value | null>> = {}
  const byKind: Record<SourceKind, EnrichedFrom> = { chain: [], provider: [], trades: [] }
  const tell = (field: EnrichedField | SourcedField, kind: SourceKind, source: string, atMs: number) => {
    // Market time may have gone back since.
    const at = Math.min(atMs, nowMs)
    const part = byKind[kind].find((each) => each.source === source && each.at === at)
    if (part !== undefined) part.fields.push(field)
    else byKind[kind].push({ source, at, fields: [field] })
  }
  for (const field of ENRICHED_FIELDS) {
    const counts = countingAnswer(field, reports, ownTrades, nowMs)
    values[field] = counts?.value ?? null
    if (counts !== undefined) tell(field, counts.kind, counts.source, counts.atMs)
  }
  for (const report of reports)
    for (const field of SOURCED_FIELDS)
      if (report.values[field] !== undefined) tell(field, kindOf(report.source), report.source, report.atMs)
  return { values: values as Enriched, from: SOURCE_KINDS.flatMap((kind) => byKind[kind]) }
}

/** The fields of a patch about which another kind of source has a fresh answer that contradicts it. */
export function contradictedFields(
  fields: PatchFields,
  reports: EnrichmentReports,
  trades: () => TradeFigures,
  nowMs: number,
): EnrichedField[] {
  const saysKind = kindOf(fields.enriched_source || UNNAMED_SOURCE)
  const ownTrades = asked(trades)
  return ENRICHED_FIELDS.filter((field) => {
    const said = fields[field]
    if (said == null) return false
    const { kinds, freshMs } = ENRICHMENT_RULES[field]
    return kinds.some((kind) => {
      const other = kind === saysKind ? undefined : answerOf(field, kind, reports, ownTrades, nowMs)
      return other !== undefined && nowMs - other.atMs <= freshMs && areApart(field, said, other.value)
    })
  })
}

/** The sources of the enriched fields, and the oldest of their times. */
export function summaryOf(from: EnrichedFrom): {
  enriched_source: string | null
  enriched_at: number | null
} {
  const parts = from.filter(({ fields }) => !fields.every(isSourcedField))
  if (parts.length === 0) return { enriched_source: null, enriched_at: null }
  return {
    enriched_source: [...new Set(parts.map(({ source }) => source))].join('+'),
    enriched_at: Math.min(...parts.map(({ at }) => at)),
  }
}
