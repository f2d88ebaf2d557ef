// Addresses of RPC endpoints. They hold keys, so a text that names one shows its host alone.

/** An endpoint's address for calls or for subscriptions. */
export interface Endpoint {
  url: string
  /** Of a subscription: where calls to the same node go. */
  callsUrl?: string
  /** For logs, `/health` and errors. */
  host: string
}

const toEndpoint = (url: string): Endpoint => ({ url, host: new URL(url).host })

export const endpointsOf = (urls: readonly string[]): Endpoint[] => urls.map(toEndpoint)

/** Addresses of subscriptions. Providers answer calls at the same one. */
export const socketsOf = (urls: readonly string[]): Endpoint[] =>
  urls.map((url) => ({ ...toEndpoint(url), callsUrl: url.replace(/^ws/, 'http') }))

/**
 * Where the subscriptions of an endpoint may be: at the same address, or, where it names a port, at the next one, as validators
 * have it.
 */
export function socketEndpointsOf(urls: readonly string[]): Endpoint[] {
  return urls.flatMap((text) => {
    const url = new URL(text)
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
    const same = { ...toEndpoint(url.href), callsUrl: text }
    if (url.port === '' || Number(url.port) >= 65_535) return [same]
    url.port = `${Number(url.port) + 1}`
    return [same, { ...toEndpoint(url.href), callsUrl: text }]
  })
}

/** As a server may repeat it; unchanged where it is no percent-encoding. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** A text without the addresses of endpoints, nor parts of them that may be keys. */
export function withoutAddresses(text: string, endpoints: readonly Endpoint[]): string {
  let masked = text
  for (const { url, host } of endpoints) {
    const { username, password, pathname, search, searchParams } = new URL(url)
    const parts = [`${pathname}${search}`, search, search.slice(1), username, password, pathname]
    parts.push(...pathname.split('/'), ...[...searchParams].flat())
    const forms = parts.flatMap((part) => [part, encodeURIComponent(part), decoded(part)])
    masked = masked.replaceAll(url, host)
    for (const part of forms) if (part.length > 3) masked = masked.replaceAll(part, '…')
  }
  return masked
}
