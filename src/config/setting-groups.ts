// The settings by what an operator wants to do, for --help: first those that matter first, then all others.
import type { SettingName, SettingPath } from './settings.ts'

interface HelpGroup {
  title: string
  settings: readonly SettingName[]
}

/** What --help lists. The others stand in SETTING_GROUPS, for --help all. */
export const FIRST_SETTINGS = [
  ...(['port', 'host', 'dataDir', 'feeds', 'feedKey', 'adminKey'] as const),
  ...(['readLimitAnonymous', 'readLimitKeyed', 'registration', 'logLevel'] as const),
] as const satisfies readonly SettingPath[]

export const SETTING_GROUPS: readonly HelpGroup[] = [
  {
    title: 'Serving',
    settings: ['trustedProxies', 'publicUrl', 'imageHosts', 'drainNoticeMs', 'pageAgeMs'],
  },
  {
    title: 'Limits of clients',
    settings: ['registerLimit', 'submitLimits', 'labelsDelayMs'],
  },
  { title: 'The market', settings: ['tokensMax', 'newHours', 'solPrice'] },
  { title: 'Simulator', settings: ['simulator'] },
  { title: 'Replay', settings: ['replay', 'replayMap'] },
  { title: 'The chain', settings: ['solana'] },
  {
    title: 'Other providers',
    settings: ['pumpportalKey', 'birdeyeKey', 'providers', 'metadataGateway'],
  },
  { title: 'Recording and restart', settings: ['record'] },
  { title: 'The lake', settings: ['store'] },
  { title: 'Several processes', settings: ['role', 'bus'] },
]
