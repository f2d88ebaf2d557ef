// The settings that a reader of a cluster uses. All others are of whoever takes events and judges submissions.
import type { Config, SettingPath } from './settings.ts'

/** Those that say how it answers have to be the same on every node: the documents of each state them. */
export const READER_SETTINGS = [
  ...(['role', 'bus.servers', 'bus.name', 'bus.login', 'bus.password'] as const),
  ...(['bus.nodeUrl', 'bus.reader'] as const),
  ...(['port', 'host', 'trustedProxies', 'publicUrl', 'imageHosts', 'drainNoticeMs'] as const),
  ...(['readLimitAnonymous', 'readLimitKeyed', 'pageAgeMs'] as const),
  // Which limits the writer holds to, for documents.
  ...(['registration', 'registerLimit', 'submitLimits'] as const),
  // Pushes are refused before they are passed on.
  'feedKey',
  'logLevel',
] as const satisfies readonly SettingPath[]

/** Of what is for the bus those of the stream are the writer's. */
export type ReaderConfig = Pick<Config, Extract<(typeof READER_SETTINGS)[number], keyof Config> | 'bus'>

const NAMES: ReadonlySet<string> = new Set(READER_SETTINGS)

export const isReaderSetting = (name: string): boolean => NAMES.has(name)
