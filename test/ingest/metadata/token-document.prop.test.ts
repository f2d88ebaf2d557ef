// What a token's document says, whatever it is.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { fetchableAddress, readTokenDocument } from '../../../src/ingest/metadata/token-document.ts'
import { patchFieldsSchema } from '../../../src/schema/datapoint.ts'

const GATEWAY = 'https://gateway.example'
const CID = 'bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy'

it('fills description, picture and links', () => {
  const document = {
    ...{
      name: 'N',
      symbol: 'S',
      description: ' A token ',
      image: `ipfs://${CID}`,
      website: 'https://n.example',
    },
    ...{ twitter: 'https://x.com/n', telegram: '@n' },
  }
  expect(readTokenDocument(JSON.stringify(document), GATEWAY)).toEqual({
    ...{ description: 'A token', imageUri: `${GATEWAY}/ipfs/${CID}`, website: 'https://n.example/' },
    ...{ twitter: 'https://x.com/n', telegram: '@n' },
  })
  const metaplex = {
    external_url: 'https://n.example',
    extensions: { twitter: 'n', telegram: 'https://t.me/n' },
  }
  expect(readTokenDocument(`\uFEFF${JSON.stringify(metaplex)}`, '')).toEqual({
    ...{ website: 'https://n.example/', twitter: 'n', telegram: 'https://t.me/n' },
  })
})

it('of any kind is within the bounds of a patch, and holds no address but of the web', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 3_000 }),
    fc.constantFrom(
      'javascript:alert(1)',
      ' data:text/html,x',
      'file:///etc/passwd',
      'http://a',
      'ipfs://x',
      'JAVASCRIPT:1',
    ),
  )
  const value = fc.oneof(text, fc.jsonValue())
  const names = [
    'description',
    'image',
    'website',
    'twitter',
    'telegram',
    'external_url',
    'x',
    '__proto__',
    'extensions',
  ]
  const document = fc.dictionary(
    fc.constantFrom(...names),
    fc.oneof(value, fc.dictionary(fc.constantFrom(...names), value)),
  )
  fc.assert(
    fc.property(fc.oneof(document, fc.jsonValue()), (each) => {
      const fields = readTokenDocument(JSON.stringify(each), GATEWAY)
      if (fields === null) return
      expect(patchFieldsSchema.parse(fields)).toEqual(fields)
      for (const address of [fields.website, fields.imageUri, fields.twitter, fields.telegram]) {
        const protocol = URL.parse(address ?? '')?.protocol
        expect([undefined, 'https:', 'http:']).toContain(protocol)
      }
    }),
  )
  expect(readTokenDocument('['.repeat(60_000), GATEWAY)).toBeNull()
  expect(readTokenDocument('', GATEWAY)).toBeNull()
})

it.each([
  ['an address that grows as it is written', { image: `https://x.example/${'中'.repeat(200)}` }, {}],
  ['an address that would be cut', { website: `https://x.example/${'a'.repeat(600)}` }, {}],
  ['a picture that the gateway makes longer', { image: `ipfs://${CID}/${'a'.repeat(440)}` }, {}],
  ['a name that is too long', { twitter: 'a'.repeat(513) }, {}],
  ['a picture outside of IPFS', { image: `ipfs://${CID}/../../admin` }, {}],
  ['line feeds', { website: 'https://a\nb.example/\tc d' }, { website: 'https://ab.example/c%20d' }],
  [
    'what is just within its bound',
    { website: `https://x.example/${'a'.repeat(494)}` },
    { website: `https://x.example/${'a'.repeat(494)}` },
  ],
])('%s is left out, or is as it is followed', (_, document, fields) => {
  expect(readTokenDocument(JSON.stringify(document), GATEWAY)).toEqual(fields)
})

it.each([
  ['https://a.example/x', 'https://a.example/x'],
  [`ipfs://${CID}`, `${GATEWAY}/ipfs/${CID}`],
  [`ipfs://ipfs/${CID}/1.json`, `${GATEWAY}/ipfs/${CID}/1.json`],
  [`ipfs:${CID}`, `${GATEWAY}/ipfs/${CID}`],
  [
    'ipfs://QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG',
    `${GATEWAY}/ipfs/QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG`,
  ],
  ['ipfs://../../admin', null],
  [`ipfs://${CID}/a/../b`, `${GATEWAY}/ipfs/${CID}/b`],
  [`ipfs://${CID}/../../admin`, null],
  [`ipfs://${CID}/..`, null],
  [`ipfs://${CID}/%2e%2e/${CID}x/1`, null],
  [`ipfs://${CID}/..\\..\\admin`, null],
  ['http://a.example/x', null],
  ['file:///etc/passwd', null],
  ['', null],
])('%s is fetched at %s', (uri, address) => {
  expect(fetchableAddress(uri, GATEWAY)).toBe(address)
  if (uri.startsWith('ipfs')) expect(fetchableAddress(uri, '')).toBeNull()
})
