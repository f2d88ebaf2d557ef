// Values that name hosts and networks.
import { z } from 'zod'
import { isNetwork } from '../http/request/addresses.ts'
import { wordList } from '../lib/settings/setting.ts'

/** A host name or address. An IPv6 address may stand in brackets, as in a URL. */
export const host = z
  .string()
  .min(1, 'must be a host name or an address')
  .transform((text) => text.replace(/^\[(.*)\]$/, '$1'))

export const networkList = wordList.refine(
  (words) => words.every(isNetwork),
  'every word must be an address, or address/bits',
)

/** A host as it stands in an address, with a port or without. Nothing else: it becomes part of a header. */
const HOST_NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*(:\d{1,5})?$/i
const HOST_CHARACTERS_MAX = 253
const HOSTS_MAX = 32

/** Names of hosts, as `URL.host` has them. */
export const hostList = wordList
  .refine(
    (words) =>
      words.every(
        (word) =>
          word.length <= HOST_CHARACTERS_MAX && HOST_NAME.test(word) && URL.canParse(`https://${word}`),
      ),
    'every word must be the name of a host, such as images.example',
  )
  .refine((words) => words.length <= HOSTS_MAX, `there may be ${HOSTS_MAX} hosts`)
  .transform((words) => words.map((word) => new URL(`https://${word}`).host))
