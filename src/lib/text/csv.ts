/** A CSV field (RFC 4180). An empty string is quoted, so that it can be told from null. Lists and objects are JSON. */
function csvField(value: unknown): string {
  if (value === null) return ''
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** A row as a line of CSV with its line feed. */
export const csvLine = (row: readonly unknown[]): string => `${row.map(csvField).join(',')}\n`
