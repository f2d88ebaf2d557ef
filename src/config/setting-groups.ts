// The settings by what an operator wants to do, for --help: first those that matter first, then all others.
import type { Config } from './settings.ts'

export interface SettingGroup {
  title: string
  settings: readonly (keyof Config)[]
}

/** What --help lists. The others stand in SETTING_GROUPS, for --help all. */
export const FIRST_SETTINGS = [
  ...(['port', 'host', 'dataDir', 'feeds', 'feedKey', 'adminKey'] as const),
  ...(['readLimitAnonymous', 'readLimitKeyed', 'registration', 'logLevel'] as const),
] as const satisfies readonly (keyof Config)[]

export const SETTING_GROUPS: readonly SettingGroup[] = [
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
  {
    title: 'Replay',
    settings: [
      ...(['replayFile', 'replayMap', 'replayAs', 'replayLake', 'replaySpan', 'replaySpeed'] as const),
    ],
  },
  {
    title: 'The chain',
    settings: [
      ...(['solanaRpc', 'solanaWs', 'solanaCommitment', 'solanaRps', 'solanaPools', 'solanaTape'] as const),
    ],
  },
  {
    title: 'Other providers',
    settings: ['pumpportalKey', 'birdeyeKey', 'providers', 'metadataGateway'],
  },
  {
    title: 'Recording and restart',
    settings: ['record', 'mixed', 'checkpointIntervalMs', 'diskReserveMb'],
  },
  {
    title: 'The lake',
    settings: ['lakeFlushMs', 'lakeTidy', 'retain'],
  },
  {
    title: 'Several processes',
    settings: [
      ...(['role', 'bus', 'busName', 'busLogin', 'busPassword', 'busTls', 'busStream'] as const),
      ...(['nodeUrl', 'reader'] as const),
    ],
  },
]
