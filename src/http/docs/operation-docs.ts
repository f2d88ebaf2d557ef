// What a route tells of itself for the API description: names, parameters, bodies and answers, as schemas.
import { z } from 'zod'
import type { ErrorCode } from '../../schema/errors.ts'

/** The groups of operations in the API description. */
export const TAGS = {
  market: 'Tokens, their snapshots and bars, and streams of their changes',
  analysis: 'Submissions, what became of them, and XP',
  agents: 'Keys, profiles and the leaderboard',
  lake: 'The dataset, for researchers',
  feeds: 'Pushing market events',
  status: 'State of the server, for operators and load balancers',
  admin: 'What the operator may do',
  documents: 'Documents for people, programs and language models',
} as const
export type Tag = keyof typeof TAGS

/** One form of a body: the media type's schema. A media type without a schema is bytes. */
export type BodyDocs = Readonly<Record<string, z.ZodType | null>>

export interface AnswerDocs {
  description: string
  content?: BodyDocs
  /** Headers of this answer beside those that every answer has. */
  headers?: z.ZodObject
}

export const json = (schema: z.ZodType): BodyDocs => ({ 'application/json': schema })
export const textType = (type: string): BodyDocs => ({ [type]: z.string() })
/** An answer of JSON. */
export const jsonAnswer = (description: string, schema: z.ZodType): AnswerDocs => ({
  description,
  content: json(schema),
})

/** Of a document or a file, for people and programs. @param headers beside those that every answer has */
export const documentDocs = (
  operationId: string,
  description: string,
  content: BodyDocs,
  headers?: z.ZodObject,
): OperationDocs => ({
  operationId,
  tag: 'documents',
  answers: { 200: { description, content, ...(headers && { headers }) } },
})

export interface OperationDocs {
  /** Unique; generated clients name the method so. */
  operationId: string
  tag: Tag
  /** Markdown: what the summary has no room for. */
  description?: string
  /** The query parameters that the route reads. Others are ignored, and the answer tells their names. */
  query?: z.ZodObject
  /** The parameters of the path; `id` as a text unless told. */
  params?: z.ZodObject
  /** Request headers that change the answer, beside those of every route. */
  headers?: z.ZodObject
  body?: BodyDocs
  /** Answers by status; 304 and the errors that every such route may give are added. */
  answers: Readonly<Record<number, AnswerDocs>>
  /** Error codes that are this route's own. */
  errors?: readonly ErrorCode[]
  /** Headers that errors of this route may have, beside those of every error. */
  errorHeaders?: z.ZodObject
  /** A read whose answers have no ETag: the state of the moment, or a stream. */
  unversioned?: true
  /** Counts against a limit of its own, which its headers describe. Counted reads need not say so. */
  rateLimited?: true
  /** Members of the operation that OpenAPI has no word for. */
  extensions?: Readonly<Record<`x-${string}`, unknown>>
}

/** Of a route with one answer, which is JSON. @param description of the answer, which may have `answerHeaders` */
export const jsonDocs = (
  operationId: string,
  tag: Tag,
  description: string,
  schema: z.ZodType,
  {
    status = 200,
    answerHeaders,
    ...more
  }: Partial<Omit<OperationDocs, 'answers'>> & { status?: number; answerHeaders?: z.ZodObject } = {},
): OperationDocs => ({
  operationId,
  tag,
  answers: {
    [status]: { ...jsonAnswer(description, schema), ...(answerHeaders && { headers: answerHeaders }) },
  },
  ...more,
})
