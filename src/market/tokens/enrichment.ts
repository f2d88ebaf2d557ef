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
  kindOf,
  SOURCE_KINDS,
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
  /** Without unknown ones. Of each kind of source a field is in the latest report alone that named it. */
  readonly values: Readonly<Partial<Record<EnrichedField, Value>>>
}
export type EnrichmentReports = readonly EnrichmentReport[]

/** The fields that count, and whose they are. */
export interface Enrichment {
  values: Enriched
  /** By source and age, the source that is believed first first. */
  from: EnrichedFrom
}

/** Whether a patch says something of an enriched field. */
export const isEnrichment = (fields: PatchFields): boolean =>
  ENRICHED_FIELDS.some((field) => fields[field] !== undefined)

/** The reports with what a patch says of enriched fields: null takes back what sources of this kind have said. */
export function addReport(reports: EnrichmentReports, fields: PatchFields, nowMs: number): EnrichmentReports {
  const source = fields.enriched_source || UNNAMED_SOURCE
  const kind = kindOf(source)
  const named = ENRICHED_FIELDS.filter((field) => fields[field] !== undefined)
  const kept = reports.flatMap((report) => {
    if (kindOf(report.source) !== kind) return report
    const values = withoutFields(report.values, named)
    return Object.keys(values).length === 0 ? [] : { ...report, values }
  })
  const values = Object.fromEntries(
    named.flatMap((field) => (fields[field] == null ? [] : [[field, fields[field]]])),
  )
  if (Object.keys(values).length === 0) return kept
  return [...kept, { source, atMs: Math.min(fields.enriched_at ?? nowMs, nowMs), values }]
}

function withoutFields(
  values: EnrichmentReport['values'],
  fields: readonly EnrichedField[],
): EnrichmentReport['values'] {
  return Object.fromEntries(
    Object.entries(values).filter(([field]) => !fields.some((each) => each === field)),
  )
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
  for (const field of ENRICHED_FIELDS) {
    const counts = countingAnswer(field, reports, ownTrades, nowMs)
    values[field] = counts?.value ?? null
    if (counts === undefined) continue
    const { kind, source } = counts
    // Market time may have gone back since.
    const at = Math.min(counts.atMs, nowMs)
    const part = byKind[kind].find((each) => each.source === source && each.at === at)
    if (part !== undefined) part.fields.push(field)
    else byKind[kind].push({ source, at, fields: [field] })
  }
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

/** The sources that count, and the oldest of their times. */
export function summaryOf(from: EnrichedFrom): {
  enriched_source: string | null
  enriched_at: number | null
} {
  if (from.length === 0) return { enriched_source: null, enriched_at: null }
  return {
    enriched_source: [...new Set(from.map(({ source }) => source))].join('+'),
    enriched_at: Math.min(...from.map(({ at }) => at)),
  }
}
