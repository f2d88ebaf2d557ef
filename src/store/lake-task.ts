// What passes between the server and the process of a job on the lake, besides what only exports or only queries have.
import type { Failure } from '../lib/process/job.ts'
import { StoreError, type StoreErrorCode } from './errors.ts'

/** A job, as its process receives it. */
export interface LakeTask {
  dataDir: string
  /** A folder that only this job uses. The server removes it. */
  folder: string
  /** Disk space that the job leaves to the store, MB. */
  diskReserveMb: number
}

/** Why a job failed. */
export interface LakeFailure extends Failure {
  code: StoreErrorCode
  /** The invalid field of the request; see StoreError. */
  field: string | null
  /** For the log, where the lake could not be read; null: it could. */
  detail: string | null
}

/** What the process says of an error. */
export function toLakeFailure(error: unknown): LakeFailure {
  if (error instanceof StoreError) return { ...failure(error.code, error.message), field: error.field }
  return { ...failure('unavailable', 'the lake cannot be read just now'), detail: String(error) }
}

export const failure = (code: StoreErrorCode, message: string): LakeFailure => ({
  code,
  message,
  field: null,
  detail: null,
})
