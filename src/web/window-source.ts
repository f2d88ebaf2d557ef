// What follows a part of a sorted, filtered list, and what it is told. Apart from the connection, so that it needs no browser.
import type { StreamRequest } from '../schema/api/stream.ts'
import type { ListedRow } from './listed-fields.ts'

type Subscribe = Extract<StreamRequest, { op: 'subscribe' }>
type WithoutReply<Message> = Message extends Subscribe ? Omit<Message, 'op' | 'id' | 'since'> : never
/** What can be subscribed. */
export type AnyTopic = WithoutReply<Subscribe>
/** A part of a sorted, filtered list. */
export type WindowQuery = Omit<Extract<AnyTopic, { topic: 'window' }>, 'topic' | 'fields'>

/** Rows of a window that have changed; the last message of what belongs together tells where it is. */
export interface WindowMessage {
  rows: readonly ListedRow[]
  offset?: number | undefined
  total?: number | undefined
  /** The mints of the window from top to bottom, where they are others than before. */
  order?: readonly string[] | undefined
}

export interface WindowListener {
  onWindow(message: WindowMessage): void
  /** The window is about to be sent as a whole. */
  onOpen(): void
  onError(message: string, code: string): void
}

export interface WindowSource {
  /** Follows a window of a list. @returns a function that ends it. */
  subscribeWindow(query: WindowQuery, listener: WindowListener): () => void
}
