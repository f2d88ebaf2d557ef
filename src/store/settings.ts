// The settings of the store.
import { pairs, part } from '../lib/settings/pairs.ts'
import { flag, setting, type ValuesOf, wholeNumber } from '../lib/settings/setting.ts'
import { DAY_MS } from '../lib/time.ts'
import { DISK_RESERVE_MB_DEFAULT, LAKE_GRACE_MS_DEFAULT } from './limits.ts'
import { RETAIN } from './retention-setting.ts'

export const STORE_SETTINGS = {
  lakeFlushMs: setting(
    'lake-flush-ms',
    10_000,
    wholeNumber(0, DAY_MS),
    'How often new rows are written to Parquet, ms; 0: at shutdown only',
  ),
  lakeTidy: pairs(
    'lake-tidy',
    {
      everyMs: part(60_000, wholeNumber(0, DAY_MS)),
      graceMs: part(LAKE_GRACE_MS_DEFAULT, wholeNumber(0, 7 * DAY_MS)),
    },
    'every-ms: how often small Parquet files are merged and replaced ones removed, 0: never; grace-ms: how long a replaced one stays for readers of an older catalog',
  ),
  retain: RETAIN,
  diskReserveMb: setting(
    'disk-reserve-mb',
    DISK_RESERVE_MB_DEFAULT,
    wholeNumber(0, 1_000_000),
    'Submissions are refused while less of the disk is free, MB; 0: until it is full',
  ),
  isMixed: setting(
    'mixed',
    'false',
    flag,
    'true: one data folder may hold simulated and real data; the column simulated tells them apart',
  ),
} as const

export type StoreSettings = ValuesOf<typeof STORE_SETTINGS>
