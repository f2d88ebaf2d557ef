const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff

/**
 * Copies at most the first `charsMax` UTF-16 units of `text`, one fewer when the cut would split a surrogate pair. Lone
 * surrogates become U+FFFD. The copy has memory of its own: a plain `slice` would keep all of the original text alive, so that
 * a token whose address was cut to 512 characters could hold 4 MB.
 */
export function truncateText(text: string, charsMax: number): string {
  const splitsPair = text.length > charsMax && isHighSurrogate(text.charCodeAt(charsMax - 1))
  const truncated = text.length > charsMax ? text.slice(0, splitsPair ? charsMax - 1 : charsMax) : text
  return Buffer.from(truncated, 'utf8').toString('utf8')
}
