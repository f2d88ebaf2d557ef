import { nearestWord } from '../lib/text/nearest-word.ts'
import { ServiceError } from '../schema/errors.ts'
import type { HttpAnswer, Method } from './context.ts'
import type { Route } from './route.ts'

/** Method names as the HTTP engine writes them. HEAD runs the route of GET. */
const METHODS: Readonly<Record<string, Method | 'OPTIONS' | undefined>> = {
  get: 'GET',
  head: 'GET',
  post: 'POST',
  delete: 'DELETE',
  options: 'OPTIONS',
}
const ID = '{id}'
const API_PREFIX = '/api/v1/'
const EXTENSION = /\.\w+$/

/** A path as it is compared with others: letter case, repeated slashes, one at the end and the prefix of the API say nothing. */
function shortPath(path: string): string {
  const plain = path
    .toLowerCase()
    .replace(/\/{2,}/g, '/')
    .replace(/(?<=.)\/$/, '')
  return plain.startsWith(API_PREFIX) ? plain.slice(API_PREFIX.length - 1) : plain
}

/** The last part of a path, which is often taken for all of it: /leaderboard of /agents/leaderboard. */
const lastPart = (path: string): string => path.slice(path.lastIndexOf('/')).toLowerCase()

/** The routes of one path, by method. */
type RoutesByMethod = Map<Method, Route>

/** A route, or the answer to OPTIONS, which needs none. */
export type RouteMatch = { route: Route; id: string } | { preflight: HttpAnswer }

/** Finds the route of a request. */
export class RouteTable {
  readonly #byPath = new Map<string, RoutesByMethod>()
  /** Routes that end with `{id}`, by what stands before it. */
  readonly #byPrefix = new Map<string, RoutesByMethod>()

  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      const isPrefix = route.path.endsWith(ID)
      const table = isPrefix ? this.#byPrefix : this.#byPath
      const path = isPrefix ? route.path.slice(0, -ID.length) : route.path
      const methods: RoutesByMethod = table.get(path) ?? new Map()
      methods.set(route.method, route)
      table.set(path, methods)
    }
  }

  /** The literal paths that have a route for GET. */
  get getPaths(): string[] {
    return [...this.#byPath].filter(([, methods]) => methods.has('GET')).map(([path]) => path)
  }

  /** Says which path was probably meant, with the prefix of the API or without. */
  #notFound(path: string): ServiceError {
    const sent = shortPath(path)
    const forms = [...this.#byPath.keys(), ...[...this.#byPrefix.keys()].map((prefix) => `${prefix}${ID}`)]
    const meant =
      nearestWord(
        sent,
        forms.flatMap((form) =>
          [shortPath(form), shortPath(form).replace(EXTENSION, '')].map((short) => [form, short] as const),
        ),
      ) ??
      nearestWord(
        sent,
        forms.map((form) => [form, lastPart(form)] as const),
      )
    const nothing = `There is nothing at ${path}`
    return meant === null
      ? new ServiceError('not_found', `${nothing}: /llms.txt lists what there is.`)
      : new ServiceError('not_found', `${nothing}: did you mean ${meant}?`, { suggestion: meant })
  }

  /**
   * @param methodName in lower case.
   * @throws ServiceError `not_found`, `method_not_allowed`.
   */
  match(methodName: string, path: string): RouteMatch {
    const literal = this.#byPath.get(path)
    if (literal !== undefined) return matchMethod(literal, methodName, path, '')
    const idAt = path.lastIndexOf('/') + 1
    const methods = this.#byPrefix.get(path.slice(0, idAt))
    if (methods === undefined || idAt === path.length) throw this.#notFound(path)
    return matchMethod(methods, methodName, path, path.slice(idAt))
  }
}

function matchMethod(methods: RoutesByMethod, methodName: string, path: string, id: string): RouteMatch {
  const method = METHODS[methodName]
  if (method === 'OPTIONS') return { preflight: preflight(allowedMethods(methods)) }
  const route = method && methods.get(method)
  if (route === undefined) throw methodNotAllowed(methodName, path, allowedMethods(methods))
  return { route, id }
}

function allowedMethods(methods: RoutesByMethod): string[] {
  return [...methods.keys()]
    .flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    .concat('OPTIONS')
}

const methodNotAllowed = (methodName: string, path: string, allowed: readonly string[]) =>
  new ServiceError(
    'method_not_allowed',
    `${methodName.toUpperCase()} is not allowed at ${path}.`,
    { allowed },
    { Allow: allowed.join(', ') },
  )

/** The answer to OPTIONS, as browsers ask before a request to another origin. */
const preflight = (allowed: readonly string[]): HttpAnswer => ({
  status: 204,
  body: {},
  headers: {
    Allow: allowed.join(', '),
    'Access-Control-Allow-Methods': allowed.join(', '),
    'Access-Control-Allow-Headers':
      'Authorization, X-API-Key, Content-Type, Accept, If-None-Match, If-Range, Range, Cache-Control, Idempotency-Key, X-Request-Id',
    'Access-Control-Max-Age': '86400',
  },
})
