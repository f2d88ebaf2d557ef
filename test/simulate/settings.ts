// The settings of simulated servers: those of a real one, but for sizes that would make a run slow.
export const FEED_KEY = 'feed-key-of-the-simulation'
export const ADMIN_KEY = 'admin-key-of-the-simulation'

/** A request of the operator. */
export const operatorsPost = (path: string, body: object = {}) =>
  ({
    method: 'POST',
    path,
    key: ADMIN_KEY,
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  }) as const
export const COOLDOWN_MS = 60_000
export const RATE_MAX = 10
/** So long an attempt counts: the minute, less what is left to jitter. */
export const RATE_WINDOW_MS = 60_000 - 100
export const LABELS_DELAY_MS = 90_000

const SETTINGS: Readonly<Record<string, string>> = {
  port: '0',
  feed: 'none',
  'read-limit-anonymous': '0',
  'read-limit-keyed': '0',
  'register-limit': '0',
  'drain-notice-ms': '0',
  'page-age-ms': '0',
  'lake-flush-ms': '10000',
  'labels-delay-ms': String(LABELS_DELAY_MS),
  'submit-limits': `rate=${RATE_MAX},cooldown-ms=${COOLDOWN_MS}`,
}

/** As arguments of the program. */
export const flagsOf = (settings: Readonly<Record<string, string>>): string[] =>
  Object.entries({ ...SETTINGS, ...settings }).flatMap(([name, value]) => [`--${name}`, value])

/** As arguments of a reader: limits of requests are as its writer has them. */
/** `lag-max-ms` of readers: shorter than by default, so that runs of some minutes meet it. */
export const READER_LAG_MS_MAX = 5_000

export const readerFlagsOf = (settings: Readonly<Record<string, string>>): string[] => {
  const shared = ['port', 'read-limit-anonymous', 'read-limit-keyed', 'register-limit', 'drain-notice-ms']
  const ofBoth = [...shared, 'page-age-ms', 'submit-limits'].map((name) => [name, SETTINGS[name] ?? ''])
  const all: Record<string, string> = { role: 'reader', ...Object.fromEntries(ofBoth), ...settings }
  return Object.entries(all).flatMap(([name, value]) => [`--${name}`, value])
}
