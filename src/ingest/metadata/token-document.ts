// The document that a token's `uri` names: its texts, picture and links. Anybody may have written it.
import { isRecord } from '../../lib/record.ts'
import { parseJson } from '../../lib/text/json-text.ts'
import { truncateText } from '../../lib/text/truncate-text.ts'
import { DESCRIPTION_CHARS_MAX, URI_CHARS_MAX } from '../../schema/bounds.ts'
import type { PatchFields } from '../../schema/datapoint.ts'

/** What names a document of IPFS, and its path. */
const CONTENT_ID = /^[a-z0-9]{32,128}$/i

/** Where a document can be fetched, or a picture be shown; null: nowhere. @param gateway of IPFS; '': there is none */
export function fetchableAddress(text: string, gateway: string): string | null {
  const url = URL.parse(text.trim())
  if (url === null) return null
  if (url.protocol === 'https:') return url.href
  if (url.protocol !== 'ipfs:' || gateway === '') return null
  // ipfs://CID/path, ipfs://ipfs/CID/path and ipfs:CID are all in use. A URL would fold the case of its host.
  const [id = '', ...path] = text
    .trim()
    .replace(/^ipfs:(\/\/)?(ipfs\/)?/i, '')
    .split('/')
  if (!CONTENT_ID.test(id)) return null
  const base = gateway.endsWith('/') ? gateway : `${gateway}/`
  const root = new URL(`ipfs/${id}`, base).pathname
  const { href, pathname } = new URL(`ipfs/${[id, ...path].join('/')}`, base)
  // A path may lead upwards, to whatever else the gateway's server has.
  return pathname === root || pathname.startsWith(`${root}/`) ? href : null
}

type Fields = Record<string, unknown>

/** The first of these members that is a text with something in it. */
function firstText(parts: readonly Fields[], names: readonly string[]): string | undefined {
  for (const name of names)
    for (const part of parts) {
      const value = Object.hasOwn(part, name) ? part[name] : undefined
      const text = typeof value === 'string' ? value.trim() : ''
      if (text !== '') return text
    }
  return undefined
}

/** An address of the web, as it is followed: without line feeds and the like. Nothing else is followed or shown. */
function webAddress(text: string | undefined): string | undefined {
  const url = text === undefined ? null : URL.parse(text.trim())
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url.href : undefined
}

/** An address or a name that is cut is another's: what is too long is left out. */
const bounded = (text: string | undefined): string | undefined =>
  text === undefined || text.length > URI_CHARS_MAX ? undefined : truncateText(text, URI_CHARS_MAX)

/** An address of the web, or a name as people write it: no address of another kind. */
const addressOrName = (text: string | undefined): string | undefined =>
  text === undefined || URL.parse(text.trim()) === null ? text : webAddress(text)

/** What a document says of a token, without what it does not say; null: it is none. @param gateway for pictures in IPFS */
export function readTokenDocument(text: string, gateway: string): PatchFields | null {
  const document = parseJson(text.replace(/^\uFEFF/, ''))
  if (!isRecord(document)) return null
  const { extensions } = document
  const parts = isRecord(extensions) ? [document, extensions] : [document]
  const textOf = (...names: string[]) => firstText(parts, names)
  const description = textOf('description')
  const image = textOf('image', 'image_uri', 'imageUri')
  const fields: PatchFields = {
    description: description && truncateText(description, DESCRIPTION_CHARS_MAX),
    imageUri: bounded(image && (fetchableAddress(image, gateway) ?? webAddress(image))),
    website: bounded(webAddress(textOf('website', 'external_url'))),
    twitter: bounded(addressOrName(textOf('twitter', 'x'))),
    telegram: bounded(addressOrName(textOf('telegram'))),
  }
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}
