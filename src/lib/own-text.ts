// In: text that came from outside. Out: the same, cut to a maximum, in memory of its own and well-formed. What V8 cuts out
// of a longer text keeps that text alive: 512 characters of an address of 4 MB would hold all of it for as long as the
// token is held. Never refuses a text.

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff

/**
 * At most the first `charsMax` UTF-16 units of `text`, fewer where the cut would halve a character. What is no character
 * becomes U+FFFD, as everywhere where text is written as UTF-8.
 */
export function ownText(text: string, charsMax: number): string {
  const isHalved = text.length > charsMax && isHighSurrogate(text.charCodeAt(charsMax - 1))
  const kept = text.length > charsMax ? text.slice(0, isHalved ? charsMax - 1 : charsMax) : text
  return Buffer.from(kept, 'utf8').toString('utf8')
}
