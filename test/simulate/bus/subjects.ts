// Subjects of messages, and patterns of them.

/** Whether a subject is one of a pattern, in which `*` is any word and `>` any words at the end. */
export function matches(pattern: string, subject: string): boolean {
  if (pattern === subject || pattern === '>') return true
  if (!pattern.includes('*') && !pattern.endsWith('>')) return false
  const [wanted, words] = [pattern.split('.'), subject.split('.')]
  for (let at = 0; at < wanted.length; at++) {
    if (wanted[at] === '>') return words.length > at
    if (at >= words.length || (wanted[at] !== '*' && wanted[at] !== words[at])) return false
  }
  return words.length === wanted.length
}
