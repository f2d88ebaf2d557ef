// Whether two values are the same, as far as two programs can compute them alike.

/** Sums may differ in their last digits by the order in which they were added up. */
const isClose = (a: number, b: number): boolean =>
  a === b || Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b))

const isSameValue = (a: unknown, b: unknown): boolean =>
  typeof a === 'number' && typeof b === 'number' ? isClose(a, b) : (a ?? null) === (b ?? null)

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** Where two values differ first, and what is there; null: they are the same. A member that is missing is one that is null. */
export function findDifference(a: unknown, b: unknown, path = ''): string | null {
  if (!isObject(a) || !isObject(b))
    return isSameValue(a, b) ? null : `${path}: ${JSON.stringify(a)} and ${JSON.stringify(b)}`
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  for (const name of names) {
    const found = findDifference(Reflect.get(a, name), Reflect.get(b, name), `${path}.${name}`)
    if (found !== null) return found
  }
  return null
}

export const isSame = (a: unknown, b: unknown): boolean => findDifference(a, b) === null
