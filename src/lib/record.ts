/** An object with these keys, each with the value that `valueFor` makes for it. */
export function recordFrom<Key extends string, Value>(
  keys: readonly Key[],
  valueFor: (key: Key, index: number) => Value,
): Record<Key, Value> {
  // Object.fromEntries forgets which keys it was given.
  return Object.fromEntries(keys.map((key, index) => [key, valueFor(key, index)])) as Record<Key, Value>
}

/** The keys of an object that has no others than its type says, in order. */
export function keysOf<Key extends string>(record: Readonly<Record<Key, unknown>>): Key[] {
  // TypeScript gives the keys as strings, because an object may have more members than its type.
  return Object.keys(record) as Key[]
}

/** Whether a value, of JSON for example, is an object with members. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
