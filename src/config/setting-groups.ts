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
    settings: ['trustedProxies', 'publicUrl', 'imageHosts', 'drainNoticeMs', 'pageAgeMs', 'followFlushMs'],
  },
  {
    title: 'Limits of clients',
    settings: ['rowsPerRead', 'registerLimit', 'submitLimits', 'labelsDelayMs'],
  },
  { title: 'The market', settings: ['tokensMax', 'newHours', 'solPrice', 'solPriceMaxAgeMs'] },
  { title: 'Simulator', settings: ['simulator'] },
  {
    title: 'Replay',
    settings: [
      ...(['replayFile', 'replayMap', 'replaySymbol', 'replaySimulated', 'replayLake'] as const),
      ...(['replayFrom', 'replayTo', 'replaySpeed', 'replayTime'] as const),
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
    settings: ['pumpportalKey', 'pumpportalUrl', 'birdeyeKey', 'birdeyeUrl', 'birdeyeRate'],
  },
  {
    title: 'Recording and restart',
    settings: ['record', 'mixed', 'checkpointIntervalMs', 'diskReserveMb'],
  },
  {
    title: 'The lake',
    settings: ['lakeFlushMs', 'lakeTidyMs', 'lakeGraceMs', 'retain'],
  },
  {
    title: 'Several processes',
    settings: [
      ...(['role', 'bus', 'busName', 'busLogin', 'busPassword', 'busTls', 'busStream'] as const),
      ...(['nodeUrl', 'reader'] as const),
    ],
  },
]
