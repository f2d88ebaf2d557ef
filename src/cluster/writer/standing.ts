// Decides where a writer goes on, from where the stream ends.
import type { StreamEnd } from './stream-state.ts'

/** The stream is another writer's: nothing may be published or acknowledged here. The sentence is for operators. */
export class RefusedError extends Error {}

/** That writer publishes at present: this process has to stop. */
export class FencedError extends RefusedError {}

export interface Standing {
  folderId: string
  runId: string
  /** Number of the `run` event of this run. */
  runEventNo: number
  /** Of the newest message that this process knows to have published; null: none yet. */
  ackedSequence: number | null
}

/** What another run has published last. */
export interface LastPublished {
  eventNo: number
  runId: string
  runEventNo: number
  lostEvents: number
  /** Whether that run has said that it has ended. */
  ended: boolean
}

/**
 * `continue`: everything up to the event is on the bus; `anew`: the stream is empty; `look_again`: another run published last, which
 * may still be alive unless it has ended; `refuse`: so did one of another data folder.
 */
export type NextStep =
  | { step: 'continue'; afterEventNo: number }
  | { step: 'anew' }
  | ({ step: 'look_again' } & LastPublished)
  | { step: 'refuse'; ended: boolean }

/** @throws FencedError */
export function nextStep({ message, lastSequence }: StreamEnd, own: Standing): NextStep {
  if (message === null) return { step: 'anew' }
  if (message.folderId !== own.folderId) return { step: 'refuse', ended: message.ended }
  const isWhole = message.part === message.parts - 1
  const afterEventNo = isWhole ? message.lastEventNo : message.firstEventNo - 1
  if (message.runId === own.runId) return { step: 'continue', afterEventNo }
  const { ackedSequence } = own
  const isLater = ackedSequence !== null && lastSequence >= ackedSequence
  if (isLater || (ackedSequence !== null && message.runEventNo > own.runEventNo)) throw fenced()
  const { runId, runEventNo, lostEvents, ended } = message
  return { step: 'look_again', eventNo: afterEventNo, runId, runEventNo, lostEvents, ended }
}

export const fenced = (): FencedError =>
  new FencedError('another writer publishes on the bus in place of this one, which therefore stops')

/** As `fenced`, by a writer that a wrong `--data-dir` or `--bus-name` has brought together with this one. */
export const fencedByStranger = (): FencedError =>
  new FencedError(
    'a writer with another data folder publishes on the bus: choose another --bus-name, or give its --data-dir once it has ended',
  )

/** Nobody publishes there any more, or at present. */
export const refused = (): RefusedError =>
  new RefusedError(
    'the stream on the bus belongs to another data folder: give that as --data-dir, choose another --bus-name, or, if that folder ' +
      'is not used any more, empty the stream with "nats stream purge"',
  )
