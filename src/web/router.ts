// The view is in the address, behind `#`: deep links, back and forward work, and the server has one page.

export interface Route {
  view: string
  /** What follows the view's name: a mint, an agent. */
  id: string
  query: URLSearchParams
}

/** `#/token/<mint>?tf=5m` is the view `token` of that mint. */
export function parseRoute(hash: string): Route {
  const [, path = '', query] = /^#?\/?([^?]*)\??(.*)$/s.exec(hash) ?? []
  const [view = '', id = ''] = path.split('/', 2)
  return { view: view || 'market', id: decodeId(id), query: new URLSearchParams(query) }
}

/** The address of a view. Empty values of the query are left out. */
export function routeHref(view: string, id = '', query: Record<string, string> = {}): string {
  const parameters = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ''))
  const suffix = parameters.size === 0 ? '' : `?${parameters}`
  return `#/${view}${id === '' ? '' : `/${encodeURIComponent(id)}`}${suffix}`
}

/** Writes the view's state into the address, and its route, without a step of history. */
export function replaceQuery(route: Route, query: Record<string, string>): void {
  const href = routeHref(route.view, route.id, query)
  history.replaceState(null, '', href)
  route.query = parseRoute(href).query
}

function decodeId(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}
