import type { Data, Schema } from 'apache-arrow'
import { lazyPackage } from '../../lib/lazy-package.ts'

/** Loaded for the first answer that is an Arrow stream. */
export const arrow = lazyPackage<typeof import('apache-arrow')>('apache-arrow')

/** An Arrow IPC stream of one record batch, of these columns. */
export function arrowStream(schema: Schema, length: number, children: Data[]): Uint8Array {
  const type = new arrow.Struct(schema.fields)
  const batch = new arrow.RecordBatch(schema, arrow.makeData({ type, length, nullCount: 0, children }))
  return arrow.tableToIPC(new arrow.Table(schema, [batch]), 'stream')
}
