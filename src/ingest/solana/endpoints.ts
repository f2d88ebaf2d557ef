// Addresses of RPC endpoints. They hold keys, so a text that names one shows its host alone.

/** An endpoint's address for calls or for subscriptions. */
export interface Endpoint {
  url: string
  /** For logs, `/health` and errors. */
  host: string
}

const toEndpoint = (url: string): Endpoint => ({ url, host: new URL(url).host })

export const endpointsOf = (urls: readonly string[]): Endpoint[] => urls.map(toEndpoint)

/**
 * Where the subscriptions of an endpoint may be: at the same address, or, where it names a port, at the next one, as validators
 * have it.
 */
export function socketEndpointsOf(urls: readonly string[]): Endpoint[] {
  return urls.flatMap((text) => {
    const url = new URL(text)
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
    if (url.port === '' || Number(url.port) >= 65_535) return [toEndpoint(url.href)]
    const next = new URL(url.href)
    next.port = `${Number(url.port) + 1}`
    return [toEndpoint(url.href), toEndpoint(next.href)]
  })
}

/** A text without the addresses of endpoints, nor parts of them that may be keys. */
export function withoutAddresses(text: string, endpoints: readonly Endpoint[]): string {
  let masked = text
  for (const { url, host } of endpoints) {
    const { username, password, pathname, search, searchParams } = new URL(url)
    const secrets = [
      url,
      `${pathname}${search}`,
      search,
      username,
      password,
      pathname,
      ...pathname.split('/'),
    ]
    for (const [, value] of searchParams) secrets.push(value, encodeURIComponent(value))
    for (const part of secrets)
      if (part.length > 3) masked = masked.replaceAll(part, part === url ? host : '…')
  }
  return masked
}
