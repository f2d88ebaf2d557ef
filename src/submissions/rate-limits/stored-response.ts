// The JSON of a remembered response, as the column `idempotency.body` holds it. Data folders of earlier versions hold the
// same format, so it must not change.
import { ERRORS, type ErrorCode } from '../../schema/errors.ts'
import type { TableWrite } from '../../schema/tables.ts'
import { type ErrorDetails, SubmissionError } from '../errors.ts'
import type { Quota, Receipt } from '../types.ts'
import type { IdempotentRequest } from './idempotency.ts'

type StoredResponse =
  | { body: Receipt & { ok: true } }
  | { code: ErrorCode; sentence: string; extra: ErrorDetails }

const CREATED_STATUS = 201

export function encodeResponse(result: Receipt | SubmissionError): string {
  const stored: StoredResponse =
    result instanceof SubmissionError
      ? { code: result.code, sentence: result.message, extra: result.details }
      : { body: { ok: true, ...result } }
  return JSON.stringify(stored)
}

/** The receipt, or the error to throw again with `quota`. @param nowMs by the wall clock */
export function decodeResponse(json: string, quota: Quota | null, nowMs: number): Receipt | SubmissionError {
  const stored: StoredResponse = JSON.parse(json)
  if ('code' in stored) {
    const { code, sentence, extra } = stored
    const leftMs = (extra.bannedUntil ?? 0) - nowMs
    return new SubmissionError(code, sentence, extra, {
      quota,
      isReplay: true,
      retryAfterMs: leftMs > 0 ? leftMs : null,
    })
  }
  const { ok: _, ...receipt } = stored.body
  return receipt
}

/** The row that makes a response survive a restart. */
export function writeResponse(
  agentId: string,
  { key, bodyHash }: IdempotentRequest,
  result: Receipt | SubmissionError,
  json: string,
  atMs: number,
): TableWrite<'idempotency'> {
  const status = result instanceof SubmissionError ? ERRORS[result.code].status : CREATED_STATUS
  const row = { agent_id: agentId, idempotency_key: key, body_hash: bodyHash, status, body: json, at: atMs }
  return { table: 'idempotency', row }
}
