// Holds answers to the API description: path, method, status, media type, headers and body. Bodies are checked against a form of
// the schemas that is closed to members that it does not name, so that none goes undocumented.
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { unpack } from 'msgpackr'
import { openApi } from '../../../src/http/docs/openapi.ts'
import { allRoutes } from '../../../src/http/routes/all-routes.ts'
import { API_VERSION } from '../../../src/http/routes/documents.ts'
import type { RouteParts } from '../../../src/http/routes/route-parts.ts'
import { checkLater } from './pending-checks.ts'

// biome-ignore lint/suspicious/noExplicitAny: a JSON document
type Json = any

export interface Exchange {
  method: string
  /** With the query. */
  path: string
  status: number
  headers: Headers
  body: Buffer
}

/** Headers that every answer may have: of the connection, of its encoding, and for pages of other origins. */
const GENERAL_HEADERS =
  /^(date|server|uwebsockets|connection|keep-alive|content-(length|type|encoding)|transfer-encoding|vary|allow|access-control-.*)$/
/** Lines of a body that are checked. */
const LINES_MAX = 200
const VALUES = new Set(['examples', 'example', 'default', 'enum', 'const', 'required'])

/** The description as the running server gives it, made without one. */
export const apiDocument = (): Json =>
  JSON.parse(JSON.stringify(openApi(allRoutes({} as RouteParts), API_VERSION)))

/** Every object schema without further members. */
function closed(node: Json): Json {
  if (Array.isArray(node)) return node.map(closed)
  if (typeof node !== 'object' || node === null) return node
  const copy = Object.fromEntries(
    Object.entries(node).map(([key, value]) => [key, VALUES.has(key) ? value : closed(value)]),
  )
  const isOpen = copy.type === 'object' && copy.properties && copy.additionalProperties === undefined
  return isOpen ? { ...copy, additionalProperties: false } : copy
}

/** The description where nobody asks for `fields`: rows have all that they have by themselves. */
function withoutChosen(document: Json): Json {
  const { schemas } = document.components
  const chosen = Object.keys(schemas).filter((name) => name.startsWith('Chosen'))
  const never = Object.fromEntries(chosen.map((name) => [name, { not: {} }]))
  return { ...document, components: { ...document.components, schemas: { ...schemas, ...never } } }
}

const escaped = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')
const pointer = (...names: string[]): string => `#/${names.map(escaped).join('/')}`

export class Conformance {
  readonly #document: Json
  /** What it compiles runs a few times: to optimise it takes longer than that. The form of the description has a test of its own. */
  readonly #ajv = new Ajv2020({
    ...{ strict: false, validateFormats: false, allErrors: true },
    ...{ validateSchema: false, code: { optimize: false } },
  })
  readonly #compiled = new Map<string, ValidateFunction>()
  /** Which form of the description counts. */
  #form: 'closed' | 'whole' = 'closed'

  constructor(document: Json) {
    this.#document = document
    this.#ajv.addSchema(closed(document), 'closed')
    this.#ajv.addSchema(closed(withoutChosen(document)), 'whole')
  }

  /** What of an answer the description does not allow; empty if it conforms. */
  faults(exchange: Exchange): string[] {
    this.#form = /[?&]fields=/.test(exchange.path) ? 'closed' : 'whole'
    const faults = this.#faults(exchange)
    this.#form = 'closed'
    return faults
  }

  #faults(exchange: Exchange): string[] {
    const { method, status, headers } = exchange
    const path = exchange.path.split('?')[0]
    const template = this.#templateOf(path)
    if (template === null)
      return status === 404 ? this.#problemFaults(exchange) : ['the path is not described']
    if (method === 'OPTIONS') return status === 204 && headers.has('allow') ? [] : ['OPTIONS must be 204']
    const name = method === 'HEAD' ? 'get' : method.toLowerCase()
    const operation = this.#document.paths[template][name]
    if (operation === undefined)
      return status === 405 && headers.has('allow')
        ? this.#problemFaults(exchange)
        : ['the method is not described']
    const response = operation.responses[status]
    if (response === undefined) return [`status ${status} is not described`]
    const at = ['paths', template, name, 'responses', `${status}`]
    return [
      ...this.#headerFaults(response.headers ?? {}, headers, at),
      ...(method === 'HEAD' ? [] : this.#contentFaults(response, exchange, at)),
    ]
  }

  #templateOf(path: string): string | null {
    if (path in this.#document.paths) return path
    const parts = path.split('/')
    const matches = (template: string) => {
      const names = template.split('/')
      return names.length === parts.length && names.every((name, at) => name[0] === '{' || name === parts[at])
    }
    return (
      Object.keys(this.#document.paths).find((template) => template.includes('{') && matches(template)) ??
      null
    )
  }

  #headerFaults(described: Json, headers: Headers, at: string[]): string[] {
    const faults: string[] = []
    const names = new Map(Object.keys(described).map((name) => [name.toLowerCase(), name]))
    for (const [name, value] of headers) {
      const known = names.get(name)
      if (known === undefined) {
        if (!GENERAL_HEADERS.test(name)) faults.push(`the header ${name} is not described`)
        continue
      }
      const { $ref } = described[known]
      const schema = $ref ? `${$ref}/schema` : pointer(...at, 'headers', known, 'schema')
      const sent = /^\d{1,16}$/.test(value) && this.#isWholeNumber(schema) ? Number(value) : value
      faults.push(...this.#schemaFaults(schema, sent, `the header ${name}`))
    }
    for (const [name, known] of names) {
      const header = described[known].$ref ? this.#resolve(described[known].$ref) : described[known]
      if (header.required && !headers.has(name)) faults.push(`the header ${name} is missing`)
    }
    return faults
  }

  #isWholeNumber(schema: string): boolean {
    return this.#resolve(schema).type === 'integer'
  }

  #resolve(reference: string): Json {
    return reference
      .slice(2)
      .split('/')
      .reduce((node, name) => node[name.replaceAll('~1', '/').replaceAll('~0', '~')], this.#document)
  }

  #contentFaults(
    { content, 'x-codes': codes }: Json,
    { headers, body, status }: Exchange,
    at: string[],
  ): string[] {
    if (content === undefined) return body.length === 0 ? [] : ['no body is described']
    const type = (headers.get('content-type') ?? '').split(';')[0]
    const media = content[type]
    if (media === undefined) return [`the media type "${type}" is not described`]
    if (media.schema.contentSchema) return this.#lineFaults(media.schema.contentSchema.$ref, body)
    if (!type.endsWith('json') && !type.endsWith('msgpack')) return []
    const value = type.endsWith('json') ? JSON.parse(body.toString()) : unpack(body)
    const faults = this.#schemaFaults(
      pointer(...at, 'content', type, 'schema'),
      value,
      `the body of ${status}`,
    )
    if (codes !== undefined && !codes.includes(value.code))
      faults.push(`the code ${value.code} is not described`)
    return faults
  }

  /** The first lines of a body. */
  #lineFaults(reference: string, body: Buffer): string[] {
    const lines = body
      .toString()
      .split('\n')
      .filter((line) => line !== '')
    return lines.slice(0, LINES_MAX).flatMap((line) => this.valueFaults(reference, JSON.parse(line)))
  }

  /** @param reference to a schema of the description, such as `#/components/schemas/StreamLine`. */
  valueFaults(reference: string, value: unknown): string[] {
    return this.#schemaFaults(reference, value, reference)
  }

  #problemFaults({ headers, body, method }: Exchange): string[] {
    const faults = headers.has('x-request-id') ? [] : ['the header x-request-id is missing']
    if (method === 'HEAD') return faults
    if (headers.get('content-type') !== 'application/problem+json')
      return [...faults, 'an error is a problem']
    return [...faults, ...this.valueFaults('#/components/schemas/Problem', JSON.parse(body.toString()))]
  }

  #schemaFaults(reference: string, value: unknown, what: string): string[] {
    const key = `${this.#form}${reference}`
    const validate = this.#compiled.get(key) ?? this.#ajv.compile({ $ref: encodeURI(key) })
    this.#compiled.set(key, validate)
    if (validate(value)) return []
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${what}: ${instancePath} ${message} ${JSON.stringify(params)}`,
    )
  }
}

let shared: Conformance | null = null
const conformance = (): Conformance => {
  shared ??= new Conformance(apiDocument())
  return shared
}

/** Fails the test unless the answer is as the API description says. */
export function checkConformance(exchange: Exchange): void {
  const { method, path, status, body } = exchange
  checkLater(body.length, () =>
    expectNone(
      conformance().faults(exchange),
      `${method} ${path} answered ${status}: ${body.toString().slice(0, 400)}`,
    ),
  )
}

/** Fails the test unless a line or message of a stream is as the API description says. */
export function checkStreamed(component: 'StreamLine' | 'StreamMessage', text: string): void {
  checkLater(text.length, () =>
    expectNone(
      conformance().valueFaults(`#/components/schemas/${component}`, JSON.parse(text)),
      text.slice(0, 400),
    ),
  )
}

function expectNone(faults: readonly string[], what: string): void {
  if (faults.length > 0)
    throw new Error(`not as /openapi.json says:\n${faults.slice(0, 12).join('\n')}\n${what}`)
}
