// Tells under which address a client reaches the server, for absolute links in documents.
import type { EngineResponse } from '../engine.ts'
import { peerAddress, type TrustedProxies } from './addresses.ts'

/** The length of a domain name, with a port. */
const HOST_CHARACTERS_MAX = 260
/** A name or an address, and a port: nothing that could end a link or begin markup. */
const HOST = /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/

/**
 * @param host the Host header.
 * @param forwardedProto X-Forwarded-Proto, which counts only if a trusted proxy has sent it.
 * @returns for example `https://market.example:8443`; empty if the Host header is not one that a link may hold, so that links
 *  become relative.
 */
export function requestOrigin(
  res: EngineResponse,
  host: string,
  forwardedProto: string,
  proxies: TrustedProxies,
): string {
  if (host.length > HOST_CHARACTERS_MAX || !HOST.test(host)) return ''
  const isHttps = forwardedProto.trim().toLowerCase() === 'https' && proxies.has(peerAddress(res))
  return `${isHttps ? 'https' : 'http'}://${host}`
}
