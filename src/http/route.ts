// In: nothing, or a list of routes. Out: what a route is, and which one a path leads to. Never runs one.
import type { Context, HttpAnswer, Method } from './context.ts'

export interface Route {
  method: Method
  /** Literal, or with `{id}` as its last segment. */
  path: string
  /** `read`: open, counted, a key raises the limit. `agent`, `feed`, `admin`: that key is needed. `researcher`: the key of
   *  one, or the operator's. `open`: neither. */
  access: 'open' | 'read' | 'agent' | 'researcher' | 'feed' | 'admin'
  /** One line for the docs. */
  summary: string
  /** Largest body; 0 where none is read. */
  bodyBytesMax?: number
  /** How long a body may take to arrive. */
  bodyMsMax?: number
  /** Content types taken, for routes with a body. */
  bodyTypes?: readonly string[]
  /** Limits of its own, which the headers alone decide: called before any of the body is read; throws to refuse. */
  enter?(context: Context): void
  /** Of a route that writes: the paths whose answers it changes; any path unless said. None: how old an answer may be
   *  that is given again bounds how late its writes are read. */
  changes?: readonly string[]
  handle(context: Context): HttpAnswer | Promise<HttpAnswer>
}

/** True when an answer of this route tells of a change. */
export const isWrite = ({ method, access }: Route): boolean => method !== 'GET' && access !== 'read'

/** Routes by path, for one look-up a request. */
export class RouteTable {
  #literal = new Map<string, Map<Method, Route>>()
  #byPrefix = new Map<string, Map<Method, Route>>()

  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      const isPrefix = route.path.endsWith('{id}')
      const table = isPrefix ? this.#byPrefix : this.#literal
      const path = isPrefix ? route.path.slice(0, -'{id}'.length) : route.path
      const methods = table.get(path) ?? new Map<Method, Route>()
      methods.set(route.method, route)
      table.set(path, methods)
    }
  }

  /** Paths, literal ones, that have a route of that method. */
  literalPaths(method: Method): string[] {
    return [...this.#literal].filter(([, methods]) => methods.has(method)).map(([path]) => path)
  }

  find(path: string): { methods: Map<Method, Route>; id: string } | null {
    const literal = this.#literal.get(path)
    if (literal !== undefined) return { methods: literal, id: '' }
    const cut = path.lastIndexOf('/') + 1
    const methods = this.#byPrefix.get(path.slice(0, cut))
    return methods === undefined || cut === path.length ? null : { methods, id: path.slice(cut) }
  }
}

export function allowedMethods(methods: Map<Method, Route>): string[] {
  return [...methods.keys()]
    .flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    .concat('OPTIONS')
}
