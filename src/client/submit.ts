import type { Submission } from '../schema/submission.ts'
import type { DryRun, Receipt } from './answers.ts'
import type { CallOptions, Transport } from './transport.ts'

export interface SubmitOptions extends CallOptions {
  /** Names this submission: it is stored once, however often it is sent with the same key. A new one unless given. */
  idempotencyKey?: string | undefined
  /** Checks the submission and tells its verdict, and stores nothing. */
  dryRun?: boolean | undefined
}

const SUBMIT_PATH = '/api/v1/analysis/submit'
const KEY_BYTES = 16

/** 128 random bits. `crypto.randomUUID` would need a page that was loaded over TLS. */
export function newIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(KEY_BYTES))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** See `MintlakeClient.submit`. */
export function submit(
  transport: Transport,
  submission: Submission,
  { idempotencyKey = newIdempotencyKey(), dryRun = false, ...call }: SubmitOptions,
): Promise<Receipt | DryRun> {
  const request = { method: 'POST', path: SUBMIT_PATH, body: submission, retry: 'any' } as const
  // A dry run stores nothing that a repetition could double.
  return dryRun
    ? transport.json<DryRun>({ ...request, query: { dryRun: 1 } }, call)
    : transport.json<Receipt>({ ...request, headers: { 'Idempotency-Key': idempotencyKey } }, call)
}
