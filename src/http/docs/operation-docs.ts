// What a route tells of itself for the API description: names, parameters, bodies and answers, as schemas.
import type { z } from 'zod'
import type { ErrorCode } from '../../schema/errors.ts'

/** The groups of operations in the API description. */
export type Tag = 'market' | 'analysis' | 'agents' | 'lake' | 'feeds' | 'status' | 'admin' | 'documents'

/** One form of a body: the media type's schema. A media type without a schema is bytes. */
export type BodyDocs = Readonly<Record<string, z.ZodType | null>>

export interface AnswerDocs {
  description: string
  content?: BodyDocs
  /** Headers of this answer beside those that every answer has. */
  headers?: z.ZodObject
}

export interface OperationDocs {
  /** Unique; generated clients name the method so. */
  operationId: string
  tag: Tag
  /** Markdown: what the summary has no room for. */
  description?: string
  /** The query parameters that the route reads. Others are ignored, and the answer tells their names. */
  query?: z.ZodObject
  /** Request headers that change the answer, beside those of every route. */
  headers?: z.ZodObject
  body?: BodyDocs
  /** Answers by status; errors that every route may give are added. */
  answers: Readonly<Record<number, AnswerDocs>>
  /** Error codes that are this route's own. */
  errors?: readonly ErrorCode[]
}
