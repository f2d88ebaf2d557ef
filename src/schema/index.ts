// What the package exports as `mintlake/schemas`: the schemas, vocabularies and tables that others build on, as zod objects and types.
export * from './bar.ts'
export * from './datapoint.ts'
export { ERRORS, type ErrorCode, type FieldError } from './errors.ts'
export {
  type IngestRecord,
  ingestRecordSchema,
  type TokenEvent,
  type TradeEvent,
  tokenEventSchema,
  tradeEventSchema,
} from './event.ts'
export * from './market-item.ts'
export { isMint } from './mint.ts'
export * from './submission.ts'
export * from './tables.ts'
export * from './vocabulary.ts'
export * from './xp.ts'
