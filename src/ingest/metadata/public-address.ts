// Which addresses of the Internet a server may be sent to by strangers: none of its own network, whatever way it is written.
import ipaddr from 'ipaddr.js'

/** Of a cloud's own services, though it looks like any other. */
const METADATA_SERVICES = ['168.63.129.16']
/** What is given out to networks at present; no mapped, translated or documentation address is in it, but for these. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3')
const NOT_GLOBAL = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'].map((text) =>
  ipaddr.IPv6.parseCIDR(text),
)

/** A host of an address as it is resolved: an IPv6 address stands in brackets. */
export const bareHost = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1')

/** Whether a host is a public address, or a name that may lead to one: one without a dot is of the machine or of its network. */
export function mayBePublicHost(url: URL): boolean {
  const host = bareHost(url)
  return ipaddr.isValid(host) ? isPublicAddress(host) : host.includes('.')
}

/** Whether an address is one of the public Internet: not private, local, mapped, translated, shared, multicast or of a metadata service. */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false
  const address = ipaddr.parse(text)
  if (address.range() !== 'unicast') return false
  if (address instanceof ipaddr.IPv6)
    return address.match(GLOBAL_UNICAST) && !NOT_GLOBAL.some((network) => address.match(network))
  return !METADATA_SERVICES.includes(address.toString())
}
